"""Results of an experiment: values of runs, groups of seeds, tables, figures and one page."""

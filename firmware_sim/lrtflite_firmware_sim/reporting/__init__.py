"""The results of a simulation as JSON, text, plots and a page."""

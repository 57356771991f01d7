"""A computer that drives a learner: teaching before shipping, measuring, metrics."""

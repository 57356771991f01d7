"""The device process: a learner behind messages."""

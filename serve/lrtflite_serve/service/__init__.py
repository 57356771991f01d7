"""A learner and everything around it that pages and programs share; no HTTP here."""

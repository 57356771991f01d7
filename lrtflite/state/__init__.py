"""The state of a learner: its form, its files, and commits that are all or nothing."""

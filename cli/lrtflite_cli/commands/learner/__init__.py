"""Commands that open a learner: answer, learn, change classes, evaluate."""

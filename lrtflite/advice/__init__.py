"""What to improve in what a learner was taught."""

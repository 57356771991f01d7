"""Experiments: a grid of simulations from a plan file, on one machine or on many.

The entry point is `run_experiment` in `running`; `folder` reads what it wrote.
"""

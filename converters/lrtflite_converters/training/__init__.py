"""Weights that train: the trunk, its parameters and their regularisers."""

"""Differentiable ops made of built-in TFLite ops."""

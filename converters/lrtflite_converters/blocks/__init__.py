"""Blocks: parts of a network that infer and train with built-in TFLite ops."""

"""Merge what several devices learned."""

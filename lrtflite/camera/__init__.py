"""Cameras, and sessions that are still being recorded from one."""

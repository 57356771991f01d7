"""One session: from recorded frames to a committed state."""

"""Models are run in a child process first, and compared with the golden vectors."""

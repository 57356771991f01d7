"""Options that several commands share, and the options of large commands."""

"""The `lrtflite` command: one file per command; each calls a library function."""

"""The `lrtflite` command: one file per command, each a thin skin over a library function."""

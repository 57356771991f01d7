"""Data sets in folders: one folder of pictures or videos per class."""

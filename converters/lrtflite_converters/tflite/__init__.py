"""TFLite files: made from signatures, read as graphs, edited and written."""

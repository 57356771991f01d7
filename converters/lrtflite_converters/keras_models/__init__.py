"""A user's own Keras model, read as data and built again layer by layer."""

"""The bundle for real cameras, made from a package of weights without TensorFlow."""

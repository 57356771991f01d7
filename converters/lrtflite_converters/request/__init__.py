"""A conversion as the user asks for it, checked without TensorFlow."""

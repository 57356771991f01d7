"""Networks as tables: layers and names, without TensorFlow."""

"""Foreign `.tflite` feature models."""

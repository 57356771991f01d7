"""The TFLite runtimes: the only place that runs a `.tflite` file."""

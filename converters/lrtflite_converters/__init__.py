"""Turn a Keras network into a bundle that learns on the device. Needs the `host` extra."""

# Checks that TensorFlow is there and keeps it quiet, before any module here imports it.
import lrtflite.host  # noqa: F401

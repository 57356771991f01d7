"""Turn a Keras network into a bundle that learns on the device. Needs the `host` extra."""

from lrtflite.extras import require

# Not loaded yet: what a user got wrong is told before that.
require("tensorflow", "tf_keras")

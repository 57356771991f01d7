"""Turn a Keras network into a bundle that learns on the device."""

"""From a network to the files of a bundle."""

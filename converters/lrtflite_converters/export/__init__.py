"""From a bundle and a state to one plain model: frames in, probabilities out, nothing that trains.

It works on the two TFLite files, not on the network that they were made from.
"""

"""Split a network at a replay layer: what makes latents below it, what learns above it."""

from __future__ import annotations

import tf_keras as keras

from lrtflite.errors import ModelError


def below(model: keras.Model, replay_layer: str) -> keras.Model:
    """The part of the network from its input to the output of the replay layer."""
    try:
        latents = model.get_layer(replay_layer).output
    except ValueError as error:
        raise ModelError(
            f"Expected a model with a layer {replay_layer!r}, got {model.name!r} without it; "
            "use a model that `lrtflite train` saved"
        ) from error
    return keras.Model(model.input, latents, name="below")

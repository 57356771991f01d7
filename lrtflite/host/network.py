"""A network as a value: its Keras model, the names of its layers, and its scaling of frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.networks.architecture import Architecture


@dataclass(frozen=True)
class Network:
    """A Keras model that can be split at a replay layer.

    `scale` turns frames (n, S, S, 3) uint8 into inputs of the model. `origin` is a line of text
    about the source of the weights.
    """

    architecture: Architecture
    model: keras.Model
    scale: Callable[[Any], Any]
    origin: str

    @property
    def input_size(self) -> int:
        return int(self.model.input_shape[1])

    def features(self, layer: str | None = None) -> int:
        """Return the length of the classifier's input, or of a layer's average."""
        return int(self.layer(layer or self.architecture.pooled).output_shape[-1])

    def strength(self, layer: str | None = None) -> float:
        """Return the length of the classifier's input, for the learning rate of the last layer."""
        return float(self.features(layer))

    def output(self, layer: str, *, pooled: bool = False, second: str | None = None) -> Any:
        """Return the output of a layer as a Keras tensor, or its average over all pixels.

        With `second`, the average of that layer follows it in one vector.
        """
        output = self._average(layer, "--pooled") if pooled else self.layer(layer).output
        if second is None:
            return output
        return keras.layers.Concatenate()([output, self._average(second, "--and")])

    def _average(self, layer: str, option: str) -> Any:
        output = self.layer(layer).output
        if len(output.shape) != 4:
            raise ModelError(
                f"Expected a layer whose output is an image with {option}, got {layer!r}, whose "
                "output is a vector",
                f"leave {option} out, or choose a lower layer",
            )
        return keras.layers.GlobalAveragePooling2D()(output)

    @property
    def classifier(self) -> Any | None:
        """Return the last layer of a model that has one, or None."""
        name = self.architecture.classifier
        return next((layer for layer in self.model.layers if layer.name == name), None)

    def layer(self, name: str) -> Any:
        """Return a layer of the model; raise ModelError if there is none of that name."""
        try:
            return self.model.get_layer(name)
        except ValueError as error:
            raise ModelError(
                f"Expected a model with a layer {name!r}, got {self.model.name!r} without it",
                "use a model that `lrtflite train` saved",
            ) from error

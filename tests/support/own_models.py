"""Keras models as users build them, in tf-keras or in Keras 3, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tf_keras

from lrtflite_converters.keras_models.network import OwnNetwork, read_network

SIZE = 16


def plain(keras: Any = tf_keras, *, classes: int = 3) -> Any:
    """Return a sequential model with biases and ReLU only, and every kind of pooling window."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            layers.RandomFlip(name="flip"),
            layers.Rescaling(1 / 127.5, offset=-1.0),
            layers.Conv2D(6, 3, padding="same", activation="relu", name="first"),
            layers.MaxPooling2D(2, name="halved"),
            layers.Conv2D(5, 3, activation="relu6", name="second"),
            layers.MaxPooling2D(3, 2, padding="same", name="overlapping"),
            layers.DepthwiseConv2D(3, padding="same", name="third"),
            layers.AveragePooling2D(2, 1, name="averaged"),
            layers.Flatten(name="flat"),
            layers.Dense(7, activation="relu", name="hidden"),
            layers.Dropout(0.5, name="dropout"),
            layers.Dense(classes, activation="softmax", name="answers"),
        ]
    )


def joined(keras: Any = tf_keras, *, classes: int = 3) -> Any:
    """Return a functional model with Batch Normalization in each place, and sums of all kinds."""
    layers = keras.layers
    images = keras.Input((SIZE, SIZE, 3), name="images")
    x = layers.Normalization(mean=[120.0, 110.0, 100.0], variance=[60.0, 50.0, 40.0])(images)
    x = layers.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = layers.Conv2D(6, 3, strides=2, name="stem_conv")(x)
    x = layers.ReLU(6.0, name="stem")(layers.BatchNormalization(epsilon=1e-3)(x))
    y = layers.Conv2D(6, 3, padding="same", name="main")(x)
    y = layers.BatchNormalization(scale=False)(y)
    x = layers.Activation("relu", name="after_sum")(layers.Add(name="sum")([x, y]))
    y = layers.BatchNormalization(center=False, name="before")(x)
    y = layers.ReLU(name="active")(y)
    left = layers.SeparableConv2D(8, 3, 2, padding="same", activation="relu", name="left")(y)
    right = layers.Conv2D(8, 1, strides=2, use_bias=False, name="right")(y)
    x = layers.Add(name="two_paths")([left, right])
    x = layers.ZeroPadding2D(1, name="wide")(x)
    x = layers.GlobalMaxPooling2D(name="highest")(x)
    x = layers.Dense(7, name="dense")(x)
    x = layers.ReLU(name="features")(layers.BatchNormalization(name="dense_norm")(x))
    return keras.Model(images, layers.Dense(classes, name="logits")(x), name="joined")


def nested(keras: Any = tf_keras) -> Any:
    """Return a model inside another one, as transfer learning builds them."""
    layers = keras.layers
    inner = keras.Input((SIZE, SIZE, 3))
    x = layers.Conv2D(6, 3, strides=2, name="inner_conv")(inner)
    x = layers.Activation("swish", name="swish")(layers.BatchNormalization(name="inner_norm")(x))
    base = keras.Model(inner, x, name="base")
    images = keras.Input((SIZE, SIZE, 3))
    x = base(layers.Rescaling(1 / 255)(images))
    x = layers.Conv2D(6, 1, activation="relu", name="top_conv")(x)
    x = layers.GlobalAveragePooling2D(name="pooled")(x)
    return keras.Model(images, layers.Dense(3, activation="softmax", name="answers")(x))


def randomise(model: Any, *, seed: int = 0) -> Any:
    """Give every weight a value of its own, as after training."""
    rng = np.random.default_rng(seed)
    model.set_weights(
        [
            rng.uniform(0.5, 1.5, w.shape) if w.ndim == 1 else rng.normal(0, 0.3, w.shape)
            for w in map(np.asarray, model.get_weights())
        ]
    )
    return model


def features_of(keras: Any, model: Any, layer: str, frames: np.ndarray) -> np.ndarray:
    """Return what Keras itself computes at a layer."""
    images = model.inputs[0]  # a sequential model of Keras 3 has no `input` before a call
    below = keras.Model(images, model.get_layer(layer).output)
    return np.asarray(below(frames.astype(np.float32), training=False))


def saved(model: Any, path: Path) -> OwnNetwork:
    """Save a model, and read it as `convert --model` does."""
    model.save(path)
    return read_network(path)

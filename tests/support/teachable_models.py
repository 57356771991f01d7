"""A Keras model as Teachable Machine exports it, with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tf_keras

SIZE, ALPHA = 224, 0.35
POOLED = "global_average_pooling2d_GlobalAveragePooling2D1"


def exported(*, classes: int = 3, hidden: str = "relu") -> Any:
    """Return MobileNetV2 and two dense layers, nested and named as in `keras_model.h5`."""
    layers, sequential = tf_keras.layers, tf_keras.Sequential
    whole = tf_keras.applications.MobileNetV2(
        input_shape=(SIZE, SIZE, 3), alpha=ALPHA, include_top=False, weights=None
    )
    base = tf_keras.Model(whole.input, whole.get_layer("out_relu").output, name="model1")
    pooled = layers.GlobalAveragePooling2D(name=POOLED)
    dense = layers.Dense(100, activation=hidden, name="dense_Dense1")
    answers = layers.Dense(classes, activation="softmax", use_bias=False, name="dense_Dense2")
    model = sequential(
        [
            sequential([base, pooled], name="sequential_1"),
            sequential([tf_keras.Input((1280,)), dense, answers], name="sequential_3"),
        ],
        name="sequential_4",
    )
    rng = np.random.default_rng(0)
    # Sizes with which rounding does not grow from layer to layer, as it does not after training.
    for variable in model.weights:
        shape = tuple(variable.shape)
        if "kernel" in variable.name:
            inputs = np.prod(shape) / max(shape[2:] or shape[1:])
            variable.assign(rng.normal(0, 1 / np.sqrt(inputs), shape))
        elif "gamma" in variable.name or "variance" in variable.name:
            variable.assign(rng.uniform(0.8, 1.2, shape))
        elif "beta" in variable.name:
            variable.assign(rng.uniform(0, 1, shape))
        else:
            variable.assign(rng.normal(0, 0.1, shape))
    return model


def save(model: Any, folder: Path) -> Path:
    """Write the model and its labels into a folder, as the exported zip has them."""
    path = folder / "keras_model.h5"
    model.save(path)
    (folder / "labels.txt").write_text("0 red mug\n1 cup\n2 none\n")
    return path

"""Train a network of your own with Keras, and make a bundle of it that learns on a device.

    things/
        mug/      IMG_1.jpg  IMG_2.jpg ...
        stapler/  IMG_3.jpg  IMG_4.jpg ...

    python own_model.py things --out bundle

The pictures train the network; its layers below `LAYER` then stay as they are. The device learns
other things above that layer. Any Keras model can take the place of `build`; docs/own-network.md
says which layers can train.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from lrtflite import LrtfliteError, read_image
from lrtflite_converters import ConvertOptions, Source, convert

SIZE = 64
LAYER = "conv3"
PICTURES = (".jpg", ".jpeg", ".png")


def build(classes: int) -> Any:
    """Return a small network with its own scaling, three convolutions and a classifier."""
    import keras  # type: ignore[import-untyped]  # Keras 3, which comes with TensorFlow; tf_keras works too

    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            layers.Rescaling(1 / 127.5, offset=-1),
            layers.Conv2D(16, 3, strides=2, padding="same", activation="relu", name="conv1"),
            layers.Conv2D(32, 3, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(name="conv2"),
            layers.Conv2D(64, 3, strides=2, padding="same", activation="relu", name="conv3"),
            layers.SeparableConv2D(64, 3, padding="same", activation="relu", name="conv4"),
            layers.GlobalAveragePooling2D(name="features"),
            layers.Dense(classes, activation="softmax", name="classifier"),
        ]
    )


def read_pictures(things: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return all pictures of a folder per class, their classes as numbers, and the names."""
    names = sorted(path.name for path in things.iterdir() if path.is_dir())
    found = [
        (path, number)
        for number, name in enumerate(names)
        for path in sorted((things / name).iterdir())
        if path.suffix.lower() in PICTURES
    ]
    images = np.stack([read_image(path, SIZE) for path, _ in found])
    return images, np.array([number for _, number in found]), names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("things", type=Path)
    parser.add_argument("--out", type=Path, default=Path("bundle"))
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    images, classes, names = read_pictures(options.things)
    model = build(len(names))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(images.astype("float32"), classes, epochs=options.epochs, verbose=0)
    model.save("own.keras")
    how = ConvertOptions(replay_layer=LAYER, strategy="lda")
    convert(options.out, Source(model="own.keras"), how)
    print(f"{options.out}: features below {LAYER} trained on {', '.join(names)}")


if __name__ == "__main__":
    try:
        main()
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")

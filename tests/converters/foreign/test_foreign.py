"""Feature models from elsewhere: a `.tflite` file gets frames in and latents out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.destination import Destination
from lrtflite.errors import ConversionError, ModelError
from lrtflite_converters.conversion import on_device
from lrtflite_converters.conversion.making import make_bundle_of_features
from lrtflite_converters.features.sample_frames import wave_frames
from lrtflite_converters.foreign.features import read_features
from lrtflite_converters.request.foreign import check_foreign, foreign_architecture
from lrtflite_converters.request.options import Conversion, ConvertOptions
from lrtflite_converters.request.scaling import read_scaling
from lrtflite_converters.request.source import Source

layers = keras.layers
SIZE, FEATURES = 16, 9
FRAMES = wave_frames(5, SIZE, np.random.default_rng(2))
pytestmark = pytest.mark.filterwarnings("ignore")  # TensorFlow recommends another converter


def network(*, first: bool = False, keep: bool = False, flat: bool = False) -> Any:
    """Return a model for one image at a time; `first` is for channels first, as in PyTorch."""
    keras.utils.set_random_seed(3)
    shape = (3, SIZE, SIZE) if first else (SIZE, SIZE, 3)
    x = images = keras.Input(shape, batch_size=1)
    x = layers.Permute((2, 3, 1))(x) if first else x
    x = layers.Conv2D(8, 3, 2, padding="same", activation="relu6")(x)
    x = layers.Conv2D(FEATURES, 1)(x)
    x = layers.Flatten()(x) if flat else layers.GlobalAveragePooling2D(keepdims=keep)(x)
    return keras.Model(images, layers.Dense(FEATURES)(x) if flat else x)


def exported(model: Any, path: Path, **options: Any) -> Path:
    function = tf.function(lambda x: model(x)).get_concrete_function(
        tf.TensorSpec(model.input_shape, tf.float32)
    )
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], model)
    for name, value in options.items():
        setattr(converter, name, value)
    path.write_bytes(converter.convert())
    return path


def quantised(path: Path, kind: Any) -> Path:
    def samples() -> Iterator[list[Any]]:
        for frame in wave_frames(20, SIZE, np.random.default_rng(4)):
            yield [frame[np.newaxis].astype(np.float32) / 127.5 - 1.0]

    return exported(
        network(),
        path,
        optimizations=[tf.lite.Optimize.DEFAULT],
        representative_dataset=samples,
        inference_input_type=kind,
        inference_output_type=kind,
    )


@pytest.mark.parametrize(
    ("options", "scale"),
    [
        ({}, "-1..1"),
        ({}, "caffe"),
        ({"first": True}, "imagenet"),
        ({"keep": True}, "0..1"),
        ({"flat": True}, "0..255"),
    ],
)
def test_float_models_get_frames_and_give_vectors(
    options: dict[str, bool], scale: str, tmp_path: Path
) -> None:
    model, scaling = network(**options), read_scaling(scale)
    path = exported(model, tmp_path / "model.tflite")
    features, origin = read_features(path, scaling)
    x = np.asarray(scaling(FRAMES))
    x = x.transpose(0, 3, 1, 2) if options.get("first") else x
    expected = np.concatenate([model(each[np.newaxis]).numpy() for each in x])
    found = features.run("extract", frames=FRAMES)["latents"]
    np.testing.assert_allclose(
        found, expected.reshape(len(FRAMES), FEATURES), atol=1e-5 * np.abs(expected).max()
    )
    assert (features.latent_shape, features.input_size) == ((FEATURES,), SIZE)
    assert features.rounding == 0
    assert origin.startswith("model.tflite (sha256 ")


@pytest.mark.parametrize("kind", [tf.int8, tf.uint8])
@pytest.mark.parametrize("scale", [None, "-1..1"])
def test_quantised_models_become_float(kind: Any, scale: str | None, tmp_path: Path) -> None:
    """Pixels fit the input as they are, because it was calibrated with values from -1 to 1."""
    path = quantised(tmp_path / "model.tflite", kind)
    features, _ = read_features(path, None if scale is None else read_scaling(scale))
    expected = np.concatenate(
        [network()(frame[np.newaxis] / np.float32(127.5) - 1).numpy() for frame in FRAMES]
    )
    found = features.run("extract", frames=FRAMES)["latents"]
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() <= 0.04 * np.abs(expected).max()
    assert features.rounding > 0


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(bundle: Path, runtime: str) -> None:
        raise ConversionError("not in this test")

    monkeypatch.setattr(on_device, "measure", refuse)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("strategy", ["cwr", "lda"])
def test_a_bundle_on_every_runtime(strategy: str, tmp_path: Path) -> None:
    """The golden sessions run on each installed runtime, with channels first or int8."""
    path = tmp_path / "model.tflite"
    if strategy == "cwr":
        exported(network(first=True), path)
    else:
        quantised(path, tf.int8)
    scaling = read_scaling("-1..1") if strategy == "cwr" else None
    options = Conversion(architecture=foreign_architecture("model"), strategy=strategy, classes=4)
    out = Destination.at(tmp_path / "bundle", replace=False)
    manifest = Bundle.open(make_bundle_of_features(path, scaling, out, options=options)).manifest
    assert (manifest.network, manifest.replay_layer) == ("model", "features")
    assert (manifest.input_size, manifest.latent_shape) == (SIZE, (FEATURES,))
    assert not manifest.trains_trunk


@pytest.mark.usefixtures("unmeasured")
def test_a_runtime_that_cannot_run_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(bundle: Path, runtime: str) -> None:
        raise ConversionError("The bundle fails verification: CONV_2D v9", "convert it again")

    monkeypatch.setattr(on_device, "verify", fail)
    path = exported(network(), tmp_path / "model.tflite")
    options = Conversion(architecture=foreign_architecture("model"), strategy="ncm", classes=4)
    out = Destination.at(tmp_path / "bundle", replace=False)
    with pytest.raises(ConversionError, match=r"CONV_2D v9; export model.tflite with another ver"):
        make_bundle_of_features(path, read_scaling("0..1"), out, options=options)
    assert not (tmp_path / "bundle").exists()


def keras_model(build: Callable[[Any], Any], shape: Any = (SIZE, SIZE, 3)) -> Any:
    images = keras.Input(shape, batch_size=1)
    return keras.Model(images, build(images))


def one_image_only(x: Any) -> Any:
    """Return features of which a constant fixes the number of images."""
    x = layers.GlobalAveragePooling2D()(x)
    return tf.concat([x, tf.zeros([1, 2])], axis=-1)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: keras_model(layers.Conv2D(3, 1)), r"a vector for each image, got .*16, 16, 3"),
        (lambda: keras_model(layers.Flatten(), (SIZE, 12, 3)), r"got \[1, 16, 12, 3\]"),
        (lambda: keras_model(layers.Flatten(), (SIZE, SIZE, 1)), r"got \[1, 16, 16, 1\]"),
        (lambda: keras_model(layers.Dense(3), (4,)), r"square images.* got \[1, 4\]"),
        (lambda: keras_model(lambda x: [layers.Flatten()(x)] * 2), "one output, got 2"),
        (lambda: keras_model(one_image_only), "built for one; export it with a dynamic batch"),
    ],
)
def test_models_that_do_not_fit(model: Callable[[], Any], message: str, tmp_path: Path) -> None:
    path = exported(model(), tmp_path / "model.tflite")
    with pytest.raises(ModelError, match=message) as caught:
        read_features(path, read_scaling("0..1"))
    assert "\n" not in str(caught.value)


def test_custom_ops_are_named(tmp_path: Path) -> None:
    model = keras_model(
        lambda x: tf.raw_ops.Betainc(a=x[:, 0, :, 0], b=x[:, 0, :, 1], x=x[:, 0, :, 2])
    )
    path = exported(
        model,
        tmp_path / "model.tflite",
        allow_custom_ops=True,
    )
    with pytest.raises(ModelError, match="built-in TFLite ops only, got Betainc"):
        read_features(path, read_scaling("0..1"))


def test_a_float_model_needs_a_scaling(tmp_path: Path) -> None:
    path = exported(network(), tmp_path / "model.tflite")
    with pytest.raises(ModelError, match=r"--scale with model.tflite, whose input is float32"):
        read_features(path, None)


def test_files_that_are_not_tflite(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    content = exported(network(), path).read_bytes()
    for damaged in (b"", b"PK\x03\x04 a Keras file", b"\x10\0\0\0TFL3"):
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match=r"model.tflite"):
            read_features(path, read_scaling("0..1"))
    for size in np.linspace(8, len(content) - 64, 20).astype(int):
        path.write_bytes(content[:size])
        with pytest.raises(ModelError):
            read_features(path, read_scaling("0..1"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "ar1"}, "cwr, ewc, lwf, naive, lda, dslda, ncm .* got 'ar1'"),
        ({"strategy": "ar1free"}, "got 'ar1free'"),
        ({"replay_layer": "conv5"}, "no --replay-layer with --features"),
        ({"pooled": True}, "no --pooled with --features"),
        ({"adapt_moments": True}, "no --adapt-moments with --features"),
    ],
)
def test_options_that_need_other_layers(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        check_foreign(ConvertOptions(**options))


@pytest.mark.parametrize("other", [{"model": "x"}, {"weights": "demo"}, {"alpha": 0.5}])
def test_features_come_alone(other: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="Expected --features alone"):
        Source(features=str(tmp_path), **other)
    with pytest.raises(ModelError, match="which is not a file"):
        Source(features=str(tmp_path / "none.tflite"))

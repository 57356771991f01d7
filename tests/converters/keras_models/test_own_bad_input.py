"""Files and models that cannot be converted: one clear line, before any work."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
import pytest
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.files.keras import is_of_this_project, read_keras_file
from lrtflite.host.mobilenet import mobilenet_v1
from lrtflite_converters.keras_models.network import read_network
from lrtflite_converters.request.scaling import read_scaling
from lrtflite_converters.request.source import Source
from own_models import SIZE, plain

layers = keras.layers
Config = dict[str, Any]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "own.keras"
    plain().save(path)
    return path


def changed(file: Path, path: Path, **members: bytes | None) -> Path:
    """Copy an archive with other contents for some of its members; None leaves one out."""
    names = {"config": "config.json", "weights": "model.weights.h5"}
    given = {names[name]: content for name, content in members.items()}
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = given.get(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return path


def with_config(file: Path, path: Path, change: Callable[[Config], None]) -> Path:
    with zipfile.ZipFile(file) as archive:
        config = json.loads(archive.read("config.json"))
    change(config)
    return changed(file, path, config=json.dumps(config).encode())


def layer(config: Config, name: str) -> Config:
    return next(x for x in config["config"]["layers"] if x["config"]["name"] == name)


def made(upper: Callable[[Any], Any], shape: Any = (SIZE, SIZE, 3)) -> Any:
    images = keras.Input(shape, name="images")
    return keras.Model(images, upper(images))


def twice(x: Any) -> Any:
    shared = layers.Conv2D(3, 1, name="shared")
    return shared(shared(x))


def two_inputs() -> Any:
    inputs = [keras.Input((SIZE, SIZE, 3), name=name) for name in ("one", "two")]
    return keras.Model(inputs, layers.Add()(inputs))


class Own(keras.layers.Layer):
    def call(self, inputs: Any) -> Any:
        return inputs


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (two_inputs, "one input in own.keras, got 2"),
        (lambda: made(lambda x: [layers.Flatten()(x), x]), "one output in own.keras, got 2"),
        (lambda: made(layers.Conv2D(3, 1), (None, None, 3)), "fixed size, got .None, None, 3."),
        (lambda: made(layers.Conv2D(3, 1), (16, 24, 3)), "square images .* got 16x24"),
        (lambda: made(layers.Conv2D(3, 1), (16, 16, 1)), r"\[size, size, 3\], got \[16, 16, 1\]"),
        (lambda: made(layers.Flatten(), (4, 4, 3)), "side from 8 to 1024, got 4x4"),
        (lambda: made(twice), "got shared, which is called 2 times"),
        (lambda: made(Own(name="mine")), r"got mine \(Own\), which is a custom layer"),
        (lambda: made(layers.Lambda(lambda x: x, name="code")), r"code \(Lambda\); .* executes"),
        (lambda: made(lambda x: x * 2.0), "TFOpLambda.* executes code"),
        (
            lambda: made(layers.Conv2D(3, 1)),
            "Rescaling or Normalization .* or --scale, got neither",
        ),
        (lambda: made(layers.Conv2D(3, 1, activation=keras.activations.softsign)), "or --scale"),
    ],
)
def test_models_that_do_not_fit(model: Callable[[], Any], message: str, tmp_path: Path) -> None:
    model().save(tmp_path / "own.keras")
    with pytest.raises(ModelError, match=message) as caught:
        read_network(tmp_path / "own.keras")
    assert "\n" not in str(caught.value)


def deep(config: Config) -> None:
    inner = dict(config)
    for _ in range(20):
        inner = {
            "class_name": "Sequential",
            "name": "deep",
            "config": {"name": "deep", "layers": [inner]},
        }
    config.clear()
    config.update(inner)


def many(config: Config) -> None:
    one = layer(config, "dropout")
    config["config"]["layers"] += [one] * 6000


def setting(name: str, **values: Any) -> Callable[[Config], None]:
    return lambda config: layer(config, name)["config"].update(values)


def as_class(name: str, kind: str, **more: Any) -> Callable[[Config], None]:
    return lambda config: layer(config, name).update(class_name=kind, **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (setting("second", filters=10**9), r"\(3, 3, 6, 1000000000\) for second .* another width"),
        (setting("hidden", units=9), r"shape \(20, 9\) for hidden \(Dense\), got \(20, 7\)"),
        (setting("second", kernel_size=[10**6, 10**6]), "another width"),
        (setting("second", filters="many"), r"got second \(Conv2D\), which cannot be built"),
        (setting("second", strides=[0, 0]), "cannot be built"),
        (setting("second", activation="os.system"), "an activation of Keras in second, got 'os"),
        (setting("second", data_format="channels_first"), "channels last, got second"),
        (setting("halved", pool_size=[10**6, 10**6]), "cannot be built|1 to .* values"),
        (as_class("hidden", "Lambda"), r"hidden \(Lambda\); .* executes code"),
        (as_class("hidden", "Popen", module="subprocess"), r"hidden \(Popen\), which is a custom"),
        (as_class("hidden", "Dense", registered_name="evil>Dense"), "custom layer"),
        (lambda config: config.update(class_name="Custom"), "functional or sequential .* 'Custom'"),
        (lambda config: config["config"].update(layers=7), "damaged one"),
        (lambda config: config["config"].update(layers=[]), "empty model"),
        (deep, "at most 8 models inside each other"),
        (many, "at most 5,000 layers"),
    ],
)
def test_hostile_configurations(
    change: Callable[[Config], None], message: str, file: Path, tmp_path: Path
) -> None:
    path = with_config(file, tmp_path / "own.keras", change)
    with pytest.raises(ModelError, match=message) as caught:
        read_network(path)
    assert "\n" not in str(caught.value)


def h5(fill: Callable[[Any], None]) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as weights:
        fill(weights)
    return buffer.getvalue()


def missing_bytes(weights: Any) -> None:
    """Declare an array of 4 TB that takes no space."""
    weights.create_dataset("layers/conv2d/vars/0", (10**6, 10**6), "f4", chunks=(100, 100))


def external(weights: Any) -> None:
    weights.create_dataset("layers/conv2d/vars/0", (3,), "f4", external=[("/etc/hostname", 0, 12)])


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"config": b"[" * 100_000}, "damaged file"),
        ({"config": b"{"}, "damaged file"),
        ({"config": b"[1]"}, "not an object"),
        ({"config": b" " * (1 << 25) + b"{}"}, "config.json of more than"),
        ({"config": None}, "config.json is missing"),
        ({"weights": None}, "model.weights.h5 is missing"),
        ({"weights": b"none"}, "damaged file"),
        ({"weights": h5(lambda file: None)}, r"2 arrays of weights for first \(Conv2D\), got 0"),
        ({"weights": h5(missing_bytes)}, "not stored as Keras does"),
        ({"weights": h5(external)}, "not stored as Keras does"),
    ],
)
def test_damaged_archives(
    members: dict[str, bytes | None], message: str, file: Path, tmp_path: Path
) -> None:
    path = changed(file, tmp_path / "own.keras", **members)
    with pytest.raises(ModelError, match=message) as caught:
        read_network(path)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_keras_models(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.keras"
    path.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(ModelError, match=r"complete Keras model in .*damaged file"):
        read_network(path)
    path.write_bytes(b"TFL3, not a Keras file")
    with pytest.raises(ModelError, match=r"own.keras, which is neither"):
        read_network(path)
    with pytest.raises(ModelError, match="which is a folder"):
        read_network(tmp_path)
    with pytest.raises(ModelError, match=r"none.keras, which does not exist"):
        read_network(tmp_path / "none.keras")
    keras.Sequential([keras.Input((8,)), layers.Dense(2)]).save_weights(tmp_path / "own.h5")
    with pytest.raises(ModelError, match="without a model_config"):
        read_network(tmp_path / "own.h5")


def test_every_cut_of_a_file_is_refused(file: Path, tmp_path: Path) -> None:
    content, path = file.read_bytes(), tmp_path / "own.keras"
    for size in np.linspace(1, len(content) - 1, 40).astype(int):
        path.write_bytes(content[:size])
        with pytest.raises(ModelError):
            read_keras_file(path)


def test_weights_of_an_older_version(file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        buffer = io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(buffer, "a") as weights:
        weights.move("layers", "_layer_checkpoint_dependencies")
    path = changed(file, tmp_path / "own.keras", weights=buffer.getvalue())
    found, expected = read_network(path), read_network(file)
    for one, other in zip(found.model.get_weights(), expected.model.get_weights()):
        np.testing.assert_array_equal(one, other)


def test_weights_that_are_not_numbers(tmp_path: Path) -> None:
    model = plain()
    kernel, bias = model.get_layer("second").get_weights()
    model.get_layer("second").set_weights([kernel * np.nan, bias])
    model.save(tmp_path / "own.keras")
    with pytest.raises(ModelError, match=r"NaN or infinity in second \(Conv2D\)"):
        read_network(tmp_path / "own.keras")


def test_a_scaling_twice(file: Path) -> None:
    with pytest.raises(ModelError, match="leave --scale out"):
        read_network(file, read_scaling("0..1"))


@pytest.mark.parametrize("name", ["host.keras", "host.h5"])
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_models_of_this_project_are_recognised(name: str, file: Path, tmp_path: Path) -> None:
    """They keep their way of conversion, with the classes that they know."""
    mobilenet_v1(alpha=0.125, input_size=32, classes=3).save(tmp_path / name)
    assert is_of_this_project(tmp_path / name)
    assert not is_of_this_project(file)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("0..1", [0, 0, 0], [1, 1, 1]), ("-1..1", [-1, -1, -1], [1, 1, 1])],
)
def test_scalings_by_their_limits(text: str, low: list[float], high: list[float]) -> None:
    frames = np.stack([np.zeros((2, 2, 3), np.uint8), np.full((2, 2, 3), 255, np.uint8)])
    found = np.asarray(read_scaling(text)(frames))
    np.testing.assert_allclose(found[0, 0, 0], low, atol=1e-6)
    np.testing.assert_allclose(found[1, 0, 0], high, atol=1e-6)


def test_scalings_by_name() -> None:
    frame = np.array([[[[10, 20, 30]]]], np.uint8)
    expected = keras.applications.imagenet_utils.preprocess_input(frame.astype("f"), mode="caffe")
    np.testing.assert_allclose(read_scaling("caffe")(frame), expected, rtol=1e-6)
    expected = keras.applications.imagenet_utils.preprocess_input(frame.astype("f"), mode="torch")
    np.testing.assert_allclose(read_scaling("imagenet")(frame), expected, rtol=1e-5)


@pytest.mark.parametrize("text", ["", "1", "1..0", "0..inf", "a..b", "nan..1", "tourch"])
def test_scalings_that_cannot_be(text: str, file: Path) -> None:
    with pytest.raises(ModelError, match=r"Expected --scale as LOW..HIGH"):
        Source(model=str(file), scale=text)


def test_scale_is_for_own_models(file: Path) -> None:
    with pytest.raises(ModelError, match="leave --scale out"):
        Source(scale="0..1")

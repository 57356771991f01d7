"""No file from outside reaches a loader that can execute it: the names of such loaders are absent.

Keras rebuilds functions and imports modules that a file names; pickle runs anything. Files are read
by `lrtflite/files/keras.py` and `lrtflite/files/npz.py` instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = ("lrtflite", "converters", "cli", "firmware_sim", "examples", "benchmarks", "tools")
# Functions and modules that may execute what they read.
LOADERS = re.compile(
    r"load_model|load_weights|model_from_\w+|from_config|\w*deserialize\w*|clone_model|"
    r"pickle|_pickle|cPickle|marshal|shelve|dill|joblib|cloudpickle|load_pickle|"
    r"eval|exec|execfile|enable_unsafe_deserialization|load_module"
)
# Uses that read nothing from outside, with the reason.
ALLOWED = {
    "converters/lrtflite_converters/quantise/wrapping.py": {
        "from_config": "copies a layer that is in RAM",
        "clone_model": "copies a network that is in RAM",
    },
    "converters/lrtflite_converters/quantise/folding.py": {
        "from_config": "copies a layer that is in RAM"
    },
    "converters/lrtflite_converters/quantise/aware_training.py": {
        "clone_model": "copies a network that is in RAM"
    },
    "firmware_sim/lrtflite_firmware_sim/device/messages.py": {
        "pickle": "reads a pipe from a process that it started itself"
    },
}


def loaders(tree: ast.AST) -> Iterator[str]:
    """Yield the loaders that a module names, other than functions of this project."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")
            ours = module[0].startswith("lrtflite")
            names = [] if ours else [module[0], *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Call):
            names = list(_of_call(node))
        else:
            continue
        yield from (name for name in names if LOADERS.fullmatch(name) or "(" in name)


def _of_call(node: ast.Call) -> Iterator[str]:
    called = ast.unparse(node.func)
    if called in ("eval", "exec", "compile"):
        yield f"{called}()"
    if called.endswith("getattr"):
        yield from (str(each.value) for each in node.args if isinstance(each, ast.Constant))
    given = {each.arg: ast.unparse(each.value) for each in node.keywords}
    if given.get("allow_pickle", "False") != "False" or given.get("safe_mode", "True") != "True":
        yield f"{called}({given})"
    if called in ("np.load", "numpy.load") and given.get("allow_pickle") != "False":
        yield f"{called}() without allow_pickle=False"


def test_no_module_names_a_loader_that_executes() -> None:
    found: dict[str, set[str]] = {}
    for folder in SHIPPED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            names = set(loaders(ast.parse(path.read_text(encoding="utf-8"))))
            if names:
                found[path.relative_to(ROOT).as_posix()] = names
    assert found == {path: set(reasons) for path, reasons in ALLOWED.items()}


def test_hdf5_is_opened_in_one_place() -> None:
    """That place follows no link and reads no array of another file."""
    opens = re.compile(r"import h5py|from h5py|h5py\.File")
    places = [
        path.relative_to(ROOT).as_posix()
        for folder in SHIPPED
        for path in sorted((ROOT / folder).rglob("*.py"))
        if opens.search(path.read_text(encoding="utf-8"))
    ]
    assert places == ["lrtflite/files/hdf5.py"]


@pytest.mark.parametrize(
    "text",
    [
        "keras.models.load_model(path)",
        "from tf_keras.models import load_model",
        "model.load_weights(path)",
        "type(layer).from_config(given)",
        "keras.layers.deserialize(config)",
        "keras.saving.deserialize_keras_object(config)",
        "keras.models.model_from_json(text)",
        "getattr(keras.models, 'load_model')(path)",
        "import pickle",
        "from pickle import loads",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=given)",
        "keras.saving.save(path, safe_mode=False)",
        "eval(text)",
    ],
)
def test_loaders_are_noticed(text: str) -> None:
    assert list(loaders(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "from lrtflite.host.model_file import load_model\nload_model(path)",
        "re.compile('x')",
        "np.load(path, allow_pickle=False)",
    ],
)
def test_other_readers_are_not(text: str) -> None:
    assert not list(loaders(ast.parse(text)))

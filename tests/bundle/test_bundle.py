"""Opening, damaging and verifying bundles."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrtflite import Learner
from lrtflite.bundle.bundle import Bundle, demo_bundle
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.errors import BundleError
from lrtflite.files.digest import digest
from lrtflite.runtime.flatbuffer import custom_ops, read_ops
from lrtflite.runtime.model import Model, Tensor, installed_runtimes
from lrtflite.verification.verify import check_signatures, verify_bundle
from lrtflite_cli.commands.convert import suggested_simulation

LOSSES = "losses of 4 steps in 2 sessions"
AFTER = {LOSSES, "probabilities after training", "state after training"}
FORGOTTEN = {"probabilities after forgetting"}
FILES = ["features.tflite", "head.tflite", "golden.npz"]


@pytest.fixture
def copy(demo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo, tmp_path / "bundle"))


def edit_manifest(bundle: Path, **changes: object) -> None:
    path = bundle / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_feeding(bundle: Path, **changes: object) -> None:
    feeding = json.loads((bundle / "manifest.json").read_text())["feeding"]
    edit_manifest(bundle, feeding={**feeding, **changes})


def rehash(bundle: Path, name: str) -> None:
    """Update the manifest after a deliberate change of a file."""
    files = json.loads((bundle / "manifest.json").read_text())["files"]
    found = digest(bundle / name)
    edit_manifest(bundle, files={**files, name: {"sha256": found.sha256, "bytes": found.bytes}})


def test_the_packaged_bundle_verifies(demo: Path) -> None:
    with demo_bundle() as path:
        assert path.resolve() == demo.resolve()
    for runtime in installed_runtimes():
        checks = verify_bundle(demo, runtime=runtime)
        assert [check.name for check in checks if not check.passed] == []
        assert {"files", "latents", LOSSES, "state after training"} <= {
            check.name for check in checks
        }


def test_a_manifest_survives_json(demo: Path) -> None:
    manifest = Bundle.open(demo).manifest
    assert read_manifest(manifest.to_json(), where="memory") == manifest


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(copy: Path, name: str) -> None:
    whole = (copy / name).read_bytes()
    damages: list[tuple[str, Callable[[], object]]] = [
        ("truncated", lambda: (copy / name).write_bytes(whole[:-10])),
        ("was changed", lambda: (copy / name).write_bytes(b"x" + whole[1:])),
        ("No such file", (copy / name).unlink),
    ]
    for message, damage in damages:
        damage()
        with pytest.raises(BundleError, match=message) as caught:
            Bundle.open(copy)
        assert name in str(caught.value)
        assert "copy the bundle again" in str(caught.value)


def test_other_manifests(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="lrtflite convert --replay-layer pool6"):
        Bundle.open(tmp_path / "nowhere")
    edit_manifest(copy, format=1)
    with pytest.raises(BundleError, match="Expected a bundle of format 6 or 7, got format 1"):
        Bundle.open(copy)
    edit_manifest(copy, format=6, surprise=1)
    Bundle.open(copy)
    edit_manifest(copy, requires=["surprise"])
    with pytest.raises(BundleError, match="'surprise'; install a newer version"):
        Bundle.open(copy)
    (copy / "manifest.json").write_text("{")
    with pytest.raises(BundleError, match="Expected JSON"):
        Bundle.open(copy)
    (copy / "manifest.json").write_text("[]")
    with pytest.raises(BundleError, match="manifest"):
        Bundle.open(copy)


def test_a_field_of_the_wrong_kind(copy: Path) -> None:
    for field, value in (
        ("latent_shape", "wide"),
        ("input_size", "x"),
        ("backbone", 3),
        ("labels", [["a"]]),
        ("labels", []),
        ("latent_range", [6, 0]),
        ("latent_range", [0]),
        ("latent_range", [0, "much"]),
    ):
        whole = (copy / "manifest.json").read_text()
        edit_manifest(copy, **{field: value})
        with pytest.raises(BundleError, match="Damaged field"):
            Bundle.open(copy)
        (copy / "manifest.json").write_text(whole)


@pytest.mark.parametrize(
    ("tensor", "off", "failing"),
    [
        ("losses", 0.01, {LOSSES}),
        # Inputs matter too: a change in any of these must change an output.
        ("scalars/head_start", 0.5, AFTER | FORGOTTEN),
        ("scalars/lr", 0.01, AFTER | FORGOTTEN),
    ],
)
def test_wrong_numbers_fail_the_verification(
    copy: Path, tensor: str, off: float, failing: set[str]
) -> None:
    with np.load(copy / "golden.npz") as archive:
        golden = dict(archive)
    golden[tensor] = golden[tensor] + np.float32(off)
    np.savez(copy / "golden.npz", **golden)
    rehash(copy, "golden.npz")
    assert {check.name for check in verify_bundle(copy) if not check.passed} == failing


def test_shapes_that_the_manifest_denies_fail_the_verification(copy: Path) -> None:
    edit_feeding(copy, batch_size=64)
    (failed,) = (check for check in verify_bundle(copy) if not check.passed)
    assert failed.name == "signatures of head.tflite"
    assert "train.latents is (120, 256) float32, not (64, 256) float32" in failed.seen


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("batch_size", 64, "head: train.latents is (120, 256) float32, not (64, 256) float32"),
        ("labels", [None] * 20, "head: begin.counts is (50,) float32, not (20,) float32"),
        ("latent_shape", [7], "head: infer.latents is (-1, 256) float32, not (-1, 7) float32"),
        ("latent_dtype", "uint8", "features: extract gives latents as float32"),
        ("train_dtype", "uint8", "head: infer.latents is (-1, 256) float32, not (-1, 256) uint8"),
        ("input_size", 64, "features: extract.frames is (-1, 128, 128, 3) uint8, not (-1, 64, "),
        ("adapt_moments", True, "features: no adapt; no save; no restore"),
        ("rates", {}, "head: begin takes head_start, which is not among the rates"),
    ],
)
def test_a_learner_refuses_a_manifest_that_does_not_fit(
    copy: Path, runtime: str, field: str, value: object, said: str
) -> None:
    edit = edit_feeding if field == "batch_size" else edit_manifest
    edit(copy, **{field: value})
    with pytest.raises(BundleError) as caught:
        Learner.open(copy, runtime=runtime)
    message = str(caught.value)
    assert f"does not fit its {said}" in message
    assert message.endswith("; convert the bundle again")
    assert "\n" not in message


def test_no_input_is_a_scalar(demo: Path) -> None:
    """ai-edge-litert on 64-bit ARM crashes when an input is resized to an empty shape."""
    for name in ("features.tflite", "head.tflite"):
        for signature in Model(demo / name).signatures.values():
            assert () not in [tensor.shape for tensor in signature.inputs.values()]


def test_scalar_inputs_fail_the_verification(demo: Path) -> None:
    manifest = Bundle.open(demo).manifest
    features, head = (Model(demo / name) for name in ("features.tflite", "head.tflite"))
    train = head.signatures["train"]
    scalar = Tensor((), np.dtype(np.float32))
    head.signatures["train"] = replace(train, inputs={**train.inputs, "lr": scalar})
    (failed,) = (c for c in check_signatures(manifest, features, head) if not c.passed)
    assert failed.seen == "train.lr is () float32, not (1,) float32"


def test_swapped_models_fail_the_verification(copy: Path) -> None:
    shutil.copy(copy / "features.tflite", copy / "head.tflite")
    rehash(copy, "head.tflite")
    (failed,) = (check for check in verify_bundle(copy) if not check.passed)
    assert failed.seen.startswith("no infer; no begin")


def test_a_custom_op_is_found_by_name(copy: Path) -> None:
    # CONV_2D is op 3 of TensorFlow Lite's schema, ASSIGN_VARIABLE is 144.
    assert 3 in {op.code for op in read_ops(copy / "features.tflite")}
    assert 144 in {op.code for op in read_ops(copy / "head.tflite")}
    assert custom_ops(copy / "head.tflite") == []
    path = copy / "features.tflite"
    path.write_bytes(with_custom_op("FlexConv2DBackpropFilter"))
    rehash(copy, path.name)
    failed = [check for check in verify_bundle(copy) if not check.passed]
    assert [check.seen for check in failed] == ["FlexConv2DBackpropFilter"]


def with_custom_op(name: str) -> bytes:
    """Return a TFLite file with one op, laid out by hand: root, model, vector, op, name."""
    text = name.encode()
    parts = [
        (20).to_bytes(4, "little") + b"TFL3",  # 0: the root table is at 20
        (8).to_bytes(2, "little") + (8).to_bytes(2, "little"),  # 8: vtable, 8 bytes
        (0).to_bytes(2, "little") + (4).to_bytes(2, "little"),  # 12: field 0 absent, field 1 at +4
        (0).to_bytes(4, "little"),  # 16: padding
        (12).to_bytes(4, "little"),  # 20: model table; its vtable is at 20 - 12 = 8
        (4).to_bytes(4, "little"),  # 24: field 1, the vector is at 28
        (1).to_bytes(4, "little"),  # 28: one entry
        (16).to_bytes(4, "little"),  # 32: entry is at 48
        (8).to_bytes(2, "little") + (8).to_bytes(2, "little"),  # 36: vtable of the entry
        (0).to_bytes(2, "little") + (4).to_bytes(2, "little"),  # 40: field 1 at +4
        (0).to_bytes(4, "little"),  # 44: padding
        (12).to_bytes(4, "little"),  # 48: entry table; its vtable is at 36
        (4).to_bytes(4, "little"),  # 52: field 1, the string is at 56
        len(text).to_bytes(4, "little") + text + b"\0",  # 56
    ]
    return b"".join(parts)


@pytest.mark.parametrize("content", [b"", b"hello world", b"\x08\0\0\0TFL3" + b"\xff" * 20])
def test_files_that_are_not_models(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.tflite"
    path.write_bytes(content)
    with pytest.raises(BundleError, match="Expected a"):
        read_ops(path)
    with pytest.raises(BundleError, match="cannot load"):
        Model(path)


def test_the_manifest_stands_for_its_bundle(copy: Path) -> None:
    opened = Bundle.open(copy / "manifest.json")
    assert opened == Bundle.open(copy)
    assert opened.path == copy
    with Learner.open(copy / "manifest.json") as learner:
        assert learner.bundle.path == copy


def test_advice_for_a_missing_bundle_aims_at_nobodys_file(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    other = tmp_path / "other" / "manifest.json"  # a folder is not a manifest
    other.mkdir(parents=True)
    for path in (tmp_path, tmp_path / "notes.txt", other):
        with pytest.raises(BundleError, match="give the folder of a bundle") as caught:
            Bundle.open(path)
        assert "--out" not in str(caught.value)
    with pytest.raises(BundleError) as caught:
        Bundle.open(tmp_path / "my bundle")
    command = shlex.split(str(caught.value).rpartition("make one with: ")[2])
    assert command[-2:] == ["--out", str(tmp_path / "my bundle")]


@pytest.mark.parametrize("out", ["plain", "my things; touch x", "$HOME", "it's"])
def test_a_suggested_command_is_safe_to_paste(demo: Path, out: str) -> None:
    manifest = Bundle.open(demo).manifest
    words = shlex.split(suggested_simulation(Path(out), manifest, demo=False))
    assert words == ["lrtflite", "simulate", out, "--dataset", "folder:PICTURES"]

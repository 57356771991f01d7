"""The contract: one list of signatures for models, documents and clients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrtflite.bundle.bundle import Bundle
from lrtflite.contract.checking import breaches
from lrtflite.contract.signatures import (
    FEATURES,
    HEAD,
    SIGNATURES,
    Sizes,
    Spec,
    as_markdown,
    signatures_of,
)
from lrtflite.runtime.model import Model, Signature, Tensor

FLOAT, BYTE = np.dtype(np.float32), np.dtype(np.uint8)
SIZES = Sizes(
    input_size=128,
    latent_shape=(8, 8, 512),
    slots=50,
    batch_size=120,
    group=20,
    extracted="uint8",
    trained="float32",
)


def test_the_page_has_the_table_word_for_word() -> None:
    page = Path(__file__).parents[2] / "docs" / "bundle.md"
    assert as_markdown() in page.read_text(encoding="utf-8")


def test_the_table_has_a_row_for_each_signature() -> None:
    rows = as_markdown().splitlines()
    assert len(rows) == 2 + len(SIGNATURES)
    assert (
        "| head | `infer` | `latents` [n, ...] as trained | `probabilities` [n, C], "
        "`familiarity` [n], optional | answer; 0 for slots that have not learned |"
    ) in rows
    assert (
        "| head | `save` | `zero` [1] | named tensors | give all that outlives a session |" in rows
    )


def test_every_signature_has_an_input() -> None:
    for spec in SIGNATURES:
        assert spec.inputs or spec.tensors == "inputs", spec.name


@pytest.mark.parametrize(
    ("spec", "shape", "dtype"),
    [
        (Spec((1,)), (1,), FLOAT),
        (Spec(("C",)), (50,), FLOAT),
        (Spec(("n", "S", "S", 3), "uint8"), (-1, 128, 128, 3), BYTE),
        (Spec(("G", "S", "S", 3), "uint8"), (20, 128, 128, 3), BYTE),
        (Spec(("n", "latent"), "extracted"), (-1, 8, 8, 512), BYTE),
        (Spec(("B", "latent"), "trained"), (120, 8, 8, 512), FLOAT),
        (Spec(("B", "C")), (120, 50), FLOAT),
    ],
)
def test_letters_stand_for_sizes(
    spec: Spec, shape: tuple[int, ...], dtype: np.dtype[np.generic]
) -> None:
    assert SIZES.tensor(spec) == Tensor(shape, dtype)


def test_the_demo_bundle_keeps_it(demo: Path, runtime: str) -> None:
    manifest = Bundle.open(demo).manifest
    for part in (FEATURES, HEAD):
        model = Model(demo / f"{part}.tflite", runtime=runtime)
        assert breaches(manifest, part, model.signatures) == []


def test_outputs_of_the_demo_bundle_have_the_contracts_shapes(demo: Path) -> None:
    sizes = Sizes.of(Bundle.open(demo).manifest)
    for part in (FEATURES, HEAD):
        found = Model(demo / f"{part}.tflite").signatures
        for name, signature in found.items():
            for output, spec in signatures_of(part)[name].outputs.items():
                assert signature.outputs[output] == sizes.tensor(spec), f"{name}.{output}"


@pytest.fixture
def head(demo: Path) -> dict[str, Signature]:
    return dict(Model(demo / "head.tflite").signatures)


def said(demo: Path, head: dict[str, Signature]) -> list[str]:
    return breaches(Bundle.open(demo).manifest, HEAD, head)


def test_missing_and_unknown_signatures_are_named(demo: Path, head: dict[str, Signature]) -> None:
    odd = {name: head[name] for name in head if name not in ("train", "gather", "forget")}
    odd["dream"] = head["begin"]
    assert said(demo, odd) == [
        "no forget",
        "no train or gather",
        "no gather, which the feeding asks for",
        "dream is not in the contract",
    ]


def test_inputs_that_are_not_the_contracts(demo: Path, head: dict[str, Signature]) -> None:
    number, wide = Tensor((1,), FLOAT), Tensor((2,), FLOAT)
    infer, begin, save = head["infer"], head["begin"], head["save"]
    for name, changed, expected in (
        ("save", replace(save, inputs={}), "save has no input, which Java refuses to call"),
        (
            "infer",
            replace(infer, inputs={**infer.inputs, "heat": number}),
            "infer takes heat, which is not in the contract",
        ),
        (
            "begin",
            replace(begin, inputs={**begin.inputs, "heat": number}),
            "begin takes heat, which is not among the rates",
        ),
        (
            "begin",
            replace(begin, inputs={**begin.inputs, "head_start": wide}),
            "begin.head_start is (2,) float32, not (1,) float32",
        ),
        ("begin", replace(begin, outputs={}), "begin has no output trains"),
        (
            "infer",
            replace(infer, outputs={"probabilities": Tensor((-1, 50), BYTE)}),
            "infer gives probabilities as uint8",
        ),
        (
            "save",
            replace(save, outputs={**save.outputs, "more": number}),
            "restore does not take what save gives",
        ),
    ):
        assert expected in said(demo, {**head, name: changed})


def test_features_that_save_and_do_not_restore(demo: Path) -> None:
    """Both are optional with frozen moments, but one is useless without the other."""
    zero, moment = {"zero": Tensor((1,), FLOAT)}, {"mean": Tensor((8,), FLOAT)}
    features = {
        **Model(demo / "features.tflite").signatures,
        "save": Signature(zero, moment),
    }
    manifest = Bundle.open(demo).manifest
    assert breaches(manifest, FEATURES, features) == ["restore does not take what save gives"]


def test_names_are_unique_in_each_model() -> None:
    assert len(signatures_of(FEATURES)) + len(signatures_of(HEAD)) == len(SIGNATURES)

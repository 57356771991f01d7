"""The golden session notices a closed form whose covariance is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from keras_reference import small_network
from lrtflite.contract.signatures import ZERO
from lrtflite.runtime.model import Signature
from lrtflite.verification.verify import check_golden
from lrtflite_converters.conversion.golden import golden_vectors
from lrtflite_converters.conversion.writing import SplitNetwork, split_network
from lrtflite_converters.request.options import Conversion


class Blind:
    """A head that keeps its sums and solves as if no two features varied together."""

    def __init__(self, parts: SplitNetwork) -> None:
        self.head = parts.head

    @property
    def signatures(self) -> Mapping[str, Signature]:
        return self.head.signatures

    def run(self, signature: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        if signature != "consolidate":
            return self.head.run(signature, **inputs)
        state = self.head.run("save", zero=ZERO)
        sums, counts = state["class_sums"], np.maximum(state["class_counts"], 1)
        # All scatter is that of the class means, so none is left within classes.
        between = (sums.T / counts) @ sums
        self.head.run("restore", **{**state, "scatter": between})
        found = self.head.run(signature, **inputs)
        solved = self.head.run("save", zero=ZERO)
        self.head.run("restore", **{**solved, "scatter": state["scatter"]})
        return found


@pytest.mark.parametrize("classes", [2, 50])
def test_a_wrong_covariance_fails_verification(classes: int) -> None:
    options = Conversion(strategy="lda", classes=classes)
    parts = split_network(small_network(seed=0, input_size=32), options)
    golden = golden_vectors(parts.features, parts.head, parts.training)
    start = parts.head.run("save", zero=ZERO)
    assert all(check.passed for check in check_golden(golden, parts.features, parts.head))
    parts.head.run("restore", **start)
    wrong = check_golden(golden, parts.features, Blind(parts))
    failed = {check.name for check in wrong if not check.passed}
    assert "state after training" in failed

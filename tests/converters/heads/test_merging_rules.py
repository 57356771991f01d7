"""The rules by which the tensors of a head merge."""

from __future__ import annotations

from functools import cache

import pytest

from keras_reference import small_network
from lrtflite.bundle.manifest import MERGING, REFUSE, SUM_BY_CLASS
from lrtflite.host.network import Network
from lrtflite_converters.conversion.writing import split_network
from lrtflite_converters.request.options import Conversion

SLOTS = 3


@cache
def network() -> Network:
    return small_network(seed=0, input_size=32)


@pytest.mark.parametrize("strategy", ["lda", "ncm", "cwr"])
def test_every_tensor_has_a_rule_that_fits_it(strategy: str) -> None:
    options = Conversion(strategy=strategy, classes=SLOTS)
    head = split_network(network(), options).head
    rules = head.merging
    assert set(rules) == set(head.state)
    assert set(rules.values()) <= set(MERGING)
    assert (REFUSE in rules.values()) == (strategy == "cwr")
    by_class = {name for name, rule in rules.items() if rule == SUM_BY_CLASS}
    assert by_class == {"class_sums", "class_counts"}
    for name in by_class:
        assert head.state[name].shape[0] == SLOTS

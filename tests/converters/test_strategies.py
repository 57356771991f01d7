"""Strategies are chosen and refused by name, before TensorFlow is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lrtflite.errors import InputError, ModelError
from lrtflite.layer_names import REPLAY_LAYERS
from lrtflite_converters.heads import HEADS
from lrtflite_converters.options import ExportOptions
from lrtflite_converters.regularisers import REGULARISERS
from lrtflite_converters.strategies import STRATEGIES

RESTING = ("conv6/sep", "pool6")


@pytest.mark.parametrize("layer", REPLAY_LAYERS)
def test_each_layer_takes_the_strategy_that_fits(layer: str) -> None:
    fits, other = ("cwr", "ar1free") if layer in RESTING else ("ar1free", "cwr")
    assert ExportOptions(replay_layer=layer).strategy_name == fits
    assert ExportOptions(replay_layer=layer, strategy=fits).strategy_name == fits
    where = "below conv6/sep" if layer in RESTING else "at conv6/sep or pool6"
    message = f"the strategy '{other}' {where}, got the replay layer '{layer}'; .*{fits}"
    with pytest.raises(ModelError, match=message):
        ExportOptions(replay_layer=layer, strategy=other)


def test_an_unknown_strategy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match=r"a strategy of cwr, ar1free.*, got 'ar1'"):
        ExportOptions(strategy="ar1")


def test_every_strategy_names_a_head_and_a_regulariser() -> None:
    for strategy in STRATEGIES.values():
        HEADS.check(strategy.head)
        REGULARISERS.check(strategy.regulariser)


UNLOADED = """
import sys
from lrtflite.errors import ModelError
from lrtflite_converters.options import ExportOptions
ExportOptions()
ExportOptions(replay_layer="conv5_4/dw", strategy="ar1free", adapt_moments=True)
refused = 0
for layer, strategy in (("conv5_4/dw", "cwr"), ("pool6", "ar1free")):
    try:
        ExportOptions(replay_layer=layer, strategy=strategy)
    except ModelError as error:
        refused += repr(strategy) in str(error)
loaded = {"tensorflow", "tf_keras", "keras"}.intersection(sys.modules)
sys.exit(f"loaded {sorted(loaded)}, refused {refused}" if loaded or refused != 2 else 0)
"""


def test_options_are_checked_without_tensorflow() -> None:
    done = subprocess.run([sys.executable, "-c", UNLOADED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

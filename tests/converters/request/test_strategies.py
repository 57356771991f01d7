"""Strategies are chosen and refused by name, before TensorFlow is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lrtflite.errors import InputError, ModelError
from lrtflite.networks.mobilenet_v1 import REPLAY_LAYERS
from lrtflite_converters.heads import HEADS
from lrtflite_converters.request.options import Conversion
from lrtflite_converters.request.strategies import STRATEGIES
from lrtflite_converters.training.regularisers import REGULARISERS

RESTING = ("conv6/sep", "pool6")


@pytest.mark.parametrize("layer", REPLAY_LAYERS)
def test_each_layer_takes_the_strategy_that_fits(layer: str) -> None:
    fits, other = ("cwr", "ar1free") if layer in RESTING else ("ar1free", "cwr")
    assert Conversion(replay_layer=layer).strategy_name == fits
    assert Conversion(replay_layer=layer, strategy=fits).strategy_name == fits
    where = "below conv6/sep" if layer in RESTING else "at conv6/sep or pool6"
    message = f"the strategy '{other}' {where}, got the replay layer '{layer}'; .*{fits}"
    with pytest.raises(ModelError, match=message):
        Conversion(replay_layer=layer, strategy=other)


def test_an_unknown_strategy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match=r"a strategy of cwr, ar1free.*, got 'ar2'; did you mean"):
        Conversion(strategy="ar2")


# Strategy -> whether it works above a lower layer, and whether it works where nothing but the last
# layer trains.
PLACES = {
    "cwr": (False, True),
    "ar1free": (True, False),
    "ar1": (True, False),
    "ewc": (True, True),
    "lwf": (True, True),
    "naive": (True, True),
    "lda": (True, True),
    "dslda": (False, True),
    "ncm": (False, True),
}


def test_every_strategy_is_refused_by_name_where_it_does_not_fit() -> None:
    assert set(PLACES) == set(STRATEGIES)
    for strategy, fits in PLACES.items():
        for layer, fit in zip(("conv5_4/dw", "pool6"), fits):
            if fit:
                assert Conversion(strategy=strategy, replay_layer=layer).strategy == strategy
                continue
            with pytest.raises(ModelError, match=f"the strategy '{strategy}' .*{layer}"):
                Conversion(strategy=strategy, replay_layer=layer)


def test_averaged_latents_are_named_where_they_leave_nothing_to_train() -> None:
    """The layer itself would fit, so the message must not send the user to a lower one."""
    for strategy in ("ar1free", "ar1"):
        message = f"no --pooled with the strategy '{strategy}'.*leave --pooled out.* uses 'cwr'"
        with pytest.raises(ModelError, match=message):
            Conversion(strategy=strategy, replay_layer="conv5_4/dw", pooled=True)
        with pytest.raises(ModelError, match="a layer between images and pool6 with --pooled"):
            Conversion(strategy=strategy, replay_layer="pool6", pooled=True)
    with pytest.raises(ModelError, match=r"with --pooled at conv5_4/dw.*leave --pooled out"):
        Conversion(replay_layer="conv5_4/dw", pooled=True, train_depthwise=False)


@pytest.mark.parametrize("strategy", ["ar1free", "ar1", "ewc", "lwf", "naive"])
@pytest.mark.parametrize("layer", ["images", "conv5_4/dw"])
def test_replay_does_not_depend_on_the_strategy(strategy: str, layer: str) -> None:
    for size in (0, 10):
        options = Conversion(strategy=strategy, replay_layer=layer, replay_size=size)
        assert options.memory[0] == size


def test_a_closed_form_above_a_trunk_needs_a_memory() -> None:
    assert Conversion(strategy="lda", replay_layer="conv5_4/dw").memory[0] == 1500
    assert Conversion(strategy="lda").memory[0] == 0
    with pytest.raises(ModelError, match="a --replay-size of at least 1 for 'lda' at conv5_4/dw"):
        Conversion(strategy="lda", replay_layer="conv5_4/dw", replay_size=0)


def test_every_strategy_names_a_head_and_a_regulariser() -> None:
    for strategy in STRATEGIES.values():
        HEADS.check(strategy.head)
        if strategy.trunk_head:
            HEADS.check(strategy.trunk_head)
        REGULARISERS.check(strategy.regulariser)


UNLOADED = """
import sys
from lrtflite.errors import ModelError
from lrtflite_converters.request.options import Conversion
Conversion()
Conversion(replay_layer="conv5_4/dw", strategy="ar1free", adapt_moments=True)
refused = 0
for layer, strategy in (("conv5_4/dw", "cwr"), ("pool6", "ar1free")):
    try:
        Conversion(replay_layer=layer, strategy=strategy)
    except ModelError as error:
        refused += repr(strategy) in str(error)
loaded = {"tensorflow", "tf_keras", "keras"}.intersection(sys.modules)
sys.exit(f"loaded {sorted(loaded)}, refused {refused}" if loaded or refused != 2 else 0)
"""


def test_options_are_checked_without_tensorflow() -> None:
    done = subprocess.run([sys.executable, "-c", UNLOADED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

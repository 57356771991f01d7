"""Quantise features: fold, prepare as the mode says, convert, and compare with the float ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from lrtflite.bundle.quantisation import Quantisation
from lrtflite_converters.features.features import Features
from lrtflite_converters.quantise import MODES
from lrtflite_converters.quantise.calibration import Calibration
from lrtflite_converters.quantise.features import QuantisedFeatures
from lrtflite_converters.quantise.folding import fold
from lrtflite_converters.quantise.int8 import oldest_runtime, to_int8
from lrtflite_converters.quantise.judging import agreement, powers, signal_to_noise
from lrtflite_converters.quantise.options import QuantiseOptions
from lrtflite_converters.quantise.preparation import Preparation
from lrtflite_converters.quantise.scaling import FrameScaling
from lrtflite_converters.training.trunk import Trunk

Stage = Callable[[str], None]
# Frames that are compared at a time, so that latents of low layers fit into RAM.
AT_ONCE = 20


def quantise(
    features: Features,
    replay_layer: str,
    options: QuantiseOptions,
    calibration: Calibration,
    *,
    pooled: bool,
    stage: Stage,
) -> QuantisedFeatures:
    """Return int8 features in the place of float ones."""
    scaling = FrameScaling.of(features.network.scale)
    folded = fold(features.below)
    preparation = Preparation(
        model=folded,
        frames=calibration.frames,
        scale=features.network.scale,
        scaling=scaling,
        epochs=options.epoch_count,
        stage=stage,
    )
    MODES.choose(options.mode)(preparation)
    stage(f"quantising the features with {len(calibration.frames)} frames")
    content = to_int8(folded, calibration.frames, scaling, crops=features.crops)
    return QuantisedFeatures(
        features.network,
        replay_layer,
        content,
        scaling,
        pooled=pooled,
        second=features.second,
        crops=features.crops,
    )


def compare(
    quantised: QuantisedFeatures,
    exact: Features,
    trunk: Trunk,
    options: QuantiseOptions,
    calibration: Calibration,
) -> Quantisation:
    """Return what quantisation changed; `trunk` turns latents of both into feature vectors."""
    frames = calibration.frames
    signal, pairs = np.zeros(2), []
    for start in range(0, len(frames), AT_ONCE):
        few = frames[start : start + AT_ONCE]
        latents = exact.run("extract", frames=few)["latents"]
        found = np.asarray(quantised.dequantise(quantised.run("extract", frames=few)["latents"]))
        signal += powers(latents, found)
        pairs.append([trunk.infer_scaled(tf.constant(each)).numpy() for each in (latents, found)])
    before, after = (np.concatenate(each) for each in zip(*pairs))
    return Quantisation(
        mode=options.mode,
        scale=quantised.scale,
        zero_point=quantised.zero_point,
        calibration=calibration.name,
        frames=len(frames),
        epochs=options.epoch_count,
        snr_db=round(signal_to_noise(float(signal[0]), float(signal[1])), 2),
        agreement=agreement(before, after, calibration.labels),
        float_bytes=len(exact.to_bytes()),
        int8_bytes=len(quantised.content),
        runtime=oldest_runtime(quantised.content),
    )

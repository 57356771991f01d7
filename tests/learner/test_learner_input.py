"""Frames, latents and labels that do not fit are refused in one line and leave no trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from learning import DEFAULTS, TRAINING, fingerprint, frames_of, latents_of
from lrtflite import Learner
from lrtflite.errors import InputError

Refused = list[tuple[str, Callable[[], object]]]


@pytest.mark.parametrize("kind", ["latents", "frames", "labels"])
def test_bad_input_leaves_the_learner_as_it_was(
    open_learner: Callable[..., Learner], kind: str
) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    before = fingerprint(learner)
    wrong = {"latents": bad_latents, "frames": bad_frames, "labels": bad_labels}[kind](learner)
    for message, call in wrong:
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
        assert fingerprint(learner) == before


def bad_latents(learner: Learner) -> Refused:
    good, nan = latents_of(0), latents_of(0)
    nan[3, 5] = np.nan
    huge, negative = latents_of(0), latents_of(0)
    huge[4, 7], negative[2, 0] = 1e6, -3
    return [
        (r"\(n, 256\) of float32", lambda: learner.learn_latents(good[:, :100], "a")),
        (r"\(n, 256\) of float32", lambda: learner.learn_latents(good.astype(np.float64), "a")),
        ("NaN", lambda: learner.learn_latents(nan, "a")),
        ("NaN", lambda: learner.predict_latents(nan)),
        ("from 0 to 6.*got 1e[+]06 in latent 4", lambda: learner.learn_latents(huge, "a")),
        ("from 0 to 6.*got -3 in latent 2", lambda: learner.probabilities(negative)),
        ("at least 1", lambda: learner.learn_latents(good[:0], "a")),
        (
            "diverged",
            lambda: learner.learn_latents(good, "a", training=DEFAULTS.with_options(lr=1e30)),
        ),
        ("top .* got '3'", lambda: learner.predict_latents(good, top="3")),  # type: ignore[arg-type]
        ("rows that differ", lambda: learner.predict_latents([[1, 2], [3]])),  # type: ignore[arg-type]
    ]


def bad_frames(learner: Learner) -> Refused:
    frames = frames_of(0)
    return [
        ("empty session", lambda: learner.learn(iter(()), "a")),
        ("128", lambda: learner.learn(frames[:, :64], "a")),
        ("uint8", lambda: learner.learn(frames.astype(np.float32), "a")),
        ("uint8", lambda: learner.predict(np.full((128, 128, 3), np.nan))),
        ("path or text 'mug.jpg'", lambda: learner.learn("mug.jpg", "a")),  # type: ignore[arg-type]
        ("path or text .*mug", lambda: learner.learn([Path("mug.jpg")], "a")),  # type: ignore[list-item]
        ("path or text 'mug.jpg'", lambda: learner.predict("mug.jpg")),  # type: ignore[arg-type]
        ("top as a whole number of at least 1, got -1", lambda: learner.predict(frames, top=-1)),
        ("an iterator", lambda: learner.learn(None, "a")),  # type: ignore[arg-type]
        ("one frame", lambda: learner.learn([frames, frames], "a")),
        ("an iterator", lambda: learner.learn(np.array(5), "a")),
        ("rows that differ", lambda: learner.learn([[[1], [1, 2]]], "a")),  # type: ignore[list-item]
    ]


def bad_labels(learner: Learner) -> Refused:
    good = latents_of(0)
    return [
        ("slot .* from 0 to 49, got 50", lambda: learner.learn_latents(good, slot=50)),
        ("2 for 45 frames", lambda: learner.learn_latents(good, ["a", "b"])),
        ("slot .* got True", lambda: learner.forget(slot=True)),
        ("slot .* got 'a'", lambda: learner.rename(new="b", slot="a")),  # type: ignore[arg-type]
        ("got 9, which is free", lambda: learner.forget(slot=9)),
        ("slot=, got both", lambda: learner.learn_latents(good, "a", slot=0)),
        ("slot=, got neither", lambda: learner.forget()),
        ("at most 200 characters", lambda: learner.learn_latents(good, "x" * 201)),
        ("Expected a label", lambda: learner.learn_latents(good, np.array("a"))),
        ("Expected a label", lambda: learner.learn_latents(good, None)),
        ("label of one line", lambda: learner.learn_latents(good, [["a"], ["b"]])),  # type: ignore[list-item]
        ("known label", lambda: learner.forget("nobody")),
        ("known label", lambda: learner.rename("nobody", "b")),
    ]


def test_a_bad_label_is_refused_before_the_camera_records(
    open_learner: Callable[..., Learner],
) -> None:
    camera = (pytest.fail("a frame was recorded") for _ in range(1))
    for wrong in ("x" * 201, True, ["a", 1.5]):
        with pytest.raises(InputError, match="Expected a label of"):
            open_learner().learn(camera, wrong)  # type: ignore[arg-type]


def test_a_training_of_another_bundle(open_learner: Callable[..., Learner]) -> None:
    learner = open_learner()
    own = learner.training
    feeding = replace(own.feeding, batch_size=own.feeding.batch_size + 1)
    fewer = {name: rate for name, rate in own.rates.items() if name != next(iter(own.rates))}
    for other in (replace(own, feeding=feeding), replace(own, rates=fewer)):
        with pytest.raises(InputError, match="a training for this bundle, got one for another"):
            learner.learn_latents(latents_of(0), "cup", training=other)
    learner.learn_latents(latents_of(0), "cup", training=own.with_options(epochs=1, lr=0.5))

"""Fine-tuning, EWC and LwF on a plain softmax layer, against numpy written from the formulas."""

from __future__ import annotations

import numpy as np
import pytest

from strategy_head import drawn_session, run_session, saved, vector_head

SLOTS, FEATURES, SIZE, STEPS = 5, 6, 8, 4
RATES = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}
SESSIONS = ([0, 1, 2], [3], [1, 4])


def sessions() -> list[tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]]:
    rng = np.random.default_rng(0)
    return [drawn_session(rng, each, SLOTS, FEATURES, SIZE, STEPS) for each in SESSIONS]


def softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Reference:
    """A softmax layer over the classes that were learned or are coming, in float64."""

    def __init__(self, *, penalty: float = 0.0, max_f: float = 1.0, distil_most: float = 0.0):
        self.w, self.past = np.zeros((SLOTS, FEATURES)), np.zeros(SLOTS)
        self.fisher = np.zeros_like(self.w)
        self.penalty, self.max_f, self.distil_most = penalty, max_f, distil_most

    def session(self, counts: np.ndarray, batches: list) -> list[float]:
        old, knew = self.w.copy(), np.flatnonzero(self.past)
        classes = np.flatnonzero((self.past > 0) | (counts > 0))
        before = self.past.sum()
        share = min(self.distil_most, before / (before + counts.sum()))
        velocity, losses = np.zeros_like(self.w), []
        for x, t in batches:
            wanted = (1 - share) * t.astype(float)
            if len(knew):
                wanted[:, knew] += share * softmax(x.astype(float) @ old[knew].T)
            p = np.zeros((len(x), SLOTS))
            p[:, classes] = softmax(x.astype(float) @ self.w[classes].T)
            losses.append(-(wanted[:, classes] * np.log(p[:, classes])).sum(-1).mean())
            gradient = (p * wanted.sum(-1, keepdims=True) - wanted).T @ x / len(x)
            gradient += self.penalty * self.fisher * (self.w - old)
            velocity = RATES["momentum"] * velocity + gradient + RATES["weight_decay"] * self.w
            self.w = self.w - RATES["lr"] * velocity
        self.past = self.past + counts
        return losses

    def fisher_of(self, batches: list) -> None:
        """Add the mean of squared gradients of mini-batches, without empty places."""
        classes = np.flatnonzero(self.past > 0)
        squares = []
        for x, t in batches:
            filled = t.sum(-1) > 0
            x, t = x[filled].astype(float), t[filled]
            p = np.zeros((len(x), SLOTS))
            p[:, classes] = softmax(x @ self.w[classes].T)
            squares.append(((p - t).T @ x / len(x)) ** 2)
        self.fisher = np.minimum(self.fisher + np.mean(squares, axis=0), self.max_f)


def test_fine_tuning_against_numpy() -> None:
    head, reference = vector_head("plain", SLOTS, FEATURES, batch_size=SIZE), Reference()
    for counts, batches in sessions():
        losses = run_session(head, counts, batches, (), RATES)
        np.testing.assert_allclose(losses, reference.session(counts, batches), rtol=1e-5)
        np.testing.assert_allclose(saved(head)["weights"], reference.w, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(saved(head)["past"], reference.past)
    # Slots that never took part kept their weights of zero.
    first = vector_head("plain", SLOTS, FEATURES, batch_size=SIZE)
    counts, batches = sessions()[0]
    run_session(first, counts, batches, (), RATES)
    np.testing.assert_array_equal(saved(first)["weights"][[3, 4]], 0)
    probe = np.ones((1, FEATURES), "f")
    answer = first.run("infer", latents=probe)["probabilities"][0]
    np.testing.assert_allclose(
        answer[:3], softmax(saved(first)["weights"][:3] @ probe[0]), rtol=1e-5
    )
    np.testing.assert_array_equal(answer[3:], 0)


def with_empty_places(batches: list) -> list:
    """Return the mini-batches as `gather` sees them; the last one is half empty."""
    x, t = (array.copy() for array in batches[-1])
    x[SIZE // 2 :], t[SIZE // 2 :] = 0, 0
    return [*batches[:-1], (x, t)]


def test_ewc_against_numpy() -> None:
    rates = {**RATES, "penalty": 50.0, "max_f": 0.02, "importance_rate": 1.0}
    head = vector_head("plain", SLOTS, FEATURES, batch_size=SIZE, regulariser="ewc")
    reference = Reference(penalty=50.0, max_f=0.02)
    for counts, batches in sessions():
        gathered = with_empty_places(batches)
        losses = run_session(head, counts, batches, gathered, rates)
        np.testing.assert_allclose(losses, reference.session(counts, batches), rtol=1e-4)
        reference.fisher_of(gathered)
        found = saved(head)
        np.testing.assert_allclose(found["weights"], reference.w, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(found["weights_fisher"], reference.fisher, rtol=1e-3, atol=1e-7)
    # Some weights reach the limit and some do not.
    assert (reference.fisher == 0.02).any()
    assert (reference.fisher < 0.01).any()


def test_ewc_moves_important_weights_less_than_fine_tuning() -> None:
    rates = {**RATES, "penalty": 200.0, "max_f": 0.05, "importance_rate": 1.0}
    heads = {
        kind: vector_head("plain", SLOTS, FEATURES, batch_size=SIZE, regulariser=kind)
        for kind in ("none", "ewc")
    }
    (counts, batches), second, _ = sessions()
    moved = {}
    for kind, head in heads.items():
        run_session(head, counts, batches, batches, rates)
        before = saved(head)["weights"]
        run_session(head, *second, second[1], rates)
        moved[kind] = np.abs(saved(head)["weights"] - before)[:3]
    assert moved["ewc"].mean() < 0.7 * moved["none"].mean()


def test_a_class_that_is_forgotten_is_not_protected() -> None:
    rates = {**RATES, "penalty": 1.0, "max_f": 1.0, "importance_rate": 1.0}
    head = vector_head("plain", SLOTS, FEATURES, batch_size=SIZE, regulariser="ewc")
    counts, batches = sessions()[0]
    run_session(head, counts, batches, batches, rates)
    assert saved(head)["weights_fisher"][1].max() > 0
    left = head.run("forget", mask=np.eye(SLOTS, dtype="f")[1])["learned"]
    np.testing.assert_array_equal(left, [1, 0, 1, 0, 0])
    for name in ("weights", "weights_fisher"):
        np.testing.assert_array_equal(saved(head)[name][1], 0)
        assert np.abs(saved(head)[name][0]).max() > 0


@pytest.mark.parametrize("distil_most", [0.9, 0.1, 0.0])
def test_lwf_against_numpy(distil_most: float) -> None:
    rates = {**RATES, "distil_most": distil_most}
    head = vector_head("lwf", SLOTS, FEATURES, batch_size=SIZE)
    reference = Reference(distil_most=distil_most)
    for counts, batches in sessions():
        losses = run_session(head, counts, batches, (), rates)
        np.testing.assert_allclose(losses, reference.session(counts, batches), rtol=1e-4)
        np.testing.assert_allclose(saved(head)["weights"], reference.w, rtol=1e-3, atol=1e-5)


def test_lwf_remembers_more_than_fine_tuning() -> None:
    rng = np.random.default_rng(1)
    # Classes have much in common, so a class that trains alone takes the answers of all others.
    centres = rng.normal(0, 1, FEATURES) + rng.normal(0, 0.7, (3, FEATURES))

    def of(classes: list[int]) -> tuple[np.ndarray, np.ndarray]:
        drawn = rng.choice(classes, SIZE)
        x = centres[drawn] + rng.normal(0, 0.3, (SIZE, FEATURES))
        return x.astype("f"), np.eye(SLOTS, dtype="f")[drawn]

    right = {}
    for kind in ("plain", "lwf"):
        head = vector_head(kind, SLOTS, FEATURES, batch_size=SIZE)
        for classes in ([0, 1], [2]):
            counts = np.isin(np.arange(SLOTS), classes).astype("f") * SIZE
            batches = [of(classes) for _ in range(60)]
            run_session(head, counts, batches, (), {**RATES, "distil_most": 0.9})
        probe, targets = of([0, 1])
        answers = head.run("infer", latents=probe)["probabilities"]
        right[kind] = (answers.argmax(1) == targets.argmax(1)).mean()
    assert right["plain"] < 0.5
    assert right["lwf"] > right["plain"] + 0.3


def test_the_first_session_may_have_its_own_rate() -> None:
    counts, batches = sessions()[0]
    rates = {**RATES, "first_lr": 0.001}
    first = vector_head("plain", SLOTS, FEATURES, batch_size=SIZE, first_rates=True)
    run_session(first, counts, batches, (), rates)
    slow = vector_head("plain", SLOTS, FEATURES, batch_size=SIZE)
    run_session(slow, counts, batches, (), {**RATES, "lr": 0.001})
    np.testing.assert_allclose(
        saved(first)["weights"], saved(slow)["weights"], rtol=1e-5, atol=1e-7
    )
    # From the second session on, both have the same rate.
    for head in (first, slow):
        run_session(head, counts, batches, (), rates)
    np.testing.assert_allclose(
        saved(first)["weights"], saved(slow)["weights"], rtol=1e-5, atol=1e-7
    )

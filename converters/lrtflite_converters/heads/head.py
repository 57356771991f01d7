"""The interface of a head: a module that follows the contract, with any algorithm."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite.bundle.manifest import REFUSE
from lrtflite.contract.signatures import HEAD, Sizes, signatures_of
from lrtflite.errors import ConversionError
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.tflite.signature import Outputs, SignedModule, saved
from lrtflite_converters.training.regularisers.regulariser import Regulariser
from lrtflite_converters.training.trunk import Trunk

Rates = Mapping[str, Tensor]
# Number of classes below which a trunk rests, in heads that have no rate for it.
REST_BELOW = 2.0


@dataclass(frozen=True)
class HeadPlan:
    """The parts of every head: C class slots, mini-batches of B patterns, and a trunk.

    `moments_adapt` is True if the Batch Renorm moments below the replay layer follow the data.
    `regulariser` protects what trains. With `first_rates`, the first session has its own rates.
    `original` is the chain from the latents to the pooled layer, for heads that keep it frozen.
    `parts` are the lengths of the vectors in a latent, where two layers give one.
    """

    slots: int
    batch_size: int
    trunk: Trunk
    moments_adapt: bool = False
    regulariser: Regulariser = field(default_factory=Regulariser)
    first_rates: bool = False
    original: Chain | None = None
    parts: tuple[int, ...] = ()


class Head(SignedModule):
    """A head. A subclass makes its variables in `build` and overrides the methods that it has.

    `scalars` are the names of the rates that each signature takes. `merging` is the rule for
    merging each tensor of the state with that of another device, one of
    `lrtflite.bundle.manifest.MERGING`. In TensorFlow itself, `run` calls the signatures by name.
    """

    scalars: Mapping[str, Sequence[str]] = {}
    # True for a head whose `gather` is told which patterns come from the memory.
    tells_replayed = False
    # Number of golden sessions after the first two that it takes until everything has trained once.
    golden_sessions = 0

    def __init__(self, plan: HeadPlan) -> None:
        super().__init__()
        self.slots, self.trunk = plan.slots, plan.trunk
        # True if more than the last layer can learn: weights of a trunk, or moments below it.
        self.has_more = plan.trunk.trains or plan.moments_adapt
        self.build()
        self._check_variables()
        self._declare(plan)

    @abstractmethod
    def build(self) -> None:
        """Make the variables."""

    @property
    @abstractmethod
    def state(self) -> dict[str, tf.Variable]:
        """Return the variables that are kept between sessions, by name."""

    @property
    def merging(self) -> dict[str, str]:
        return dict.fromkeys(self.state, REFUSE)

    @abstractmethod
    def learned(self) -> Tensor:
        """Return (C,) float32: 1 for each slot that has learned a class, else 0."""

    @abstractmethod
    def infer(self, latents: Tensor) -> Outputs:
        """Return `probabilities` (n, C), and `familiarity` (n,) if the head has it."""

    def begin(self, counts: Tensor, rates: Rates) -> None:
        """Start a session; `counts` (C,) has the number of patterns of each class."""

    def train(self, latents: Tensor, targets: Tensor, rates: Rates) -> Outputs:
        """Take a step; return `loss` and `accuracy`."""
        raise TypeError("Expected a head with train, got one without; override train")

    def train_last(self, latents: Tensor, targets: Tensor, rates: Rates) -> Outputs:
        """Take a step that moves only the last layer."""
        raise TypeError("Expected a head with train_last, got one without; override train_last")

    def gather(self, latents: Tensor, targets: Tensor, rates: Rates) -> None:
        """Process patterns after the last step; a row of zeros in `targets` is an empty place."""
        raise TypeError("Expected a head with gather, got one without; override gather")

    def gather_from(self, latents: Tensor, targets: Tensor, rates: Rates, replayed: Tensor) -> None:
        """Do the same in a head that `tells_replayed`: 1 for patterns of the memory, else 0."""
        raise TypeError("Expected a head with gather_from, got one without; override gather_from")

    @abstractmethod
    def consolidate(self, counts: Tensor, rates: Rates) -> None:
        """End the session."""

    @abstractmethod
    def forget(self, mask: Tensor) -> None:
        """Unlearn the classes whose mask is 1."""

    def start_from(self, weights: NDArray[np.float32], counts: NDArray[np.float32]) -> None:
        """Start from a classifier (C, F) of the host, with the pattern counts (C,) of its training.

        By default, a head ignores it and starts from scratch.
        """

    def more_trains(self, counts: Tensor, rates: Rates) -> Tensor:
        """Return 1 if the trunk trains in a session with these counts, 0 if it rests.

        It rests while there are fewer than `rest_below` classes, 2 by default. With a single class
        the loss would fall fastest if every picture looked like that class, and no other class
        prevents it. Moments that adapt rest with it.
        """
        least = rates.get("rest_below", REST_BELOW) - 0.5
        return tf.cast(tf.reduce_sum(present(counts)) > least, tf.float32) * float(self.has_more)

    def _declare(self, plan: HeadPlan) -> None:
        dtype = np.dtype(plan.trunk.latent_dtype.as_numpy_dtype).name
        sizes = Sizes(
            input_size=0,  # a head takes no frames
            latent_shape=plan.trunk.latent_shape,
            slots=plan.slots,
            batch_size=plan.batch_size,
            group=0,
            trained=dtype,
        )
        functions: dict[str, Callable[..., Outputs]] = {
            "infer": self.infer,
            "begin": self._begin,
            "train": self.train,
            "train_last": self.train_last,
            "gather": self._gather,
            "consolidate": self._consolidate,
            "forget": self._forget,
            "save": lambda zero: saved(self.state, zero),
            "restore": self._restore,
        }
        for name, spec in signatures_of(HEAD).items():
            if spec.optional and not self._overrides(name):
                continue
            tensors = self.state if spec.tensors == "inputs" else None
            rates = tuple(self.scalars.get(name, ()))
            options = tuple(spec.optional_inputs) if self.tells_replayed else ()
            self.declare(
                spec, sizes, functions[name], rates=rates, tensors=tensors, options=options
            )

    def _check_variables(self) -> None:
        """Raise ConversionError for a variable of shape [].

        A runtime treats it as one of unknown shape, and then reallocates the arrays of a signature
        while it runs, including the one that a client fills.
        """
        for variable in self.variables:
            if variable.shape.rank == 0:
                raise ConversionError(
                    f"Expected variables of at least one axis, got {variable.name} of shape []",
                    "give it the shape [1]",
                )

    def _overrides(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(Head, name)

    def _begin(self, counts: Tensor, rates: Rates) -> Outputs:
        self.begin(counts, rates)
        return {"trains": self.more_trains(counts, rates)}

    def _gather(
        self, latents: Tensor, targets: Tensor, rates: Rates, replayed: Tensor | None = None
    ) -> Outputs:
        if replayed is None:
            self.gather(latents, targets, rates)
        else:
            self.gather_from(latents, targets, rates, tf.reshape(replayed, []))
        return {"patterns": tf.reduce_sum(tf.reduce_max(targets, axis=-1))}

    def _consolidate(self, counts: Tensor, rates: Rates) -> Outputs:
        self.consolidate(counts, rates)
        return {"learned": self.learned()}

    def _forget(self, mask: Tensor) -> Outputs:
        self.forget(mask)
        return {"learned": self.learned()}

    def _restore(self, tensors: Mapping[str, Tensor]) -> Outputs:
        for name, variable in self.state.items():
            variable.assign(tensors[name])
        return {"learned": self.learned()}


def present(counts: Tensor) -> Tensor:
    """Return (C,) float32: 1 for each class with patterns, else 0."""
    return tf.cast(counts > 0, tf.float32)


def softmax_over(scores: Tensor, learned: Tensor) -> Tensor:
    """Return probabilities (n, C) over the learned classes, and 0 for all others."""
    # The score of a free slot may be the largest, so mask it before computing the maximum.
    masked = scores - 1e9 * (1.0 - learned)
    weights = tf.exp(masked - tf.reduce_max(masked, axis=-1, keepdims=True)) * learned
    # The sum is at least 1, or 0 if nothing is learned yet.
    total = tf.maximum(tf.reduce_sum(weights, axis=-1, keepdims=True), 1.0)
    return weights / total

"""Options of a conversion, checked before TensorFlow is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from lrtflite.arguments import whole_number
from lrtflite.bundle.training import Training
from lrtflite.errors import ModelError
from lrtflite.labels import new_labels
from lrtflite.networks.architecture import MAX_CLASSES, Architecture
from lrtflite.networks.mobilenet_v1 import MOBILENET_V1
from lrtflite.replay.memory import check_memory
from lrtflite_converters.quantise.options import QuantiseOptions
from lrtflite_converters.request.defaults import (
    CODEC,
    MEASURED_FEATURES,
    SplitPoint,
)
from lrtflite_converters.request.presets import PRESETS
from lrtflite_converters.request.strategies import STRATEGIES, Strategy, default_strategy

# Maximum number of patterns in a mini-batch. A training step above a low layer needs 10 MB for
# each.
LARGEST_BATCH = 4096
# Minimum number of patterns from which Batch Renorm can compute a variance.
SMALLEST_RENORM_BATCH = 2
# Default number of latents that ship with a model trained on the host, as in the paper's app.
SEED_MEMORY = 500


@dataclass(frozen=True)
class ConvertOptions:
    """Options of a bundle. None stands for the default at the replay layer.

    With `pooled`, latents are the replay layer's output averaged over all pixels. The average of
    `and_layer` follows in the same latent. With `crops`, a latent is the mean of that of the whole
    frame and that of its enlarged centre. `preset` replaces the defaults of rates, mini-batch and
    epochs. `rates` are numbers by name, as in `Training.with_options`. `seed_memory` is the number
    of latents that ship with a model trained on the host. With `quantise`, features and latents are
    int8.

    They are checked once the layers of the network are known, see `at`.
    """

    replay_layer: str | None = None
    strategy: str | None = None
    preset: str | None = None
    labels: tuple[str, ...] = ()
    classes: int | None = None
    batch_size: int | None = None
    new_per_batch: int | None = None
    replay_size: int | None = None
    policy: str | None = None
    codec: str | None = None
    train_depthwise: bool = True
    adapt_moments: bool = False
    pooled: bool = False
    and_layer: str | None = None
    crops: bool = False
    rates: Mapping[str, float] = field(default_factory=dict)
    seed_memory: int = SEED_MEMORY
    quantise: QuantiseOptions | None = None

    def at(self, architecture: Architecture) -> Conversion:
        """Return these options with the layers of a network; raise ModelError for a wrong one."""
        given = {each.name: getattr(self, each.name) for each in fields(ConvertOptions)}
        if self.preset is not None:
            given = PRESETS.choose(self.preset).fill(self.preset, given, architecture)
        return Conversion(**given, architecture=architecture)


@dataclass(frozen=True)
class Conversion(ConvertOptions):
    """Options of a bundle together with the layers of its network; they fit each other."""

    architecture: Architecture = MOBILENET_V1

    def __post_init__(self) -> None:
        place = self.place(MEASURED_FEATURES)
        self.architecture.check_layer(self.layer)
        self._check_pooled()
        self._check_second()
        if self.crops:
            self._check_vector("--crops")
        self.chosen_strategy.check(self.strategy_name, place)
        if self.preset is not None:
            PRESETS.choose(self.preset).check(self.preset, self.strategy_name, place)
        self._check_minibatch()
        self._check_moments()
        self._check_quantisation()
        if not self.train_depthwise and not place.trains_trunk:
            where = f"with --pooled at {self.layer}" if self.pooled else f"at {self.layer}"
            instead = "leave --pooled out" if self.pooled else "choose a lower --replay-layer"
            raise ModelError(
                f"Expected no --freeze-depthwise {where}, where only the last layer trains",
                f"leave it out, or {instead}",
            )
        self.training(MEASURED_FEATURES)  # raises for a rate that is unknown or out of its limits
        check_memory(*self.memory)
        if self.chosen_strategy.trunk_head and place.trains_trunk and not self.memory[0]:
            raise ModelError(
                f"Expected a --replay-size of at least 1 for {self.strategy_name!r} at "
                f"{self.layer}, whose trunk trains on stored latents, got 0",
                f"leave it out, or choose --replay-layer {self.architecture.pooled}",
            )
        whole_number("seed_memory", self.seed_memory)
        self._check_classes()

    @property
    def layer(self) -> str:
        """Return the replay layer."""
        return self.architecture.pooled if self.replay_layer is None else self.replay_layer

    @property
    def strategy_name(self) -> str:
        return self.strategy or default_strategy(self.place(MEASURED_FEATURES))

    @property
    def chosen_strategy(self) -> Strategy:
        return STRATEGIES.choose(self.strategy_name)

    @property
    def minibatch(self) -> tuple[int, int]:
        """Return the size of a mini-batch, and the number of new patterns in it."""
        default = self._default(MEASURED_FEATURES).feeding
        size = default.batch_size if self.batch_size is None else self.batch_size
        if self.new_per_batch is not None:
            return size, self.new_per_batch
        return size, max(1, round(size * default.new_per_batch / default.batch_size))

    @property
    def memory(self) -> tuple[int, str, str]:
        """Return the capacity, the policy and the codec of a new learner's memory."""
        size, policy = self.chosen_strategy.memory_at(self.place(MEASURED_FEATURES))
        return (
            size if self.replay_size is None else self.replay_size,
            self.policy or policy,
            self.codec or CODEC,
        )

    def place(self, features: float) -> SplitPoint:
        return SplitPoint(
            self.architecture,
            self.layer,
            features,
            self.adapt_moments,
            self.pooled,
            self.and_layer,
        )

    def training(self, features: float) -> Training:
        """Return the training of a head with this length of its feature vector."""
        default = self._default(features)
        size, new = self.minibatch
        feeding = replace(default.feeding, batch_size=size, new_per_batch=new)
        return Training(feeding, default.rates).with_options(**self.rates)

    def _default(self, features: float) -> Training:
        """Return the training of the strategy and the preset, without other options."""
        place = self.place(features)
        training = self.chosen_strategy.training(place)
        preset = None if self.preset is None else PRESETS.choose(self.preset)
        return training if preset is None else preset.change(place, training)

    def _check_minibatch(self) -> None:
        batch, new = self.minibatch
        if batch > LARGEST_BATCH:
            raise ModelError(
                f"Expected a mini-batch of at most {LARGEST_BATCH}, got {batch:,}",
                "make it smaller",
            )
        if not 1 <= new <= batch:
            raise ModelError(
                f"Expected 1 to {batch} new patterns in a mini-batch of {batch}, got {new}",
                "give another --new-per-batch",
            )
        place = self.place(MEASURED_FEATURES)
        if place.trains_trunk and batch < SMALLEST_RENORM_BATCH:
            raise ModelError(
                f"Expected a mini-batch of at least {SMALLEST_RENORM_BATCH} below "
                f"{self.architecture.resting_layers[0]}, where Batch Renorm needs its moments, "
                f"got {batch}",
                "give a larger --batch-size, the paper uses 128",
            )

    def _check_pooled(self) -> None:
        architecture = self.architecture
        if self.pooled and self.layer in (architecture.replay_layers[0], architecture.pooled):
            raise ModelError(
                f"Expected a layer between {architecture.replay_layers[0]} and "
                f"{architecture.pooled} with --pooled, got {self.layer!r}",
                "leave --pooled out",
            )

    def _check_second(self) -> None:
        second, layers = self.and_layer, self.architecture.replay_layers
        if second is None:
            return
        self.architecture.check_layer(second)
        self._check_vector("--and")
        if second == layers[0] or layers.index(second) >= layers.index(self.layer):
            raise ModelError(
                f"Expected a layer between {layers[0]} and {self.layer} with --and, got {second!r}",
                "choose a lower layer, or leave --and out",
            )

    def _check_vector(self, option: str) -> None:
        """Raise ModelError for an option that needs frozen latents without pixels."""
        if not self.pooled and self.layer != self.architecture.pooled:
            raise ModelError(
                f"Expected --pooled or the replay layer {self.architecture.pooled} with {option}, "
                f"got {self.layer!r}, whose output is an image",
                f"add --pooled, or leave {option} out",
            )
        if self.adapt_moments:
            raise ModelError(
                f"Expected {option} without --adapt-moments, got both", "leave one of the two out"
            )

    def _check_moments(self) -> None:
        if not self.adapt_moments:
            return
        if self.architecture.reads_frames(self.layer):
            raise ModelError(
                f"Expected a replay layer above {self.layer} to adapt the moments below it, got "
                f"{self.layer!r}",
                "leave --adapt-moments out",
            )
        new = self.minibatch[1]
        if new < SMALLEST_RENORM_BATCH:
            raise ModelError(
                f"Expected at least {SMALLEST_RENORM_BATCH} new patterns per mini-batch to adapt "
                f"moments to, got {new}",
                "give a larger --new-per-batch",
            )

    def _check_quantisation(self) -> None:
        if self.quantise is None:
            return
        if self.adapt_moments:
            raise ModelError(
                f"Expected --quantize {self.quantise.mode} without --adapt-moments, got both",
                "leave one out, because quantised moments are part of the weights and cannot move",
            )
        if self.architecture.reads_frames(self.layer):
            first = self.architecture.replay_layers[1]
            raise ModelError(
                f"Expected a replay layer above {self.layer} with --quantize, got {self.layer!r}, "
                "whose latents are the frames",
                f"choose {first} or a higher layer, or leave --quantize out",
            )

    def _check_classes(self) -> None:
        if self.classes is not None and not 1 <= self.classes <= MAX_CLASSES:
            raise ModelError(
                f"Expected 1 to {MAX_CLASSES:,} classes, got {self.classes:,}",
            )
        if self.classes is not None and self.classes < len(self.labels):
            raise ModelError(
                f"Expected at least {len(self.labels)} classes for the labels, got {self.classes}",
                "give more --classes",
            )
        if len(set(self.labels)) != len(self.labels):
            raise ModelError(
                f"Expected distinct labels, got {', '.join(self.labels)}", "name each class once"
            )
        new_labels(self.labels)

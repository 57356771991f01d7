"""The plan of a simulation: the data set, its stream of sessions and the training of each one.

There are three protocols. `nic` is the paper's first benchmark: new instances and classes, in which
sessions bring new classes and old ones again. `ni` is its second one: new instances, in which the
first session has all classes, and each later session has new frames of them. `app` is the paper's
Android application, which records 20 seconds of video at 5 fps for each new class.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from lrtflite.arguments import whole_number
from lrtflite.bundle.manifest import Manifest
from lrtflite.bundle.training import Training
from lrtflite.counted import classes_text
from lrtflite.data import (
    Batch,
    FrameSource,
    ListedSource,
    StreamOptions,
    describe_stream,
    make_stream,
    ni_stream,
    nic_stream,
    open_source,
    source_notes,
)
from lrtflite.data.spec import with_default
from lrtflite.errors import InputError
from lrtflite.options import LearnerOptions
from lrtflite.progress import OnProgress
from lrtflite.session.run import few_classes
from lrtflite.workbench.teaching import check_room
from lrtflite_firmware_sim.rivals import RIVALS
from lrtflite_firmware_sim.rivals.checks import (
    check_rival_bundle,
    check_rival_memory,
    check_rival_options,
)

PROTOCOLS = ("nic", "ni", "app")
# Sessions of the paper's benchmark of new instances.
NI_VISITS = 12
# Frames per second of the app's camera, frames per session, and sessions per class.
APP_FPS = 5
APP_FRAMES = 100
APP_VISITS = 1
APP_EPOCHS = 8
# New and replayed patterns in a mini-batch of the app.
APP_NEW, APP_REPLAYED = 20, 100
APP_REPLAY_SIZE = 500
APP_POLICY = "balanced"


@dataclass(frozen=True)
class SimulateOptions:
    """Options of `simulate`; None uses the protocol's value, or else the bundle's.

    The run stops after `sessions` sessions. The learner's `seed` decides the drawing or the split
    of the data set, the order of the stream and the randomness of the device; `split_seed` decides
    the drawing or the split instead, so that runs differ in order only. `rates` are numbers by
    name, as in `Training.with_options`. With `diagnose`, each session reports why answers may be
    wrong. A `rival` (a name in RIVALS) learns instead of the bundle's head, in the simulator only.
    The other options are those of `open_source` and `StreamOptions`.
    """

    dataset: str = "synthetic"
    protocol: str = "nic"
    sessions: int | None = None
    learner: LearnerOptions = field(default_factory=LearnerOptions)
    rates: Mapping[str, float] = field(default_factory=dict)
    first_classes: int | None = None
    visits: int | None = None
    batch_frames: int | None = None
    skip_unreadable: bool = False
    diagnose: bool = False
    rival: str | None = None
    split_seed: int | None = None

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise InputError(
                f"Expected a protocol of {', '.join(PROTOCOLS)}, got {self.protocol!r}",
                "choose one of these",
            )
        if self.protocol == "ni" and self.first_classes is not None:
            raise InputError(
                f"Expected no first_classes with the protocol ni, got {self.first_classes}",
                "leave it out, because the first session has all classes",
            )
        if self.sessions is not None:
            whole_number("sessions", self.sessions, least=1)
        if self.split_seed is not None:
            whole_number("split_seed", self.split_seed)
        if self.rival is not None:
            check_rival_options(self.rival, self.learner, self.rates, diagnose=self.diagnose)

    @property
    def spec(self) -> str:
        """Return the data set with the protocol's settings."""
        if self.protocol == "app" and self.dataset.partition("?")[0] == "synthetic":
            return with_default(self.dataset, "frames", APP_FRAMES)
        return self.dataset

    @property
    def data_seed(self) -> int:
        """Return the seed that decides the drawing or the split of the data set."""
        return self.learner.seed if self.split_seed is None else self.split_seed


def open_dataset(
    options: SimulateOptions, *, size: int, on_progress: OnProgress | None = None
) -> FrameSource:
    """Open the data set of a simulation, in frames of this size; every file is checked."""
    return open_source(
        options.spec,
        size=size,
        seed=options.data_seed,
        skip_unreadable=options.skip_unreadable,
        on_progress=on_progress,
    )


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before the first frame; `notes` are for the user.

    `training` is None for a rival that does not train.
    """

    source: FrameSource
    batches: tuple[Batch, ...]
    of_batches: int  # number of batches in the complete stream
    stream: dict[str, str | int | None]
    training: Training | None
    learner: LearnerOptions
    notes: tuple[str, ...]

    @property
    def rates(self) -> dict[str, float]:
        """Return every number of the training by its name."""
        return {} if self.training is None else self.training.values


def make_plan(
    manifest: Manifest,
    options: SimulateOptions,
    *,
    known: Collection[str] = (),
    on_progress: OnProgress | None = None,
) -> Plan:
    """Return the plan for a bundle; raise here, before the run, for anything that cannot work.

    The stream skips the first visit to classes that the bundle has `known` since it shipped. Every
    file of the data set is checked, and `on_progress` is called after each.
    """
    app, rival = options.protocol == "app", options.rival
    if rival is not None:
        check_rival_bundle(rival, manifest, known)
    training = _training(manifest, options)
    source = open_dataset(options, size=manifest.input_size, on_progress=on_progress)
    check_room(source, manifest.labels)
    taught = frozenset(label for label, name in enumerate(source.classes) if name in known)
    stream = _stream_options(options, shipped=bool(taught))
    own = _uses_own_stream(options.protocol, source)
    batches = _batches(source, stream, options, known=taught)
    learner = _learner_options(manifest, options)
    if rival is not None:
        per_session = [len(batch.classes) for batch in batches[: options.sessions]]
        check_rival_memory(rival, learner.replay_size or 0, per_session)
    facts = {**describe_stream(source, stream), "dataset": options.spec}
    if own:
        facts.update({**stream.facts, "protocol": options.protocol})
        facts["first_classes"] = len(batches[0].classes)
    return Plan(
        source=source,
        batches=tuple(batches[: options.sessions]),
        of_batches=len(batches),
        stream=facts,
        training=training,
        learner=learner,
        notes=(
            *([] if rival is None else [_rival_note(manifest, rival)]),
            *source_notes(source),
            *(_app_notes(batches, stream, shipped=bool(taught)) if app else ()),
            *(_mini_batch_notes(manifest) if app and rival is None else ()),
            *_stream_notes(
                batches,
                source,
                known=len(known),
                shipped=len(taught),
                repeats=options.protocol == "ni" or is_ni(source),
            ),
            *(_advice(manifest, batches, known=len(known)) if rival is None else ()),
        ),
    )


def open_stream(
    options: SimulateOptions, *, size: int, on_progress: OnProgress | None = None
) -> tuple[FrameSource, tuple[Batch, ...]]:
    """Return the data set and the batches that a simulation with these options learns.

    The bundle is one that knows nothing before the first session.
    """
    source = open_dataset(options, size=size, on_progress=on_progress)
    batches = _batches(source, _stream_options(options, shipped=False), options)
    return source, tuple(batches[: options.sessions])


def _batches(
    source: FrameSource,
    stream: StreamOptions,
    options: SimulateOptions,
    *,
    known: frozenset[int] = frozenset(),
) -> list[Batch]:
    own = _uses_own_stream(options.protocol, source)
    make = _STREAMS[options.protocol] if own else make_stream
    return make(source, stream, known=known)


def is_ni(source: FrameSource) -> bool:
    """Return whether a source's published batches are of the protocol `ni`."""
    return isinstance(source, ListedSource) and source.protocol.split(",")[0] == "ni"


def _uses_own_stream(protocol: str, source: FrameSource) -> bool:
    """Return whether the protocol decides the batches, even if the authors published some."""
    return protocol == "app" or (protocol == "ni" and not is_ni(source))


_VISITS = {"app": APP_VISITS, "ni": NI_VISITS}
_STREAMS = {"app": nic_stream, "ni": ni_stream}


def _rival_note(manifest: Manifest, rival: str) -> str:
    return (
        f"The rival {rival} learned instead of the bundle's head ({manifest.strategy}). It runs in "
        "the simulator only, not on a device."
    )


def _training(manifest: Manifest, options: SimulateOptions) -> Training | None:
    if options.rival is not None:
        training = RIVALS.choose(options.rival).training(manifest.latent_shape[0])
        return None if training is None else training.with_options(**options.rates)
    protocol = {"epochs": APP_EPOCHS} if options.protocol == "app" else {}
    return manifest.training.with_options(**{**protocol, **options.rates})


def _learner_options(manifest: Manifest, options: SimulateOptions) -> LearnerOptions:
    """Return the learner's options: those given, else the protocol's, else the bundle's."""
    if options.protocol == "app":
        learner = options.learner.or_else(replay_size=APP_REPLAY_SIZE, policy=APP_POLICY)
        return learner.settled(manifest)
    return options.learner.settled(manifest)


def _stream_options(options: SimulateOptions, *, shipped: bool) -> StreamOptions:
    """Return the stream's options; a bundle that shipped with classes learns others one by one."""
    app = options.protocol == "app"
    given = {
        "first_classes": 1 if shipped and options.first_classes is None else options.first_classes,
        "visits": _VISITS.get(options.protocol) if options.visits is None else options.visits,
        "batch_frames": APP_FRAMES
        if app and options.batch_frames is None
        else options.batch_frames,
    }
    return StreamOptions(
        **{name: value for name, value in given.items() if value is not None},
        seed=options.learner.seed,
        split_seed=options.split_seed,
    )


def _advice(manifest: Manifest, batches: list[Batch], *, known: int) -> tuple[str, ...]:
    advice = few_classes(manifest, learned=known, coming=len(batches[0].classes))
    return () if advice is None else (advice,)


def _stream_notes(
    batches: list[Batch], source: FrameSource, *, known: int, shipped: int, repeats: bool
) -> tuple[str, ...]:
    if known and not shipped:
        return (
            f"None of the {classes_text(known)} that the bundle knows is in the data set, so they "
            "are not tested: add their folders.",
        )
    if shipped:
        return (
            f"The bundle knows {shipped} of the {classes_text(len(source.classes))}: they are "
            "tested from the start, and taught again only in later visits.",
        )
    if not repeats and len(source.classes) > 1 and len(batches[0].classes) == len(source.classes):
        return (
            "Every class is in the first session, so no class is new later: give a smaller "
            "--first-classes to add classes later.",
        )
    return ()


def _app_notes(batches: list[Batch], stream: StreamOptions, *, shipped: bool) -> Iterator[str]:
    if not shipped:
        yield (
            "The first session stands for the training that the paper's app was delivered with: "
            f"{classes_text(len(batches[0].classes))} at once."
        )
    short = sum(len(batch) < (stream.batch_frames or 0) for batch in batches[1:])
    if short:
        yield (
            f"{short} of {len(batches) - 1} later sessions have fewer than {stream.batch_frames} "
            "frames, because the data set has no more."
        )


def _mini_batch_notes(manifest: Manifest) -> Iterator[str]:
    feeding = manifest.feeding
    new, replayed = feeding.new_per_batch, feeding.batch_size - feeding.new_per_batch
    if (new, replayed) != (APP_NEW, APP_REPLAYED):
        yield (
            f"Mini-batches are the bundle's {new} + {replayed}, "
            f"not the app's {APP_NEW} + {APP_REPLAYED}."
        )

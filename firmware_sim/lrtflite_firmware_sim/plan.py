"""What a simulation will do: the data set, its stream of sessions and how each one trains.

Two protocols: `nic` is the paper's benchmark (new instances and classes, old and new mixed), `app`
its Android application (20 seconds of video at 5 fps for each new class).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass

from lrtflite.memory import POLICIES, check_memory

from lrtflite.advice import few_classes
from lrtflite.arguments import whole_number
from lrtflite.data import (
    Batch,
    FrameSource,
    OnFile,
    StreamOptions,
    describe_stream,
    make_stream,
    nic_stream,
    open_source,
    source_notes,
)
from lrtflite.data.spec import with_default
from lrtflite.errors import InputError
from lrtflite.manifest import Manifest, Training
from lrtflite.runtime import MOST_THREADS, RUNTIMES, default_threads
from lrtflite.teaching import check_room

PROTOCOLS = ("nic", "app")
APP_FPS = 5
APP_FRAMES = 100
APP_EPOCHS = 8
APP_NEW, APP_REPLAYED = 20, 100
APP_REPLAY_SIZE = 500
APP_POLICY = "balanced"


@dataclass(frozen=True)
class SimulateOptions:
    """What `simulate` can be told; None leaves it to the protocol, and then to the bundle.

    `sessions` stops after so many; `seed` decides the data set's drawing or split, the stream's
    order and the device's own randomness. The rest is as in `open_source`, `StreamOptions` and
    `Learner.open`.
    """

    dataset: str = "synthetic"
    protocol: str = "nic"
    sessions: int | None = None
    replay_size: int | None = None
    policy: str | None = None
    epochs: int | None = None
    lr: float | None = None
    trunk_lr: float | None = None
    threads: int | None = None
    runtime: str = "auto"
    seed: int = 0
    first_classes: int | None = None
    visits: int | None = None
    batch_frames: int | None = None
    skip_unreadable: bool = False

    def __post_init__(self) -> None:
        choices = (
            ("protocol", self.protocol, PROTOCOLS),
            ("policy", self.policy, (None, *POLICIES)),
            ("runtime", self.runtime, ("auto", *RUNTIMES)),
        )
        for name, value, known in choices:
            if value not in known:
                listed = ", ".join(word for word in known if word is not None)
                raise InputError(f"Expected a {name} of {listed}, got {value!r}")
        if self.sessions is not None:
            whole_number("sessions", self.sessions, least=1)
        if self.replay_size is not None:
            check_memory(self.replay_size, self.policy or next(iter(POLICIES)))
        if self.threads is not None:
            whole_number("threads", self.threads, least=1, most=MOST_THREADS)
        whole_number("seed", self.seed)


@dataclass(frozen=True)
class Plan:
    """All that is settled before the first frame. `notes` is what its reader should know."""

    source: FrameSource
    batches: tuple[Batch, ...]
    of_batches: int  # how many the whole stream has
    stream: dict[str, str | int | None]
    training: Training
    replay_size: int
    policy: str
    threads: int
    notes: tuple[str, ...]


def make_plan(
    manifest: Manifest,
    options: SimulateOptions,
    *,
    known: Collection[str] = (),
    on_file: OnFile | None = None,
) -> Plan:
    """Settle everything for a bundle; whatever cannot work is an error here, before the run.

    Classes that the bundle has `known` since it shipped do not come a first time. Every file of
    the data set is looked at, `on_file(looked at, of)` after each.
    """
    app = options.protocol == "app"
    if options.trunk_lr is not None and not manifest.trains_trunk:
        raise InputError(
            f"Expected no trunk_lr for a bundle of {manifest.replay_layer}, where only the last "
            f"layer trains, got {options.trunk_lr:g}; leave it out, or convert at a lower layer"
        )
    spec = options.dataset
    if app and spec.partition("?")[0] == "synthetic":
        spec = with_default(spec, "frames", APP_FRAMES)
    source = open_source(
        spec,
        size=manifest.input_size,
        seed=options.seed,
        skip_unreadable=options.skip_unreadable,
        on_file=on_file,
    )
    check_room(source, manifest.labels)
    taught = frozenset(label for label, name in enumerate(source.classes) if name in known)
    stream = _stream_options(options, shipped=bool(taught))
    make = nic_stream if app else make_stream
    batches = make(source, stream, known=taught)
    facts = {**describe_stream(source, stream), "dataset": spec}
    if app:
        # The app has its own stream, also where a data set's authors published another.
        facts.update({**asdict(stream), "protocol": "app"})
        facts["first_classes"] = len(batches[0].classes)
    epochs = APP_EPOCHS if app and options.epochs is None else options.epochs
    usual_size = APP_REPLAY_SIZE if app else manifest.replay_size
    return Plan(
        source=source,
        batches=tuple(batches[: options.sessions]),
        of_batches=len(batches),
        stream=facts,
        training=manifest.training.with_options(
            lr=options.lr, trunk_lr=options.trunk_lr, epochs=epochs
        ),
        replay_size=usual_size if options.replay_size is None else options.replay_size,
        threads=options.threads or default_threads(trains_trunk=manifest.trains_trunk),
        policy=options.policy or (APP_POLICY if app else manifest.policy),
        notes=(
            *source_notes(source),
            *(_app_notes(manifest, batches, stream.batch_frames, bool(taught)) if app else ()),
            *_stream_notes(batches, source, known=len(known), shipped=len(taught)),
            *_advice(manifest, batches, known=len(known)),
        ),
    )


def _stream_options(options: SimulateOptions, *, shipped: bool) -> StreamOptions:
    """Cut the stream as asked; a device that shipped with classes is taught others one by one."""
    app = options.protocol == "app"
    given = {
        "first_classes": 1 if shipped and options.first_classes is None else options.first_classes,
        "visits": 1 if app and options.visits is None else options.visits,
        "batch_frames": APP_FRAMES
        if app and options.batch_frames is None
        else options.batch_frames,
    }
    return StreamOptions(
        **{name: value for name, value in given.items() if value is not None}, seed=options.seed
    )


def _advice(manifest: Manifest, batches: list[Batch], *, known: int) -> tuple[str, ...]:
    advice = few_classes(manifest, known=known, coming=len(batches[0].classes))
    return () if advice is None else (advice,)


def _stream_notes(
    batches: list[Batch], source: FrameSource, *, known: int, shipped: int
) -> tuple[str, ...]:
    if known and not shipped:
        return (
            f"None of the {known} classes that the bundle knows is in the data set, so what it "
            "keeps of them is not tested: add their folders.",
        )
    if shipped:
        return (
            f"The bundle knows {shipped} of the {len(source.classes)} classes: they are tested "
            "from the start, and taught again only in later visits.",
        )
    if len(source.classes) > 1 and len(batches[0].classes) == len(source.classes):
        return (
            "Every class is in the first session, so nothing new comes later: give a smaller "
            "--first-classes to see that.",
        )
    return ()


def _app_notes(
    manifest: Manifest, batches: list[Batch], batch_frames: int | None, shipped: bool
) -> tuple[str, ...]:
    notes = []
    if not shipped:
        notes.append(
            "The first session stands for the training that the paper's app was delivered with: "
            f"{len(batches[0].classes)} classes at once."
        )
    new, replayed = manifest.new_per_batch, manifest.batch_size - manifest.new_per_batch
    if (new, replayed) != (APP_NEW, APP_REPLAYED):
        notes.append(
            f"Mini-batches are {new} + {replayed} as the bundle has them, "
            f"not the app's {APP_NEW} + {APP_REPLAYED}."
        )
    short = sum(len(batch) < (batch_frames or 0) for batch in batches[1:])
    if short:
        notes.append(
            f"{short} of {len(batches) - 1} later sessions have fewer than {batch_frames} frames: "
            "the data set has no more for them."
        )
    return tuple(notes)

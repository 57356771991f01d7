"""Other sizes of a bundle's frames: their time here, and their accuracy in the study.

The figures are those of docs/studies/frame-sizes.md, for the networks and weights that it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lrtflite.bundle.manifest import Manifest


@dataclass(frozen=True)
class StudiedNetwork:
    """Accuracy of a network by strategy and frame size, after fifty classes of photographs.

    `backbones` are parts of a manifest's `backbone`, each of which names the network's weights.
    """

    title: str
    backbones: tuple[str, ...]
    replay_layer: str
    accuracy: Mapping[str, Mapping[int, float]]

    def has(self, manifest: Manifest) -> bool:
        """Return whether the study has figures for a bundle."""
        return (
            manifest.backbone.startswith(f"{self.title}, ")
            and any(part in manifest.backbone for part in self.backbones)
            and manifest.replay_layer == self.replay_layer
            and manifest.strategy in self.accuracy
            and manifest.quantisation is None
            and manifest.second_layer is None
            and manifest.crop is None
        )


STUDIED = (
    StudiedNetwork(
        title="MobileNetV1 alpha 1",
        backbones=(", ImageNet, keras.applications ", "(sha256 42d7259fd444)"),
        replay_layer="pool6",
        accuracy={
            "lda": {96: 0.916, 128: 0.949, 160: 0.959, 192: 0.963, 224: 0.961},
            "cwr": {96: 0.907, 128: 0.941, 160: 0.955, 192: 0.958, 224: 0.955},
        },
    ),
)


def other_frame_sizes(manifest: Manifest) -> Iterator[str]:
    """Yield the time of other frame sizes on this machine, and their accuracy in the study.

    Yield nothing for a network that the study lacks. The time is estimated: a convolutional
    network's operations are proportional to the pixels of its frame.
    """
    measured, here = manifest.measured, manifest.input_size
    for studied in STUDIED:
        if measured is None or not studied.has(manifest):
            continue
        accuracy = studied.accuracy[manifest.strategy]
        times = (
            f"{size} px {measured.extract_ms * (size / here) ** 2:.1f} ms"
            for size in accuracy
            if size != here
        )
        yield f"Other frame sizes (--input-size), estimated from their pixels: {', '.join(times)}"
        figures = (f"{size} px {share:.3f}" for size, share in accuracy.items())
        yield (
            f"Accuracy in the project's study (50 classes of photographs, {studied.title}, "
            f"{manifest.strategy}): {', '.join(figures)}; see docs/studies/frame-sizes.md"
        )

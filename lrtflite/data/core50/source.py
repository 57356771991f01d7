"""CORe50 as clips of frames, with or without the batches that its authors published.

CORe50 has 50 objects (5 of each category) in 11 scenes, which its authors call sessions. One object
in one scene is a clip of some 300 frames. Scenes 3, 7 and 10 are the test set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lrtflite.data.core50.files import image_file
from lrtflite.data.core50.labelling import OBJECTS, Labelling
from lrtflite.data.core50.lists import Numbers, Recording, merge
from lrtflite.data.media import read_frames
from lrtflite.data.source import Clip, Frame, Part
from lrtflite.errors import DataError


class Core50Source:
    """CORe50's clips without lists, so the stream options decide the order.

    `train` and `test` have the frame numbers of each recording, ascending. `labelling` has the
    class of each object; recordings of other objects are not allowed. `skipped` names the frames
    that were left out because they cannot be read.
    """

    def __init__(
        self,
        images: Path,
        train: Numbers,
        test: Numbers,
        *,
        name: str = "core50",
        size: int,
        labelling: Labelling = OBJECTS,
        skipped: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.size = size
        self.classes = labelling.classes
        self._labels = labelling.label_of
        self.skipped = skipped
        self._images = images
        self._train = {key: self._clip(key, train[key]) for key in sorted(train)}
        self._test = [self._clip(key, test[key]) for key in sorted(test)]

    def train_clips(self) -> Sequence[Clip]:
        return tuple(self._train.values())

    def test_clips(self) -> Sequence[Clip]:
        return tuple(self._test)

    def _clip(self, key: Recording, numbers: Sequence[int]) -> Clip:
        scene, thing = key
        images, size = self._images, self.size

        def reader(indices: Sequence[int]) -> Iterator[Frame]:
            for i in indices:
                yield from read_frames(image_file(images, key, numbers[i]), (0,), size)

        return Clip(self._labels[thing - 1], f"s{scene}/o{thing}", len(numbers), reader, files=True)


class Core50Lists(Core50Source):
    """CORe50 with the published batches of one run of NICv2-79, 196 or 391."""

    def __init__(
        self,
        images: Path,
        batches: Sequence[Numbers],
        test: Numbers,
        *,
        protocol: str,
        name: str = "core50",
        size: int,
        labelling: Labelling = OBJECTS,
        skipped: tuple[str, ...] = (),
    ) -> None:
        for number, batch in enumerate(batches):
            if not batch:
                raise DataError(
                    f"Expected readable frames in batch {number:02d} of {protocol}, got none",
                    "unpack core50_128x128.zip again",
                )
        train = merge(batches)
        super().__init__(
            images, train, test, name=name, size=size, labelling=labelling, skipped=skipped
        )
        self.protocol = protocol
        self._batches = [
            tuple(self._part(key, numbers, train[key]) for key, numbers in listed.items())
            for listed in batches
        ]

    def listed_batches(self) -> Sequence[tuple[Part, ...]]:
        return tuple(self._batches)

    def _part(self, key: Recording, numbers: Sequence[int], of_clip: Sequence[int]) -> Part:
        position = {number: i for i, number in enumerate(of_clip)}
        return self._train[key], tuple(sorted(position[number] for number in numbers))

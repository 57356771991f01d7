"""Convert each bundle of an experiment once, in a child process, for all its cells."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lrtflite.bundle.bundle import MANIFEST_FILE, Bundle, is_packaged
from lrtflite.errors import LrtfliteError
from lrtflite_firmware_sim.experiment.cell_options import CellOptions, Request
from lrtflite_firmware_sim.experiment.cells import request_digest
from lrtflite_firmware_sim.experiment.jobs import ConvertJob, run_conversion
from lrtflite_firmware_sim.experiment.watching import ExperimentWatcher


class BundleStore:
    """The converted bundles in a folder, by the digest of what they were converted from."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[Request, str] = {}

    def path(self, read: CellOptions) -> str | None:
        """Return the path of a cell's bundle; None for the demo bundle."""
        if read.request is not None:
            return str(self._place(read.request).resolve())
        if read.bundle is None or is_packaged(read.bundle):
            return None if read.bundle is None else str(read.bundle)
        return str(Bundle.open(read.bundle).path.resolve())

    def convert(
        self, requests: Iterable[Request | None], watcher: ExperimentWatcher
    ) -> dict[Request | None, LrtfliteError]:
        """Convert every bundle that is missing or damaged; return the errors of those that fail."""
        errors: dict[Request | None, LrtfliteError] = {}
        wanted = dict.fromkeys(each for each in requests if each is not None)
        missing = {self._place(each): each for each in wanted if not self._is_whole(each)}
        for number, (place, request) in enumerate(missing.items(), start=1):
            job = ConvertJob(dict(request.options), str(place))
            watcher.converting(str(job), number, len(missing))
            try:
                run_conversion(job)
            except LrtfliteError as error:
                errors[request] = error
        return errors

    def _place(self, request: Request) -> Path:
        if request not in self._digests:
            self._digests[request] = request_digest(request)
        return self._folder / self._digests[request]

    def _is_whole(self, request: Request) -> bool:
        place = self._place(request)
        if not (place / MANIFEST_FILE).exists():
            return False
        try:
            Bundle.open(place)
        except LrtfliteError:
            for file in place.iterdir():
                file.unlink()
            return False
        return True

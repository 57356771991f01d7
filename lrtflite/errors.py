"""Every error that this project raises for its user.

LrtfliteError
├── BundleError        a bundle that is missing, damaged, changed or in another format
├── ModelError         a network, layer name or weights file that cannot be used
├── ConversionError    a graph that the converter could not turn into built-in TFLite ops
├── InputError         frames, latents or labels that do not fit
│   └── NoFreeSlot     a new label while every class slot is taken
├── StateError         a state that is damaged, locked, unwritable or from another bundle
│   ├── DamagedState   a state file whose bytes have changed since they were written
│   └── StateInPlace   a change that was made, but that a power cut may still undo
├── DataError          a data set that is missing or not laid out as expected
│   └── UnreadableFile a picture or video that is missing, damaged or of an unknown kind
├── CameraError        a camera or video without pictures, or one that stopped
├── NotRegular         a link, FIFO, device or folder where a file was expected
├── TooShort           a file that ends before the bytes that were asked for
├── SessionCancelled   learning stopped on request
├── RuntimeMissing     no TFLite runtime is installed, or not the requested one
├── PluginError        a plugin that cannot be imported
├── ServiceError       a request that a service refuses, as `lrtflite serve` does
│   ├── Busy           a change that has to wait for a lesson or another change
│   ├── Missing        a lesson, picture or class that is not there
│   ├── NotOffered     a part of the service that is not installed or not switched on
│   ├── TooLarge       an upload, picture or lesson above its limit
│   ├── TooManyClients one client more than the service takes
│   └── DiskFull       a change for which the disk has no room
└── MissingExtra       an optional part is not installed; names the pip command

A text says what was expected, what it got, and what to do, in one line.
"""

from __future__ import annotations


class LrtfliteError(Exception):
    """Base of every error that the user can fix; the CLI prints it and exits with 1.

    `problem` says what was expected, or what cannot be done, and why. `advice` says what to do,
    where the problem does not say it all. The text of the error is both.
    """

    def __init__(self, problem: str, advice: str | None = None) -> None:
        super().__init__(problem if advice is None else f"{problem}; {advice}")
        self.problem, self.advice = problem, advice


class BundleError(LrtfliteError):
    """A bundle that is missing, damaged, changed or in another format."""


class ModelError(LrtfliteError):
    """A network, layer name or weights file that cannot be used."""


class ConversionError(LrtfliteError):
    """A graph that could not be turned into built-in TFLite ops."""


class InputError(LrtfliteError):
    """Frames, latents or labels that do not fit the bundle."""


class NoFreeSlot(InputError):
    """A new label while every class slot is taken."""


class StateError(LrtfliteError):
    """A state that is damaged, locked, unwritable or from another bundle."""


class DamagedState(StateError):
    """A state file whose bytes have changed since they were written."""


class StateInPlace(StateError):
    """A change that was made on disk and in RAM, but that a power cut may still undo."""


class DataError(LrtfliteError):
    """A data set that is missing or not laid out as expected."""


class UnreadableFile(DataError):
    """A picture or video that is missing, damaged or of an unknown kind; `reason` is short."""

    def __init__(self, problem: str, advice: str | None = None, *, reason: str = "") -> None:
        super().__init__(problem, advice)
        self.reason = reason


class CameraError(LrtfliteError):
    """A camera or video without pictures, or one that stopped delivering them."""


class NotRegular(LrtfliteError):
    """A folder, link, FIFO or device where a file was expected."""


class TooShort(LrtfliteError):
    """A file that ends before the bytes that were asked for."""


class SessionCancelled(LrtfliteError):
    """Learning was stopped on request.

    A session leaves the state as it was. Training on the host leaves a checkpoint to resume from.
    """


class RuntimeMissing(LrtfliteError):
    """No TFLite runtime is installed, or not the requested one."""


class PluginError(LrtfliteError):
    """A plugin, named in the environment or by an entry point, that cannot be imported."""


class ServiceError(LrtfliteError):
    """A request that a service refuses."""


class Busy(ServiceError):
    """A change that has to wait for a lesson or another change."""


class Missing(ServiceError):
    """A lesson, picture or class that is not there, or no longer."""


class NotOffered(ServiceError):
    """A part of a service that is not installed or not switched on."""


class TooLarge(ServiceError):
    """An upload, picture or lesson above its limit."""


class TooManyClients(ServiceError):
    """One client more than a service takes."""


class DiskFull(ServiceError):
    """A change for which the disk has no room."""


class MissingExtra(LrtfliteError):
    """An optional part of the project is not installed."""


def problem_of(error: BaseException) -> str:
    """Return the text of an error without the advice, which another caller has to give."""
    return error.problem if isinstance(error, LrtfliteError) else str(error)

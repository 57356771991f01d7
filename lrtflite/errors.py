"""Every error this project raises for its user.

LrtfliteError
├── BundleError        a bundle that is missing, damaged, tampered with or of another format
├── ModelError         a network, layer name or weights file that cannot be used
├── ConversionError    a graph that the converter could not turn into built-in TFLite ops
├── InputError         frames, latents or labels that do not fit
│   └── NoFreeSlot     a new label, and every class slot is taken
├── StateError         a state path that is damaged, locked, unwritable or of another bundle
│   └── DamagedState   a state file whose bytes are not what was written
├── DataError          a data set that is missing or not laid out as expected
│   └── UnreadableFile a picture or video that is missing, damaged or of another kind
├── SessionCancelled   learning stopped on request; says where it can go on from
├── RuntimeMissing     no TFLite runtime, or not the one that was asked for
├── PluginError        a plugin that cannot be imported
└── MissingExtra       an optional part is not installed; names the pip command

A message says what was expected, what came, and what to do, in one line.
"""

from __future__ import annotations


class LrtfliteError(Exception):
    """Base of every error that is the user's to mend; the CLI prints it and exits with 1."""


class BundleError(LrtfliteError):
    """A bundle that is missing, damaged, tampered with or of another format version."""


class ModelError(LrtfliteError):
    """A network, layer name or weights file that cannot be used."""


class ConversionError(LrtfliteError):
    """A graph that could not be turned into built-in TFLite ops."""


class InputError(LrtfliteError):
    """Frames, latents or labels that do not fit the bundle."""


class NoFreeSlot(InputError):
    """A new label came and every class slot is taken."""


class StateError(LrtfliteError):
    """A state path that is damaged, locked, unwritable or belongs to another bundle."""


class DamagedState(StateError):
    """A state file whose bytes are not what was written."""


class DataError(LrtfliteError):
    """A data set that is missing or not laid out as expected."""


class UnreadableFile(DataError):
    """A picture or video that is missing, damaged or of another kind; `reason` in a few words."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class SessionCancelled(LrtfliteError):
    """Learning was stopped on request.

    A device's session leaves the state before it, a host's training a checkpoint to resume from.
    """


class RuntimeMissing(LrtfliteError):
    """No TFLite runtime is installed, or not the one that was asked for."""


class PluginError(LrtfliteError):
    """A plugin that is named in the environment or by an entry point cannot be imported."""


class MissingExtra(LrtfliteError):
    """An optional part of the project is not installed."""

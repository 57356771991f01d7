"""The phases of a session in words, for progress on stderr."""

from __future__ import annotations

from lrtflite.progress import Phase

WORDS = {
    Phase.EXTRACT: "extracting frames",
    Phase.TRAIN: "training steps",
    Phase.GATHER: "gathering patterns",
    Phase.ADAPT: "adapting moments",
    Phase.CHECKPOINT: "saving the state",
    Phase.TEST: "testing held-out frames",
}

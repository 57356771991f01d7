"""Settled answers: one consensus for each stream of frames that a client sends."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from lrtflite import Consensus, Learner, Prediction, Settled

MAX_STREAMS = 64


class Streams:
    """The consensus of each stream; one that was not heard for longest makes room."""

    def __init__(self) -> None:
        self._streams: OrderedDict[str, Consensus] = OrderedDict()
        self._lock = threading.Lock()

    def settle(self, name: str, learner: Learner, guesses: list[Prediction]) -> Settled:
        """Add the answers for one frame of a stream; return its settled answer."""
        with self._lock:
            found = self._streams.get(name)
            if found is None:
                found = self._streams[name] = Consensus.of(learner)
            self._streams.move_to_end(name)
            while len(self._streams) > MAX_STREAMS:
                self._streams.popitem(last=False)
            return found.add(guesses)

    def clear(self) -> None:
        """Begin all streams again, after a change of what the answers mean."""
        with self._lock:
            self._streams.clear()


def settled_json(settled: Settled) -> dict[str, Any]:
    return {
        "kind": settled.kind,
        "label": settled.label,
        "slot": settled.slot,
        "share": round(settled.share, 4),
        "frames": settled.frames,
    }

"""The topics of one device. Names of classes are never part of a topic, their slots are."""

from __future__ import annotations

from dataclasses import dataclass

ONLINE, OFFLINE, PRESS = "online", "offline", "PRESS"


@dataclass(frozen=True)
class Topics:
    """Topics below `prefix/identity`; the identity stays the same as long as the state."""

    prefix: str
    identity: str

    def _below(self, name: str) -> str:
        return f"{self.prefix}/{self.identity}/{name}"

    @property
    def status(self) -> str:
        return self._below("status")

    @property
    def answer(self) -> str:
        return self._below("answer")

    @property
    def picture(self) -> str:
        return self._below("picture")

    @property
    def lesson(self) -> str:
        return self._below("lesson")

    @property
    def classes(self) -> str:
        return self._below("classes")

    @property
    def name(self) -> str:
        """Return the topic of the name to teach; `/set` after it takes a new one."""
        return self._below("name")

    @property
    def set_name(self) -> str:
        return self._below("name/set")

    @property
    def teach(self) -> str:
        return self._below("teach")

    @property
    def undo(self) -> str:
        return self._below("undo")

    def teach_class(self, slot: int | str) -> str:
        return self._below(f"classes/{slot}/teach")

    def slot_of(self, topic: str) -> int | None:
        """Return the slot whose class a topic teaches, or None for another topic."""
        start, end = self._below("classes/"), "/teach"
        if not (topic.startswith(start) and topic.endswith(end)):
            return None
        slot = topic[len(start) : -len(end)]
        return int(slot) if slot.isascii() and slot.isdecimal() and len(slot) < 6 else None

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the topics to subscribe to."""
        return (self.set_name, self.teach, self.undo, self.teach_class("+"))

"""Commands from MQTT, one after the other in a thread of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from lrtflite.errors import Busy, InputError, LrtfliteError
from lrtflite.labels import MAX_CHARACTERS, new_label
from lrtflite_serve.mqtt.home import Home
from lrtflite_serve.mqtt.topics import PRESS, Topics

# Commands that may wait; more are refused.
MAX_WAITING = 8
# Bytes of the longest name: four for each character.
MAX_BYTES = 4 * MAX_CHARACTERS
_END = None

OnName = Callable[[str], None]
OnProblem = Callable[[str], None]
Work = Callable[[], None]


class Commands:
    """Names to teach, and buttons that were pressed.

    `on_name` hears of the name that the button will teach, `on_problem` of a command that was
    refused. Neither the thread of the broker nor the learner ever waits for a command.
    """

    def __init__(self, home: Home, topics: Topics, on_name: OnName, on_problem: OnProblem) -> None:
        self._home, self._topics = home, topics
        self._on_name, self._on_problem = on_name, on_problem
        self.name = ""
        self._waiting: queue.Queue[Work | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="mqtt commands", daemon=True)
        self._thread.start()

    def take(self, topic: str, payload: bytes, *, retained: bool) -> None:
        """Take a message; one that the broker kept from earlier is not a command of now."""
        work = None if retained else self._work(topic, payload)
        if work is None:
            return
        try:
            self._waiting.put_nowait(work)
        except queue.Full:
            self._on_problem("Expected few commands at a time, got more; wait and press again")

    def close(self) -> None:
        """End the thread after the command that runs."""
        while True:
            try:
                self._waiting.put_nowait(_END)
                break
            except queue.Full:
                self._waiting.get_nowait()
        self._thread.join(2.0)

    def _work(self, topic: str, payload: bytes) -> Work | None:
        if topic == self._topics.set_name:
            return lambda: self._set_name(payload)
        if payload.strip() != PRESS.encode():
            return None
        if topic == self._topics.undo:
            return lambda: self._undo()
        if topic == self._topics.teach:
            return lambda: self._teach_name()
        slot = self._topics.slot_of(topic)
        return None if slot is None else lambda: self._teach_slot(slot)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not _END:
            try:
                work()
            except LrtfliteError as error:
                self._on_problem(str(error))
            except Exception as error:  # a bug must not end all later commands
                self._on_problem(f"The command failed: {type(error).__name__}: {error}")

    def _set_name(self, payload: bytes) -> None:
        if len(payload) > MAX_BYTES:
            raise InputError(
                f"Expected a name of at most {MAX_CHARACTERS} characters, got {len(payload):,} "
                "bytes",
                "give a shorter one",
            )
        try:
            text = payload.decode()
        except UnicodeDecodeError as error:
            raise InputError("Expected a name in UTF-8, got other bytes", "give text") from error
        self.name = new_label(text) if text.strip() else ""
        self._on_name(self.name)

    def _teach_name(self) -> None:
        if not self.name:
            raise InputError("Expected a name to teach, got none", "enter it first")
        self._home.teach(self.name, None, seconds=None, fps=None)

    def _teach_slot(self, slot: int) -> None:
        if slot not in {each["slot"] for each in self._home.classes()["classes"]}:
            raise Busy(f"Expected the slot of a class, got {slot}", "press the button of another")
        self._home.teach(None, slot, seconds=None, fps=None)

    def _undo(self) -> None:
        self._home.undo()

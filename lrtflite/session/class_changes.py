"""Rename and forget a class: changes to the committed state that are not sessions."""

from __future__ import annotations

import numpy as np

from lrtflite.labels import Label
from lrtflite.state.committed import CommittedState
from lrtflite.state.models import save_models


def rename_class(
    committed: CommittedState, label: Label | None, new: Label | None, *, slot: int | None
) -> None:
    """Give a class, found by its label or slot number, the label `new`."""
    with committed.change():
        number = committed.slots.find(label, slot=slot)
        slots = committed.slots.rename(new=new, slot=number)
        history = committed.history.renamed(committed.slots.labels[number], slots.labels[number])
        tensors = save_models(committed.working, committed.adapting)
        committed.commit(tensors, committed.learned, slots=slots, history=history)


def forget_class(committed: CommittedState, label: Label | None, *, slot: int | None) -> None:
    """Unlearn a class: remove its weights, patterns and label, and free its slot."""
    with committed.change():
        number = committed.slots.find(label, slot=slot)
        slots = committed.slots.free(number)
        mask = np.zeros(len(slots.labels), np.float32)
        mask[number] = 1
        learned = committed.working.run("forget", mask=mask)["learned"] > 0
        tensors = save_models(committed.working, committed.adapting)
        committed.memory.forget(number)
        history = committed.history.renamed(committed.slots.labels[number], None)
        committed.commit(tensors, learned, slots=slots, history=history, frees=True)

"""Rename and forget a class: changes to the committed state that are not sessions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lrtflite.labels import Label
from lrtflite.state.committed import CommittedState
from lrtflite.state.history import History
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
        learned, history = unlearn(committed, number)
        tensors = save_models(committed.working, committed.adapting)
        committed.commit(tensors, learned, slots=slots, history=history, frees=True)


def unlearn(committed: CommittedState, slot: int) -> tuple[NDArray[np.bool_], History]:
    """Remove the weights and patterns of a slot within a change, which commits or reverts them.

    Return which slots have learned, and the history without the class.
    """
    mask = np.zeros(len(committed.slots.labels), np.float32)
    mask[slot] = 1
    learned = committed.working.run("forget", mask=mask)["learned"] > 0
    committed.memory.forget(slot)
    return learned, committed.history.renamed(committed.slots.labels[slot], None)

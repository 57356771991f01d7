"""Herding: latents whose mean stays close to the mean of their class (iCaRL, Algorithm 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.replay.herding import herd_products
from lrtflite.replay.policies.policy import Incoming, Indices, Marks, Placement, Stored
from lrtflite.replay.policies.shares import all_slots, equal_shares, keep

# Most bytes of float32 latents decoded at once; two such blocks are in RAM at a time. At
# `conv5_4/dw` a latent has 131 KB, and a class may hold a whole memory of 200 MB.
BLOCK_BYTES = 8_000_000

Read = Callable[[Indices], NDArray[Any]]


def herding(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Keep latents whose mean is close to the class mean, equally many of each class (iCaRL).

    A class of the session is herded again, from its rows and its new patterns. Any other class
    drops the latents chosen last; its latents are not read. A mark is the rank of a row within its
    class, from 1. A class without ranks, from another policy, is herded too.
    """
    del rng  # the latents decide
    slots = all_slots(stored, incoming)
    ranks = np.zeros(len(slots), np.int32)
    kept = [np.zeros(0, np.int64)]
    for slot, share in equal_shares(slots, stored.capacity).items():
        members = np.flatnonzero(slots == slot)
        if members[-1] < len(stored) and _are_ranks(stored.marks[members]):
            order = members[np.argsort(stored.marks[members])]
        else:
            order = members[herd_products(gram_of(members, reader(stored, incoming)), share)]
        kept.append(order[:share])
        ranks[order[:share]] = np.arange(1, share + 1)
    return keep(stored, np.concatenate(kept), marks=ranks)


def gram_of(members: Indices, read: Read, *, block: int | None = None) -> NDArray[np.float64]:
    """Return the inner products (n, n) of these patterns at unit length, read in blocks.

    As in iCaRL, latents are divided by their length first; one of zeros stays at zero.
    """
    gram = np.zeros((len(members), len(members)))
    for start, left in _blocks(members, read, block):
        for other, right in _blocks(members[: start + len(left)], read, block):
            part = left @ right.T
            gram[start : start + len(left), other : other + len(right)] = part
            gram[other : other + len(right), start : start + len(left)] = part.T
    length = np.sqrt(gram.diagonal())
    length = np.where(length > 0, length, 1.0)
    gram /= length
    gram /= length[:, np.newaxis]
    return gram


def reader(stored: Stored, incoming: Incoming) -> Read:
    """Return a function that reads patterns, rows and the session's, as (k, values) float32."""

    def read(members: Indices) -> NDArray[Any]:
        rows, picks = members[members < len(stored)], members[members >= len(stored)] - len(stored)
        parts = [stored.latents(rows)] if len(rows) else []
        parts += [np.stack([incoming.latents[pick] for pick in picks])] if len(picks) else []
        flat = [part.reshape(len(part), -1).astype(np.float32, copy=False) for part in parts]
        joined = np.concatenate(flat)
        return joined - np.float32(stored.zero) if stored.zero else joined

    return read


def _are_ranks(marks: Marks) -> bool:
    return bool((marks > 0).all()) and len(np.unique(marks)) == len(marks)


def _blocks(members: Indices, read: Read, block: int | None) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield patterns, block by block, each with the place of its first one in `members`."""
    if block is None:
        block = max(1, BLOCK_BYTES // read(members[:1]).nbytes)
    for start in range(0, len(members), block):
        yield start, read(members[start : start + block])

"""Compare two state folders, with numpy only and without a bundle.

    python compare_states.py yesterday/state today/state

`memory` counts the latents of a class that are kept for replay. `moved` is the change of all that
the head keeps for the class, relative to its norm, whatever the head's algorithm is.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from lrtflite import LrtfliteError, State, read_state


def describe(folder: str, state: State) -> None:
    """Print a line about a state."""
    labels = [label for label in state.meta.labels if label is not None]
    print(
        f"{folder}: {state.meta.sessions} sessions, {len(labels)} labels, "
        f"{len(state.memory)} latents in memory, "
        f"bundle {state.meta.bundle[:12]}"
    )


def compare(old: State, new: State) -> None:
    """Print a line about each class of two states."""
    slots = len(new.meta.labels)
    before, after = by_class(old, slots), by_class(new, slots)
    kept = [np.bincount(state.memory.facts["slots"], minlength=slots) for state in (old, new)]
    print(f"{'label':<24}{'memory':>14}{'moved':>9}")
    for slot in range(slots):
        was, now = (state.meta.labels[slot] for state in (old, new))
        if was is None and now is None:
            continue
        length = float(np.linalg.norm(before[slot]))
        distance = float(np.linalg.norm(after[slot] - before[slot]))
        moved = f"{distance / length:.1%}" if length else "new" if distance else "-"
        name = f"{now}" if was in (now, None) else f"{was} -> {now or 'forgotten'}"
        print(f"{name:<24}{f'{kept[0][slot]} -> {kept[1][slot]}':>14}{moved:>9}")


def by_class(state: State, slots: int) -> NDArray[np.float64]:
    """Return (slots, n) float64: all that the head keeps for each class, side by side."""
    tensors = [values for name, values in sorted(state.arrays.items()) if name.startswith("head/")]
    rows = [values.reshape(slots, -1) for values in tensors if len(values) == slots]
    return np.concatenate([np.asarray(each, np.float64) for each in rows], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare two state folders.")
    parser.add_argument("old", help="state folder of the earlier learner")
    parser.add_argument("new", help="state folder of the later learner")
    options = parser.parse_args()
    old, new = read_state(options.old), read_state(options.new)
    describe(options.old, old)
    describe(options.new, new)
    if old.meta.bundle != new.meta.bundle:
        sys.exit(
            "Error: Expected two states of one bundle, got states of different bundles; "
            "compare states of the same bundle"
        )
    compare(old, new)


if __name__ == "__main__":
    try:
        main()
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")

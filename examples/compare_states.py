"""What is in a state folder, and what changed between two: needs numpy alone, no bundle.

    python compare_states.py yesterday/state today/state

A class's weights are its row of the head. `moved` is how far the row went, relative to how long it
was; `memory` is how many of its latents are kept for replay.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from lrtflite import LrtfliteError
from lrtflite.checkpoint import State, newest_state


def describe(folder: str, state: State) -> None:
    labels = [label for label in state.meta["labels"] if label is not None]
    print(
        f"{folder}: {state.meta['sessions']} sessions, {len(labels)} labels, "
        f"{len(state.arrays['memory/labels'])} latents in memory, "
        f"bundle {state.meta['bundle'][:12]}"
    )


def compare(old: State, new: State) -> None:
    slots = len(new.meta["labels"])
    before, after = (state.arrays["head/cw"] for state in (old, new))
    counts = [state.arrays["head/past"] for state in (old, new)]
    kept = [np.bincount(state.arrays["memory/labels"], minlength=slots) for state in (old, new)]
    print(f"{'label':<24}{'patterns seen':>18}{'memory':>14}{'moved':>9}")
    for slot in range(slots):
        was, now = (state.meta["labels"][slot] for state in (old, new))
        if was is None and now is None:
            continue
        length = float(np.linalg.norm(before[slot]))
        distance = float(np.linalg.norm(after[slot] - before[slot]))
        moved = f"{distance / length:.1%}" if length else "new" if distance else "-"
        name = f"{now}" if was in (now, None) else f"{was} -> {now or 'forgotten'}"
        seen = f"{counts[0][slot]:.0f} -> {counts[1][slot]:.0f}"
        print(f"{name:<24}{seen:>18}{f'{kept[0][slot]} -> {kept[1][slot]}':>14}{moved:>9}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Inspect and compare two state folders.")
    parser.add_argument("old")
    parser.add_argument("new")
    options = parser.parse_args()
    old, new = newest_state(options.old), newest_state(options.new)
    describe(options.old, old)
    describe(options.new, new)
    if old.meta["bundle"] != new.meta["bundle"]:
        sys.exit("Error: these states belong to different bundles, so their weights do not compare")
    compare(old, new)


if __name__ == "__main__":
    try:
        main()
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")

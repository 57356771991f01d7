"""The entry point, which sets signal handlers before any slow import."""

from __future__ import annotations

import sys

from lrtflite_cli.terminal import interrupts

TYPE_CHECKING = False  # as in `interrupts`
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; print an error that the user can fix on one line of stderr."""
    interrupts.leave_at_once()
    from lrtflite_cli.group import run

    code = run(args)
    interrupts.ignore()
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()

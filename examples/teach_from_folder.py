"""Teach a bundle from pictures, one folder per class, then let it name other pictures.

    things/
        mug/      IMG_1.jpg  IMG_2.jpg ...
        stapler/  IMG_3.jpg  IMG_4.jpg ...

    python teach_from_folder.py bundle things --state state --predict new.jpg
    python teach_from_folder.py bundle --state state --predict another.jpg    # without teaching

The state folder keeps the learned classes, so a second run with another folder adds to them. A
class that is already known is taught again from the pictures in the folder. With `--unknown 0.46`,
a picture that is less familiar than that is named unknown; the manifest of a bundle has a default
threshold, which `lrtflite inspect` shows.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lrtflite import Bundle, InputError, Learner, LrtfliteError, Progress, read_image

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")


def pictures(folder: Path) -> list[Path]:
    """Return the pictures in a folder by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in PICTURES)


def classes(things: Path) -> dict[str, list[Path]]:
    """Return the pictures of each class; raise InputError if a class has none."""
    if not things.is_dir():
        raise InputError(
            f"Expected a folder with one folder per class, got {things}, which is not a folder",
            "check the path",
        )
    found = {path.name: pictures(path) for path in sorted(things.iterdir()) if path.is_dir()}
    if not found:
        raise InputError(
            f"Expected one folder of pictures per class, got no folder in {things}",
            "make a folder for each class",
        )
    if empty := [name for name, paths in found.items() if not paths]:
        raise InputError(
            f"Expected pictures of each class, got none in {things / empty[0]}",
            "add some, or use `lrtflite teach` for videos",
        )
    return found


def show(progress: Progress) -> None:
    """Overwrite one line of a terminal with the progress of a session."""
    if sys.stderr.isatty():
        of = "" if progress.total is None else f" of {progress.total}"
        print(
            f"\r{progress.phase} {progress.done}{of}\x1b[K", end="\r", file=sys.stderr, flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Teach a bundle from folders of pictures.")
    parser.add_argument("bundle", type=Path, help="a bundle that `lrtflite convert` wrote")
    parser.add_argument(
        "things", type=Path, nargs="?", help="a folder with one folder of pictures per class"
    )
    parser.add_argument("--state", type=Path, help="folder that keeps what is learned")
    parser.add_argument("--predict", type=Path, nargs="*", default=[], help="pictures to name")
    parser.add_argument(
        "--unknown",
        type=float,
        help="familiarity below which a picture is unknown; `lrtflite inspect` shows the bundle's",
    )
    options = parser.parse_args()

    to_teach = classes(options.things) if options.things else {}
    if missing := [path for path in options.predict if not path.is_file()]:
        sys.exit(
            f"Error: Expected a picture to name, got {missing[0]}, which does not exist; "
            "check the path"
        )

    bundle = Bundle.open(options.bundle)
    size = bundle.manifest.input_size
    # Read all pictures first, so that an unreadable file is found before the first session.
    lessons = {name: [read_image(path, size) for path in paths] for name, paths in to_teach.items()}
    asked = [(path.name, read_image(path, size)) for path in options.predict]

    note = None
    with Learner.open(bundle, options.state, unknown=options.unknown) as learner:
        for name, frames in lessons.items():
            again = " again" if name in learner.learned else ""
            report = learner.learn(frames, name, diagnose=True, on_progress=show)
            print(
                f"learned {name}{again} from {report.frames} pictures "
                f"in {report.ready_to_committed_ms:.0f} ms, {report.replay_patterns} in memory"
            )
            if report.diagnosis is not None:
                note = report.diagnosis.note
                for line in report.diagnosis.lines[:2]:
                    print(f"  {line}")
        if note is not None:
            print(f"Note: {note}.")
        if asked and not learner.learned:
            raise InputError(
                f"Expected a state with learned classes, got {options.state} without any",
                "teach it first, or give another --state",
            )
        for name, picture in asked:
            [top] = learner.predict(picture)
            print(f"{name}:", ", ".join(f"{p.label} {p.probability:.0%}" for p in top))


if __name__ == "__main__":
    try:
        main()
    except (LrtfliteError, OSError) as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit("Interrupted; finished sessions are kept")

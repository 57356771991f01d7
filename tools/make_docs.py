"""Write the generated pages, docs/cli.md and docs/api.md; `--check` only compares them.

python tools/make_docs.py [--check]
"""

from __future__ import annotations

import difflib
import io
import os
import sys
from contextlib import redirect_stdout

from api_page import ROOT, SOURCE_FOLDERS, api_page

NOTE = "<!-- Made by `make docs`; change the sources and run it again. -->"
CLI_INTRODUCTION = """\
# Command line

The help of every command, as `lrtflite COMMAND --help` prints it. See [Data sets](data.md) for data
sets and their settings, [Training on a computer](training.md) for the options of `train`, and
[The bundle](bundle.md) for the files that `convert` writes.
"""
# Help texts are wrapped to the terminal; pages must not depend on it, nor on anybody's plugins.
ENVIRONMENT = {"COLUMNS": "80", "LRTFLITE_PLUGINS": ""}


def cli_page() -> str:
    """Return docs/cli.md: the help of the command group and of every command."""
    os.environ.update(ENVIRONMENT)
    from lrtflite_cli.group import COMMANDS, run

    parts = [CLI_INTRODUCTION]
    for command in ("", *COMMANDS):
        words = [command] if command else []
        with redirect_stdout(io.StringIO()) as printed:
            run([*words, "--help"])
        title = " ".join(["lrtflite", *words])
        text = "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
        parts.append(f"## {title}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def main(args: list[str]) -> int:
    """Write both pages; with `--check`, print how they differ and return 1 if they do."""
    sys.path[:0] = [str(folder) for folder in SOURCE_FOLDERS]
    outdated = False
    for name, text in {"cli.md": cli_page(), "api.md": api_page()}.items():
        path = ROOT / "docs" / name
        wanted = f"{NOTE}\n\n{text}"
        if args != ["--check"]:
            path.write_text(wanted, encoding="utf-8")
            continue
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = difflib.unified_diff(
            found.splitlines(), wanted.splitlines(), f"docs/{name}", "from the sources", lineterm=""
        )
        for line in lines:
            print(line)
        outdated = outdated or found != wanted
    if outdated:
        print("Expected pages made from the sources, got older ones; run `make docs`")
    return int(outdated)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Names of phases are part of the format of results, and every reader handles all of them."""

from __future__ import annotations

from lrtflite.progress import Phase
from lrtflite_cli.commands.teach import WORDS
from lrtflite_firmware_sim.reporting.summary import PHASES

NAMES = {value for name, value in vars(Phase).items() if name.isupper()}


def test_names_stay_what_results_on_disk_have() -> None:
    in_session = {"extract", "begin", "prepare", "train", "gather", "consolidate", "adapt"}
    assert {*in_session, "memory", "checkpoint", "check", "read", "test", "infer"} == NAMES


def test_every_timed_phase_is_in_the_summary() -> None:
    # Files are read and tests run between sessions, and are not timed.
    assert set(PHASES) == NAMES - {"check", "read", "test"}


def test_every_phase_with_progress_has_a_description() -> None:
    # Very short phases and predictions report no progress; commands that read files describe that.
    silent = {"begin", "prepare", "consolidate", "memory", "infer"}
    assert set(WORDS) == NAMES - silent - {"check", "read"}

"""The names of the phases are part of the results' format, and every reader knows all of them."""

from __future__ import annotations

from lrtflite.session import Phase
from lrtflite_cli.teach import WORDS
from lrtflite_firmware_sim.summary import PHASES

NAMES = {value for name, value in vars(Phase).items() if name.isupper()}


def test_names_stay_what_results_on_disk_have() -> None:
    in_session = {"extract", "begin", "prepare", "train", "gather", "consolidate", "adapt"}
    assert {*in_session, "memory", "checkpoint", "test", "infer"} == NAMES


def test_whatever_is_timed_is_in_the_summary() -> None:
    # The test set is judged between sessions, and not timed.
    assert set(PHASES) == NAMES - {"test"}


def test_whatever_reports_progress_has_words() -> None:
    # Phases of a moment, and predictions, report none.
    assert set(WORDS) == NAMES - {"begin", "prepare", "consolidate", "memory", "infer"}

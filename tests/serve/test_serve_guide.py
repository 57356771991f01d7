"""The curl examples of the guide work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from running_service import Running, frames_of

ROOT = Path(__file__).parents[2]


def test_curl_examples(taught: Running, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    [script] = re.findall(r"^```sh\n(U=.*?)^```", page, re.MULTILINE | re.DOTALL)
    script = script.replace("http://127.0.0.1:8765/", taught.started.address)
    Image.fromarray(frames_of("red", 1)[0]).save(tmp_path / "new.png")
    Image.fromarray(frames_of("green", 1)[0]).save(tmp_path / "mug.png")
    script = script.replace("\ncurl", "\necho; curl")
    done = subprocess.run(
        ["bash", "-eu", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line]
    assert [each["label"] for each in lines[0]["classes"]] == ["red", "blue"]
    assert lines[1]["answers"][0]["label"] == "red"
    assert lines[2]["frames"] == 1
    assert (lines[3]["label"], lines[3]["new"]) == ("mug", True)
    assert [each["label"] for each in lines[4]["classes"]] == ["red", "blue"]

"""Without TensorFlow, the host side names the extra to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["tensorflow", "tf_keras"])
def test_missing_packages_name_the_pip_command(package: str) -> None:
    hidden = f"import sys; sys.modules[{package!r}] = None; import lrtflite.host"
    result = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True)
    last = result.stderr.splitlines()[-1]
    assert f"{package} is not installed; run: pip install -e " in last
    assert last.endswith("[host]'")


def test_import_is_quiet() -> None:
    code = "import lrtflite.host.mobilenet as m; m.scale_frames([[255]])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)

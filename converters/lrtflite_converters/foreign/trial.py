"""Try a foreign feature model in a child process before TensorFlow runs it in this one."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from lrtflite.verification.child import run_child
from lrtflite.verification.limits import TENSORFLOW_MB, trial_limits
from lrtflite_converters.request.scaling import Scaling


def try_features(path: Path, scaling: Scaling | None) -> bytes:
    """Read the model as `read_features` does, in a child; return the bytes that were tried."""
    content = path.read_bytes()
    run_child(
        "lrtflite_converters.foreign.trial",
        *(str(path), json.dumps(None if scaling is None else asdict(scaling))),
        what=f"a trial of {path}",
        limits=trial_limits(None, more_mb=TENSORFLOW_MB),
        fix="export the model again, or use a model that you trust",
        given=content,
    )
    return content


def in_child(stream: BinaryIO, path: str, scaling: str) -> bytes:
    """Run a model as `convert` does."""
    from lrtflite_converters.foreign.features import read_features

    found = json.loads(scaling)
    if found is not None:
        channels = {name: tuple(found[name]) for name in ("multiplier", "offset")}
        found = Scaling(**channels, bgr=found["bgr"])
    read_features(Path(path), found, stream.read())
    return b""

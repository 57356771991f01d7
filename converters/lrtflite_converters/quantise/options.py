"""Options of quantisation, checked before TensorFlow is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from lrtflite.arguments import whole_number
from lrtflite.errors import ModelError
from lrtflite_converters.quantise import MODES

# Default number of calibration frames. More than 32 hardly change the ranges, but the agreement of
# predictions needs a few frames of each class.
FRAMES = 200
# Maximum number of calibration frames.
MAX_FRAMES = 10_000
# Default passes of fine-tuning over the calibration frames, and the mode that has them.
EPOCHS, FINE_TUNING = 12, "qat"


@dataclass(frozen=True)
class QuantiseOptions:
    """The mode, the data set to calibrate on, and how much of it; None uses a default.

    With `skip_unreadable`, files of the data set that cannot be read are left out.
    """

    mode: str
    calibrate: str | None
    frames: int | None = None
    epochs: int | None = None
    skip_unreadable: bool = False

    def __post_init__(self) -> None:
        MODES.check(self.mode)
        if not self.calibrate:
            raise ModelError(
                f"Expected --calibrate DATASET with --quantize {self.mode}, got none",
                "give frames "
                "like those of the device's camera, such as --calibrate folder:PICTURES",
            )
        if self.epochs is not None and self.mode != FINE_TUNING:
            raise ModelError(
                f"Expected --qat-epochs with --quantize {FINE_TUNING}, got {self.mode!r}",
                "leave --qat-epochs out",
            )
        whole_number("calibration_frames", self.frame_count, least=1, most=MAX_FRAMES)
        whole_number("qat_epochs", self.epoch_count)

    @property
    def frame_count(self) -> int:
        return FRAMES if self.frames is None else self.frames

    @property
    def epoch_count(self) -> int:
        """Return the passes of fine-tuning; 0 in a mode without it."""
        if self.mode != FINE_TUNING:
            return 0
        return EPOCHS if self.epochs is None else self.epochs


def quantise_options(
    mode: str | None,
    *,
    calibrate: str | None = None,
    frames: int | None = None,
    epochs: int | None = None,
    skip_unreadable: bool = False,
) -> QuantiseOptions | None:
    """Return the options of a mode; None for float features, which have no other option."""
    if mode is not None:
        return QuantiseOptions(mode, calibrate, frames, epochs, skip_unreadable)
    given = {
        "--calibrate": calibrate,
        "--calibration-frames": frames,
        "--qat-epochs": epochs,
        "--skip-unreadable": skip_unreadable or None,
    }
    for name, value in given.items():
        if value is not None:
            raise ModelError(
                f"Expected --quantize with {name}, got {name} alone",
                "add --quantize "
                f"{FINE_TUNING if name == '--qat-epochs' else 'int8'}, or leave it out",
            )
    return None

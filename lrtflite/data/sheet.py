"""Draw a contact sheet: a picture with training frames and test frames of each class.

Pillow draws it and is imported only then.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lrtflite.counted import classes_text
from lrtflite.data.overview import Amount
from lrtflite.data.source import Clip, Frame, FrameSource, Part
from lrtflite.evenly import evenly
from lrtflite.system.extras import require

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

MAX_CLASSES = 30
TRAINING, TEST = 6, 3  # maximum number of frames shown per class

# Sizes in pixels.
CELL = 96
SPACE = 6
MARGIN = 16
NAMES = 168  # width of the column of class names
HEADING = 76
ROW = CELL + 2 * SPACE

INK, GREY, LINE = "#1f2328", "#6a737d", "#e1e4e8"
TEST_INK, TEST_GROUND = "#b35900", "#fff1de"

# Fonts to try for a name with characters outside ASCII, which Pillow's own font lacks.
FONTS = (
    *("DejaVuSans.ttf", "NotoSans-Regular.ttf", "Arial.ttf", "LiberationSans-Regular.ttf"),
    *("NotoSansCJK-Regular.ttc", "Arial Unicode.ttf", "msyh.ttc", "PingFang.ttc"),
)


def check_drawing() -> None:
    """Raise MissingExtra unless a sheet can be drawn."""
    require("PIL")


def contact_sheet(source: FrameSource) -> bytes:
    """Return a PNG with one row per class, up to 30; test frames have a coloured background."""
    check_drawing()
    from PIL import Image, ImageDraw

    shown = len(source.classes[:MAX_CLASSES])
    test_left = MARGIN + NAMES + TRAINING * (CELL + SPACE) + 2 * SPACE
    width = test_left + TEST * (CELL + SPACE) + SPACE + MARGIN
    sheet = Image.new("RGB", (width, HEADING + shown * ROW + MARGIN), "white")
    draw = ImageDraw.Draw(sheet)
    draw.rectangle(
        (test_left - SPACE, HEADING - 26, width - MARGIN, HEADING + shown * ROW), fill=TEST_GROUND
    )
    _heading(draw, source, shown, width)
    draw.text((MARGIN + NAMES, HEADING - 21), "training", fill=INK, font=_font(14))
    draw.text((test_left, HEADING - 21), "test, not trained on", fill=TEST_INK, font=_font(14))
    train, test = source.train_clips(), source.test_clips()
    for label in range(shown):
        top = HEADING + label * ROW
        draw.line((MARGIN, top, width - MARGIN, top), fill=LINE)
        of_class = [[clip for clip in clips if clip.label == label] for clips in (train, test)]
        _name(draw, top, source.classes[label], *map(Amount.of, of_class))
        _frames(sheet, MARGIN + NAMES, top, spread(of_class[0], TRAINING))
        _frames(sheet, test_left, top, spread(of_class[1], TEST))
    png = io.BytesIO()
    sheet.save(png, format="png")
    return png.getvalue()


def spread(clips: Sequence[Clip], count: int) -> list[Part]:
    """Choose up to `count` frames, spread evenly over the clips and within each clip."""
    shares = [count * (k + 1) // len(clips) - count * k // len(clips) for k in range(len(clips))]
    parts = []
    for clip, share in zip(clips, shares):
        indices = evenly(clip.length, share, place="middle")
        if indices:
            parts.append((clip, indices))
    return parts


def _heading(draw: ImageDraw, source: FrameSource, shown: int, width: int) -> None:
    train, test = Amount.of(source.train_clips()), Amount.of(source.test_clips())
    classes = classes_text(len(source.classes))
    counts = (
        f"{classes}, {train.frames:,} training and {test.frames:,} test frames, "
        f"{source.size} x {source.size}"
    )
    if shown < len(source.classes):
        counts += f"; the first {shown} classes are shown, ?classes=a,b shows others"
    for top, size, colour, text in ((12, 17, INK, source.name), (34, 12, GREY, counts)):
        font, drawn = _covering(text, size)
        fitting = _shortened(drawn, font, width - 2 * MARGIN)
        draw.text((MARGIN, top), fitting, fill=colour, font=font)


def _name(draw: ImageDraw, top: int, name: str, train: Amount, test: Amount) -> None:
    """Write a class's name, on two lines if it is long, and its counts below."""
    width = NAMES - 2 * SPACE
    font, drawn = _covering(name, 15)
    first = _cut(drawn, font, width)
    second = drawn[len(first) :].strip()
    lines: list[tuple[Font, str, str, int]] = [(font, first.strip(), INK, 19)]
    if second:
        lines.append((font, _shortened(second, font, width), INK, 19))
    lines.append((_font(12), f"training {_amount(train)}", GREY, 18))
    lines.append((_font(12), f"test {_amount(test)}", TEST_INK, 18))
    y = top + (ROW - sum(height for *_, height in lines)) // 2
    for line_font, text, colour, height in lines:
        draw.text((MARGIN, y), text, fill=colour, font=line_font)
        y += height


def _amount(amount: Amount) -> str:
    if amount.clips == amount.frames:
        return f"{amount.frames:,}"
    return f"{amount.frames:,} in {amount.clips:,} clip{'s' * (amount.clips != 1)}"


def _frames(sheet: Image, left: int, top: int, parts: Sequence[Part]) -> None:
    from PIL import Image

    for column, frame in enumerate(_read(parts)):
        # Without smoothing, a small frame shows the pixels that the network gets.
        smaller = frame.shape[0] > CELL
        resample = Image.Resampling.LANCZOS if smaller else Image.Resampling.NEAREST
        picture = Image.fromarray(frame).resize((CELL, CELL), resample)
        sheet.paste(picture, (left + column * (CELL + SPACE), top + SPACE))


def _read(parts: Sequence[Part]) -> Iterator[Frame]:
    for clip, indices in parts:
        yield from clip.read(indices)


def _cut(text: str, font: Font, width: int) -> str:
    """Return the start of the text that fits into `width`, cut between words if possible."""
    if font.getlength(text) <= width:
        return text
    end = next(n for n in range(len(text), 0, -1) if n == 1 or font.getlength(text[:n]) <= width)
    gap = max(text.rfind(mark, 0, end) for mark in " _-")
    return text[: gap + 1] if gap > 0 else text[:end]


def _shortened(text: str, font: Font, width: int) -> str:
    """Return the text, shortened with an ellipsis if it is wider than `width`."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(f"{text}...") > width:
        text = text[:-1]
    return f"{text.rstrip()}..."


def _covering(text: str, size: int) -> tuple[Font, str]:
    """Return a font with all letters of the text, or the default font and the text in ASCII."""
    from PIL import ImageFont

    if text.isascii():
        return _font(size), text
    for name in FONTS:
        try:
            font = ImageFont.truetype(name, size)
        except OSError:  # not installed
            continue
        missing = bytes(font.getmask("\U0010ffff"))
        if all(c.isspace() or bytes(font.getmask(c)) != missing for c in text):
            return font, text
    letters = "".join(
        c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)
    )
    return _font(size), "".join(c if c.isascii() else "?" for c in letters)


def _font(size: int) -> Font:
    from PIL import ImageFont

    return ImageFont.load_default(size)

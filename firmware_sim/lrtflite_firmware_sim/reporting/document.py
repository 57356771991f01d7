"""A page as one HTML file: its style, its sections, and text that cannot become markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from lrtflite.arguments import printable

_CSS = """
:root { color-scheme: light; --ink: #1f2933; --faint: #66727f; --line: #e4e7eb; --blue: #2563eb; }
* { box-sizing: border-box; }
body { margin: 0; background: #f5f7fa; color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1020px; margin: 0 auto; padding: 36px 20px 60px; }
h1 { font-size: 27px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 18px; margin: 0 0 4px; }
.lead, .hint { color: var(--faint); margin: 0 0 14px; }
.hint { font-size: 14px; }
.incomplete { font-weight: 600; color: #c2410c; }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px;
  padding: 20px 24px; margin-top: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin-top: 22px; }
.tile { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; }
.tile b { display: block; font-size: 25px; line-height: 1.2; letter-spacing: -0.02em;
  font-variant-numeric: tabular-nums; }
.tile.main b { color: var(--blue); }
.tile span { font-size: 13px; color: var(--faint); line-height: 1.35; display: block; }
svg { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; font-size: 14.5px; }
th, td { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
tr:last-child td { border-bottom: 0; }
th { font-weight: 600; color: var(--faint); font-size: 13px; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(330px, 1fr));
  gap: 6px 40px; }
.columns td:first-child { color: var(--faint); white-space: nowrap; }
.columns td { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
ul { margin: 6px 0 0; padding-left: 20px; }
@media print { body { background: #fff; } section, .tile { break-inside: avoid; } }
"""


def document(title: str, body: Iterable[str], *, css: str = "") -> str:
    """Return a complete page; `css` is added to the style of all pages."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{_CSS}{css}</style></head>\n"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def section(title: str, hint: str, content: str) -> str:
    """Return a section; `content` is HTML, title and hint are text."""
    said = f'<p class="hint">{text(hint)}</p>' if hint else ""
    return f"<section><h2>{text(title)}</h2>{said}{content}</section>"


def text(value: str) -> str:
    """Return text for HTML; control characters, which may reverse a line, become escapes."""
    return escape(printable(value))

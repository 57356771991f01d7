"""A hook of the documentation site: links out of docs/ lead to the repository.

On disk, pages link to files such as `../examples/cpp.md`, which are not pages of the site. A link
to a file that does not exist stays as it is, so that a strict build fails on it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Return the page with links out of docs/ replaced; called by MkDocs for every page."""
    docs = Path(config["docs_dir"]).resolve()
    folder = Path(page.file.abs_src_path).resolve().parent

    def replaced(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        if docs in target.parents or not target.exists():
            return link[0]
        path = target.relative_to(docs.parent).as_posix()
        return f"]({config['repo_url']}/blob/main/{path}{link[2] or ''})"

    return _LINK.sub(replaced, markdown)

"""The files of the page: a fixed set of types, from one folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from starlette.requests import Request
from starlette.responses import Response

from lrtflite_serve.http.answering import error_json
from lrtflite_serve.http.streaming import FileResponse

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".tflite": "application/octet-stream",
    ".npz": "application/octet-stream",
    ".safetensors": "application/octet-stream",
    ".webmanifest": "application/manifest+json",
}


def page_folder() -> Path:
    """Return the folder of the page: in a package, or in a clone."""
    packaged = Path(__file__).parents[1] / "page"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "clients" / "web"


async def page_file(folder: Path, request: Request) -> Response:
    """Answer with a file of the page; the folder itself is its index.html."""
    if request.method not in ("GET", "HEAD"):
        return error_json(405, "Refused", "Expected GET or HEAD", "use /api for changes")
    wanted = request.scope["path"].lstrip("/") or "index.html"
    path = _inside(folder, wanted)
    if path is None:
        advice = (
            "open /api, or install the package with its page" if wanted == "index.html" else None
        )
        return error_json(404, "Missing", f"There is no {wanted[:60]} here", advice)
    facts = path.stat()
    tag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return FileResponse(path, TYPES[path.suffix], headers)


def _inside(folder: Path, wanted: str) -> Path | None:
    """Return the path of a file of the page, or None for anything else."""
    parts = PurePosixPath(wanted).parts
    if any(part in ("..", "/") or part.startswith(".") or "\0" in part for part in parts):
        return None
    path = folder.joinpath(*parts)
    try:
        if path.suffix not in TYPES or not path.is_file():
            return None
        is_inside = folder.resolve() in path.resolve().parents
    except OSError:  # a name that is too long for a file
        return None
    return path if is_inside else None

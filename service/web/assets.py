"""The files that pages load: our own style and script, and Vega's JavaScript from vl-convert.

Everything comes from this process; a page never asks another machine for anything. Vega's bundle
takes about two seconds to make and is made once, when the first chart asks for it.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

import vl_convert

from service.core.errors import NotFoundError

_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    "style.css": "text/css; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
VEGA: Final = "vega.js"
#: All that charts.js asks of the bundle.
_EMBED: Final = "window.vegaEmbed = vegaEmbed;"


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file as it goes over the wire."""

    media_type: str
    content: bytes
    packed: bytes
    #: Digest of the content, in quotes as HTTP wants it.
    etag: str


@cache
def asset(name: str) -> Asset:
    """Return the file called `name`.

    Raises:
        NotFoundError: Pages load no such file.
    """
    if name == VEGA:
        return _asset(vl_convert.javascript_bundle(_EMBED).encode(), _TYPES["charts.js"])
    if name not in _TYPES:
        raise NotFoundError(f"There is no file {name}.")
    return _asset((_FOLDER / name).read_bytes(), _TYPES[name])


@cache
def asset_path(name: str) -> str:
    """Return the address of a file, different for each content, so that it may be kept for ever."""
    tag = version("vl-convert-python") if name == VEGA else asset(name).etag.strip('"')
    return f"/static/{name}?v={tag}"


def _asset(content: bytes, media_type: str) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:16]
    return Asset(
        media_type=media_type,
        content=content,
        packed=gzip.compress(content, mtime=0),
        etag=f'"{digest}"',
    )

"""Request bodies of bounded size: bytes off the wire come in, at most so many plain bytes go out.

A body comes from a machine that ran somebody's code, so both its packed and its unpacked size are
limited before anything is parsed.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from service.core.errors import BadDocumentError, TooLargeError

if TYPE_CHECKING:
    from fastapi import Request

#: Bytes on the wire. A run of two hundred workloads packs into a few MB.
BODY_BYTES_MAX: Final = 32 * 1024 * 1024
#: Bytes after unpacking.
DOCUMENT_BYTES_MAX: Final = 256 * 1024 * 1024
#: zlib's way to say "gzip format, largest window".
_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS


async def read_body(request: Request, *, limit: int = BODY_BYTES_MAX) -> bytes:
    """Return the body as it came.

    Raises:
        TooLargeError: It is longer than `limit`, said or found.
    """
    said = request.headers.get("content-length", "")
    too_large = f"the body may have {limit} bytes"
    if said.isdigit() and int(said) > limit:
        raise TooLargeError(too_large)
    pieces = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise TooLargeError(too_large)
        pieces.append(piece)
    return b"".join(pieces)


def unpack(body: bytes, encoding: str, *, limit: int = DOCUMENT_BYTES_MAX) -> bytes:
    """Return a body without its content encoding.

    Raises:
        TooLargeError: It unpacks to more than `limit` bytes.
        BadDocumentError: The encoding is not known, or the body is not in it.
    """
    if encoding in {"", "identity"}:
        return body
    if encoding != "gzip":
        raise BadDocumentError(f"content encoding {encoding!r} is not known; use gzip or none")
    unpacker = zlib.decompressobj(_GZIP_WBITS)
    try:
        text = unpacker.decompress(body, limit)
    except zlib.error as error:
        raise BadDocumentError(f"the body is not gzip: {error}") from error
    if not unpacker.eof:
        if len(text) >= limit:
            raise TooLargeError(f"the body unpacks to more than {limit} bytes")
        raise BadDocumentError("the gzip body is cut short")
    if unpacker.unused_data:
        raise BadDocumentError("there is something after the end of the gzip body")
    return text

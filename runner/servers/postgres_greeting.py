"""PostgreSQL's greeting: what a server tells a new session, read without a client library.

The socket of a server comes in, its version goes out, or nothing while it takes no sessions. The
server is hostile: only so much is read, and only text comes of it.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USER: Final = "postgres"
DATABASE: Final = "postgres"
#: Protocol 3.0, which every release since 7.4 speaks.
_PROTOCOL: Final = 3 << 16
_ANSWER_BYTES_MAX: Final = 16 * 1024


def greeting(path: Path) -> str:
    """Return the version that the server tells a new session; empty while it takes none."""
    body = f"user\0{USER}\0database\0{DATABASE}\0\0".encode()
    hello = (len(body) + 8).to_bytes(4) + _PROTOCOL.to_bytes(4) + body
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1.0)
        try:
            client.connect(str(path))
            client.sendall(hello)
            found = _told(client)
            client.sendall(b"X" + (4).to_bytes(4))
        except OSError:
            return ""
    return found


def _told(client: socket.socket) -> str:
    """Return the version among what the server says until it is ready for a question."""
    answer = b""
    while len(answer) < _ANSWER_BYTES_MAX:
        more = client.recv(4096)
        if not more:
            return ""
        answer += more
        settings: dict[str, str] = {}
        for kind, body in _messages(answer):
            if kind == b"E":
                return ""
            if kind == b"S":
                name, _, value = body.partition(b"\0")
                settings[name.decode(errors="replace")] = value.rstrip(b"\0").decode(
                    errors="replace"
                )
            if kind == b"Z":
                return settings.get("server_version", "")[:500]
    return ""


def _messages(answer: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Give kind and body of each message that has arrived whole."""
    at = 0
    while at + 5 <= len(answer):
        length = int.from_bytes(answer[at + 1 : at + 5])
        if length < 4 or at + 1 + length > len(answer):  # noqa: PLR2004  it counts its own four
            return
        yield answer[at : at + 1], answer[at + 5 : at + 1 + length]
        at += 1 + length

"""Ports of this machine for servers that tests start, and start again, in other processes."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port that nobody else is given before this process ends."""
    held = socket.socket()
    # Bound, and never listening: who asks for any port gets another one, and a server that may
    # reuse addresses gets this one, as often as it is started. A port that is let go belongs to
    # whoever asks next, and that may be the server of another test.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port: int = held.getsockname()[1]
    held.detach()
    return port

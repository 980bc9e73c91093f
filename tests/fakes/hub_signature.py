"""A signer that shares nothing with the service: HMAC-SHA256 written out as RFC 2104 defines it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

SECRET = "it's a secret that nobody knows"
_BLOCK_BYTES = 64


def signature_of(body: bytes, secret: str = SECRET) -> str:
    """Return the header X-Hub-Signature-256 of a body."""
    key = secret.encode()
    if len(key) > _BLOCK_BYTES:
        key = hashlib.sha256(key).digest()
    key = key.ljust(_BLOCK_BYTES, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + body).digest()
    return "sha256=" + hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()


def body_of(payload: Any) -> bytes:
    """Return a payload as GitHub sends it."""
    return json.dumps(payload).encode()

"""Whether a request comes from Slack: its signature over time and body, and its age.

Headers and the body as it came go in; nothing or an error comes out. That no request counts twice
is for the store to know.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

from service.core.errors import CredentialMissingError

if TYPE_CHECKING:
    from datetime import datetime

#: What Slack advises; clocks differ by less.
AGE_SECONDS_MAX: Final = 300
#: Digits of a time in seconds, for the next two hundred years.
_DIGITS_MAX: Final = 10


def check_signature(
    body: bytes, *, secret: str, timestamp: str, signature: str, now: datetime
) -> None:
    """Return quietly if Slack sent this body a moment ago.

    Raises:
        CredentialMissingError: It did not, or that cannot be known.
    """
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _DIGITS_MAX):
        raise CredentialMissingError("the request has no time in X-Slack-Request-Timestamp")
    signed = b"v0:" + timestamp.encode() + b":" + body
    wanted = f"v0={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"
    if not hmac.compare_digest(wanted.encode(), signature.encode()):
        raise CredentialMissingError("the signature in X-Slack-Signature is not Slack's")
    if abs(now.timestamp() - int(timestamp)) > AGE_SECONDS_MAX:
        raise CredentialMissingError("the request is too old, or from the future")

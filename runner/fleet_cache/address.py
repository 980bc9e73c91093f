"""Addresses of the fleet's cache: the text of a setting in, a folder or a bucket out.

Nothing is opened here, so that a wrong setting is an error before a job begins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from runner.errors import OperatorError

#: What S3 itself takes for a bucket's name.
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]")
_HELP: Final = "a folder such as /mnt/fleet, or s3://BUCKET/PREFIX"


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the cache is: a folder, or a bucket of an S3-compatible store."""

    folder: Path | None = None
    bucket: str = ""
    prefix: str = ""
    #: Base address of a store that is not AWS'; empty for AWS, or for what AWS_ENDPOINT_URL says.
    endpoint: str = ""

    def __str__(self) -> str:
        """Return it as a person would write it."""
        if self.folder is not None:
            return str(self.folder)
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def address_of(url: str, *, endpoint: str = "") -> Address | None:
    """Return the address that the settings name, or None where they name none.

    Raises:
        OperatorError: It is none, or has a password in it.
    """
    if not url:
        return None
    parts = _parts("FORKWATCH_CACHE_URL", url)
    if parts.scheme in {"", "file"}:
        folder = Path(parts.path)
        if parts.netloc or not folder.is_absolute():
            raise OperatorError(f"FORKWATCH_CACHE_URL is {url!r}: it has to be {_HELP}")
        return Address(folder=folder)
    if parts.scheme != "s3" or not _BUCKET.fullmatch(parts.netloc):
        raise OperatorError(f"FORKWATCH_CACHE_URL is {url!r}: it has to be {_HELP}")
    if endpoint:
        base = _parts("FORKWATCH_CACHE_ENDPOINT", endpoint)
        if base.scheme not in {"http", "https"} or not base.netloc:
            raise OperatorError(
                f"FORKWATCH_CACHE_ENDPOINT is {endpoint!r}: it has to be an address such as "
                "https://minio.example.org:9000"
            )
    return Address(bucket=parts.netloc, prefix=parts.path.strip("/"), endpoint=endpoint.rstrip("/"))


def _parts(setting: str, text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise OperatorError(f"{setting} is no address: {error}") from error
    # The address stands in messages and documents, so the text is not repeated here.
    if "@" in parts.netloc or parts.query:
        raise OperatorError(
            f"{setting} has a user, a password or a query in it: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY in the runner's environment instead"
        )
    return parts

"""A digest sink that writes one Markdown file per fork and week; the archive on the disk."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import quote

from results.atomic import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from service.core.digests import StoredDigest

_log = logging.getLogger("forkwatch.digests")


class FileDigests:
    """Digest files in the service's home."""

    def __init__(self, home: Path) -> None:
        self._folder = home.resolve() / "digests"

    def send_digest(self, digest: StoredDigest) -> str:
        """Write the digest's file and return its path; writing it again makes the same file."""
        # A fork's name may hold anything; quoted it is one name of a file, and no way out of here.
        folder = self._folder / f"fork-{quote(digest.fork, safe='')}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{digest.week.name}.md"
        write_atomically(path, digest.text)
        _log.info("digest of %s, week %s: %s", digest.fork, digest.week.name, path)
        return str(path)

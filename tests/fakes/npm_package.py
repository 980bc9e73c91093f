"""One file of a package that npm's client fetches; what is fetched is never committed.

A package of a fixed version, a member and its digest come in, the member's bytes go out: a registry
cannot hand us another file unnoticed.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runner import shell

FETCH_SECONDS_MAX: Final = 600
#: Anything larger is none of the files that tests want.
MEMBER_BYTES_MAX: Final = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class NpmMember:
    """A file in a package."""

    #: Name and version, as npm takes them.
    package: str
    #: Its path in the package, or its name alone.
    member: str
    sha256: str

    def fetch(self) -> bytes:
        """Return its content."""
        with tempfile.TemporaryDirectory(prefix="forkwatch-") as folder:
            done = shell.run(
                ["npm", "pack", self.package, "--silent", "--pack-destination", folder],
                timeout_s=FETCH_SECONDS_MAX,
                cwd=Path(folder),
            )
            packed = list(Path(folder).glob("*.tgz"))
            assert done.ok, f"npm could not fetch {self.package}: {done.stderr or done.stdout}"
            assert len(packed) == 1, f"npm packed {packed}"
            content = self._read(packed[0])
        digest = hashlib.sha256(content).hexdigest()
        assert digest == self.sha256, f"{self.package} is not the one we know: {digest}"
        return content

    def _read(self, archive: Path) -> bytes:
        with tarfile.open(archive) as opened:
            member = next(
                item for item in opened if self.member in {item.name, Path(item.name).name}
            )
            assert member.size <= MEMBER_BYTES_MAX
            file = opened.extractfile(member)
            assert file is not None
            return file.read()

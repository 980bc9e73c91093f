"""A wanted file: where it has to lie, what is in it, and who may read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: First line of every file that may have comments.
HEAD: Final = "# Written by `forkwatch host enroll`; `forkwatch host retire` takes it away."
SYSUSERS: Final = Path("/etc/sysusers.d/forkwatch.conf")


@dataclass(frozen=True, kw_only=True)
class WantedFile:
    """One file of an enrolment."""

    path: Path
    text: str
    mode: int = 0o644

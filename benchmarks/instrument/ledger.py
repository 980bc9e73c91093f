"""The ledger: what was measured so far, one line of JSON per unit, so that a stopped run goes on.

A unit is known by its part, its key and a digest of the sizes it was measured with. Lines are only
ever added; a line that a kill cut short is ignored.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.instrument.unit import Part

Record = dict[str, Any]


class Ledger:
    """The results file of one folder."""

    def __init__(self, path: Path) -> None:
        """Remember where the file is; it is made when the first unit is added."""
        self._path = path

    def add(self, part: Part, key: str, record: Record) -> None:
        """Append a unit that was measured."""
        line = json.dumps({"part": part.name, "key": key, "sizes": _digest(part), **record})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # A line that a kill cut short must not swallow this one.
        before = self._path.read_text() if self._path.exists() else ""
        torn = bool(before) and not before.endswith("\n")
        with self._path.open("a") as file:
            file.write(("\n" if torn else "") + line + "\n")

    def of(self, part: Part) -> list[Record]:
        """Return the units of a part measured with its present sizes, in the order of measuring."""
        if not self._path.exists():
            return []
        found = []
        for line in self._path.read_text().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if record["part"] == part.name and record["sizes"] == _digest(part):
                found.append(record)
        return found

    def has(self, part: Part, key: str) -> bool:
        """Whether a unit was measured."""
        return any(record["key"] == key for record in self.of(part))


def _digest(part: Part) -> str:
    text = json.dumps(part.sizes, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]

"""What a load took: rows and indexes per second, start-up and shutdown, disk and memory.

Measured while a snapshot is made, kept in its manifest, and so told once for each dataset of an
engine's format: not once for each start.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

_KIB: Final = 1024


class LoadFacts(BaseModel):
    """What one load took."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    #: From the client's start to its end: tables, rows, indexes, statistics.
    load_s: float = Field(ge=0)
    #: Of it, inserting rows and making secondary indexes; None where the loader does not tell.
    rows_s: float | None = Field(default=None, ge=0)
    indexes_s: float | None = Field(default=None, ge=0)
    #: Rows, or keys, of all tables.
    rows: int = Field(ge=0)
    #: Until nothing was left to do in the background.
    settle_s: float = Field(ge=0)
    #: From the start of an empty server to its first answer, the sandbox included.
    startup_s: float = Field(ge=0)
    #: A full shutdown after the load: everything written, purged and merged.
    shutdown_s: float = Field(ge=0)
    #: What the data directory takes on the disk afterwards, its redo log included.
    disk_bytes: int = Field(ge=0)
    #: The largest resident size of the server's processes, added up; None where there is none.
    peak_rss_bytes: int | None = Field(default=None, ge=0)

    @property
    def rows_per_s(self) -> float | None:
        """Rows loaded per second, without indexes where that is known; None for an empty load."""
        spent_s = self.rows_s if self.rows_s is not None else self.load_s
        return self.rows / spent_s if self.rows and spent_s > 0 else None


def measured(facts: Mapping[str, JsonValue]) -> LoadFacts | None:
    """Return the load's facts among those of a manifest; None where there are none."""
    try:
        return LoadFacts.model_validate(facts.get("measured"))
    except ValidationError:
        return None


def peak_rss_bytes(pids: Sequence[int]) -> int | None:
    """Return the largest resident sizes that these processes have had, added up.

    Pages that they share are in each of them, so for a server of many processes it is a bound.
    """
    total = 0
    for pid in pids:
        # It may have ended.
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total += int(line.split()[1]) * _KIB
    return total or None

"""What a load took: rows and indexes per second, start-up and shutdown, disk and memory.

Measured while a snapshot is made, kept in its manifest, and so told once for each dataset of an
engine's format: not once for each start.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from results.server_facts import Load, LoadFacts
from runner import shell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pydantic import JsonValue

    from results.slice import SideName
    from runner.snapshots import Snapshot

__all__ = ["LoadFacts", "measured", "peak_rss_bytes", "side_loads"]

_KIB: Final = 1024
_VERSION_LENGTH_MAX: Final = 500


def measured(facts: Mapping[str, JsonValue]) -> LoadFacts | None:
    """Return the load's facts among those of a manifest; None where there are none."""
    try:
        return LoadFacts.model_validate(facts.get("measured"))
    except ValidationError:
        return None


def side_loads(snapshots: Mapping[SideName, Snapshot], *, since: datetime) -> dict[SideName, Load]:
    """Return how each side's data was loaded; a side of an older forkwatch's snapshot is left out.

    Args:
        snapshots: The first side of those that share one is the one that loads.
        since: When the job began: what was loaded before was loaded by another job.
    """
    found: dict[SideName, Load] = {}
    seen: set[int] = set()
    for side, snapshot in snapshots.items():
        manifest = snapshot.manifest
        facts = measured(manifest.facts)
        if facts is not None:
            version = shell.readable(str(manifest.facts.get("server_version", "")))
            found[side] = Load(
                **facts.model_dump(),
                loaded_at=manifest.created_at,
                server_version=version[:_VERSION_LENGTH_MAX],
                own=manifest.created_at >= since and id(snapshot) not in seen,
            )
        seen.add(id(snapshot))
    return found


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

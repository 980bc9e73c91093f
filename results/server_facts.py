"""What servers took besides operations: loading, coming up, going down, memory and disk.

Parts of a run document. They are facts for people and for series, and nothing is ever judged by
them: a load belongs to the day on which it was made, and start-ups are few.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AwareDatetime, Field

from results.metric import DISK, PEAK_MEMORY, SHUTDOWN, STARTUP
from results.slice import SideName  # noqa: TC001  pydantic reads it at run time
from results.values import NonNegative, Part, Text

#: Servers of one start: a leg for each writing workload and chain, on two sides.
SERVERS_MAX: Final = 1_000


#: A document may be hostile, and what is counted becomes a float of a series.
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
#: Loaders tell milliseconds: a quotient by less says nothing.
_TICK_S: Final = 0.001


class LoadFacts(Part):
    """What one load took."""

    #: From the client's start to its end: tables, rows, indexes, statistics.
    load_s: NonNegative
    #: Of it, inserting rows and making secondary indexes; None where the loader does not tell.
    rows_s: NonNegative | None = None
    indexes_s: NonNegative | None = None
    #: Rows, or keys, of all tables.
    rows: Count
    #: Until nothing was left to do in the background.
    settle_s: NonNegative
    #: From the start of an empty server to its first answer, the sandbox included.
    startup_s: NonNegative
    #: A full shutdown after the load: everything written, purged and merged.
    shutdown_s: NonNegative
    #: What the data directory takes on the disk afterwards, its redo log included.
    disk_bytes: Count
    #: The largest resident size of the server's processes, added up; None where there is none.
    peak_rss_bytes: Count | None = None

    @property
    def rows_per_s(self) -> float | None:
        """Rows loaded per second, without indexes where that is known; None for an empty load."""
        spent_s = self.rows_s if self.rows_s is not None else self.load_s
        return self.rows / spent_s if self.rows and spent_s >= _TICK_S else None


class Load(LoadFacts):
    """The load that a side began from, and whose it was."""

    loaded_at: AwareDatetime
    #: What the server that loaded says about its version.
    server_version: Text = ""
    #: Whether this side loaded it in this job. Only then it tells something of its commit: sides of
    #: one format share a snapshot, and a snapshot serves many commits.
    own: bool = False


class ServerLife(Part):
    """One server of a start, from its coming to its going."""

    side: SideName
    #: Which of the start's data directories it ran on: each writing workload begins from a fresh
    #: one. What was asked of the servers of one leg is the same on both sides.
    leg: int = Field(ge=0)
    #: To the first answer, the sandbox included; None for a library, which has no server.
    startup_s: NonNegative | None = None
    #: An ordinary shutdown after the last slice.
    shutdown_s: NonNegative | None = None
    #: The largest resident size of its processes, added up; pages they share count in each.
    peak_rss_bytes: Count | None = None
    #: What the data directory took when it had stopped, its redo log included.
    disk_bytes: Count

    def value(self, metric: str) -> float | None:
        """Return its number of a supporting metric, or None where it has none."""
        return {
            STARTUP.name: self.startup_s,
            SHUTDOWN.name: self.shutdown_s,
            PEAK_MEMORY.name: self.peak_rss_bytes,
            DISK.name: self.disk_bytes,
        }.get(metric)

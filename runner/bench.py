"""The bench: everything that stays the same from start to start of one job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from results.document import Placement
    from results.slice import SideName
    from runner.disturbance import Limits
    from runner.servers.engine import ServerSpec
    from runner.snapshots import Snapshot
    from workloads.plan import DatasetPlan, Suite


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What every start is measured with."""

    servers: Mapping[SideName, ServerSpec]
    suite: Suite
    dataset: DatasetPlan
    #: What each side begins from: one and the same where their data formats are equal.
    snapshots: Mapping[SideName, Snapshot]
    #: Where data directories of running servers are put; on the snapshots' file system.
    scratch: Path
    placement: Placement
    seed: int
    #: Process ids of what keeps the measured processors awake.
    spinners: Sequence[int] = ()
    #: What a quiet slice may show; None where nobody looks.
    limits: Limits | None = None

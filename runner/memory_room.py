"""Memory: whether the data of a job fits into this machine, decided before anything is loaded.

What each side's data will take comes in; a job that would measure the disk without having said so
is refused with the arithmetic. How much memory a server may use is not decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.errors import DatasetError
from runner.limits import MEMORY_SHARE, machine_memory

if TYPE_CHECKING:
    from collections.abc import Collection

    from workloads.plan import DatasetPlan


def check(
    name: str,
    plan: DatasetPlan,
    sides: Collection[int],
    *,
    what: str = "",
    memory: int | None = None,
) -> None:
    """Refuse a dataset that is to be cached and cannot be.

    Both sides of a pair are up at once and each has its own copy, so that their bytes add up.

    Args:
        name: Of the dataset in the plan.
        plan: The dataset.
        sides: About how many bytes of data each side has, its redo log left out.
        what: How large it is in the plan's own measures.
        memory: Of the machine, in bytes; this one's where not given.

    Raises:
        DatasetError: It does not fit; carries the arithmetic.
    """
    have = machine_memory() if memory is None else memory
    room, needed = int(have * MEMORY_SHARE), sum(sides)
    if not plan.cached or needed <= room:
        return
    parts = " + ".join(f"{_gb(size)} GB" for size in sides)
    told = f", {what}," if what else ""
    raise DatasetError(
        "dataset",
        f"dataset {name!r}{told} takes {parts} on the sides of this job, and {_gb(room)} GB of "
        f"this machine's {_gb(have)} GB may hold data: the disk would be measured; load fewer "
        f"rows, or set datasets.{name}.cached = false",
    )


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f}"

"""What the whole machine and one of its disks did: the accounts that vmstat and iostat print.

The field's tables are made of these (cpu/o cs/o r/o rKB/o wKB/o), so they count what those programs
count: everything on the machine, the client and the kernel's own threads included.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

#: /proc/diskstats counts in sectors of 512 bytes, whatever the disk's own are.
_SECTOR_BYTES: Final = 512
#: Fields of /proc/diskstats (kernel documentation, admin-guide/iostats).
_NAME, _READS, _SECTORS_READ, _SECTORS_WRITTEN = 2, 3, 5, 9


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The machine's accounts at one moment; seconds are summed over its processors."""

    #: User and system, with nice and interrupts as vmstat has it.
    busy_s: float
    steal_s: float
    total_s: float
    switches: int
    #: 0 where there is no device to look at.
    device_reads: int
    device_read_bytes: int
    device_write_bytes: int


#: The account of no time at all.
NOTHING: Final = Reading(
    busy_s=0.0,
    steal_s=0.0,
    total_s=0.0,
    switches=0,
    device_reads=0,
    device_read_bytes=0,
    device_write_bytes=0,
)


def plus(sums: Reading, before: Reading, after: Reading) -> Reading:
    """Return some sums with what happened between two readings added."""
    values = {
        each.name: getattr(sums, each.name) + getattr(after, each.name) - getattr(before, each.name)
        for each in fields(Reading)
    }
    return Reading(**values)


def device_of(folder: Path, *, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return the name of the block device that holds `folder`, or None if there is none."""
    number = folder.stat().st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if link.exists():
        return link.resolve().name
    # btrfs and some others have a number of their own; what is mounted there tells the device.
    wanted = f"{os.major(number)}:{os.minor(number)}"
    for line in mounts.read_text().splitlines():
        mount, _, source = line.partition(" - ")
        if mount.split()[2:3] == [wanted]:
            device = Path(source.split()[1])
            return device.resolve().name if device.is_block_device() else None
    return None


def read(device: str | None, *, proc: Path = Path("/proc")) -> Reading:
    """Return the accounts of the machine and of a block device now."""
    tick = os.sysconf("SC_CLK_TCK")
    lines = (proc / "stat").read_text().splitlines()
    # Guests' time is in user time already, so the fields behind steal are left out.
    values = [int(value) for value in lines[0].split()[1:9]]
    user, nice, system, idle, waiting, interrupts, soft, steal = values
    busy = user + nice + system + interrupts + soft
    (turns,) = (int(line.split()[1]) for line in lines if line.startswith("ctxt "))
    reads, read_sectors, written_sectors = _disk(proc, device)
    return Reading(
        busy_s=busy / tick,
        steal_s=steal / tick,
        total_s=(busy + idle + waiting + steal) / tick,
        switches=turns,
        device_reads=reads,
        device_read_bytes=read_sectors * _SECTOR_BYTES,
        device_write_bytes=written_sectors * _SECTOR_BYTES,
    )


def _disk(proc: Path, device: str | None) -> tuple[int, int, int]:
    if device is not None:
        for line in (proc / "diskstats").read_text().splitlines():
            fields = line.split()
            if fields[_NAME] == device:
                return (
                    int(fields[_READS]),
                    int(fields[_SECTORS_READ]),
                    int(fields[_SECTORS_WRITTEN]),
                )
    return 0, 0, 0

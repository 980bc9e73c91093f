"""Counters: what a slice cost the server, the machine and the disk, and what the engine did in it.

Rooms: `process` and `machine` (accounts of the kernel), `engine` (status counters of the server),
`hardware` (perf stat, where there is a PMU) and `account`, which reads all of them around a slice.
Nothing here knows a workload or a verdict. docs/counters.md says what each number is.
"""

from __future__ import annotations

from runner.counters.account import Account, Reading, around, between, read
from runner.counters.machine import device_of
from runner.counters.process import children_s, family

__all__ = [
    "Account",
    "Reading",
    "around",
    "between",
    "children_s",
    "device_of",
    "family",
    "read",
]

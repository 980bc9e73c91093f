"""The account of a slice: every counter read before and after it, in the order that disturbs least.

Engine counters are asked for first and last, because asking makes the server work; the kernel's
accounts are taken just around the slice, so that this work is not in them.
"""

from __future__ import annotations

import contextlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from results.slice import Counters
from runner.counters import engine, hardware, machine, process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runner.servers.engine import RunningServer

_NS_PER_US: Final = 1_000
_US: Final = 1_000_000
_KIB: Final = 1024


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The kernel's accounts at one moment."""

    server: process.Reading
    machine: machine.Reading


@dataclass(kw_only=True)
class Account:
    """What a slice cost; there once the slice has ended."""

    counters: Counters | None = None
    #: The machine's part where it is not what the machine did from beginning to end.
    machine: machine.Reading | None = None
    #: The server's part, before and after, where it was taken within the block: what a server does
    #: for itself while another one is asked belongs to no operation.
    server: tuple[process.Reading, process.Reading] | None = None


def read(pids: Sequence[int], device: str | None) -> Reading:
    """Return the accounts of these processes, the machine and a block device now."""
    return Reading(server=process.read(pids), machine=machine.read(device))


@contextmanager
def around(
    server: RunningServer, device: str | None, *, asks_engine: bool = True, perf: bool = False
) -> Iterator[Account]:
    """Take the account of what happens in the block.

    Args:
        server: Whose account.
        device: Block device under its data, from `device_of`.
        asks_engine: Whether the server is asked for its status counters, 4 times when it is met
            first and twice for every account.
        perf: Whether the processor's counters are taken where there are any. They cost the server
            some time at every context switch, so both sides of a comparison have to have them.
    """
    account = Account()
    cost = engine.cost(server) if asks_engine else {}
    asked = engine.read(server) if asks_engine else {}
    with contextlib.ExitStack() as stack:
        counted: Mapping[str, float] = {}
        if perf and not hardware.missing():
            counted = stack.enter_context(hardware.counting(server.pids))
        before = read(server.pids, device)
        yield account
        after = read(server.pids, device)
    if account.machine is not None:
        before = replace(before, machine=machine.NOTHING)
        after = replace(after, machine=account.machine)
    if account.server is not None:
        before = replace(before, server=account.server[0])
        after = replace(after, server=account.server[1])
    answered = engine.read(server) if asked else {}
    account.counters = between(
        before, after, engine=engine.between(asked, answered, cost), hardware=counted
    )


def between(
    before: Reading,
    after: Reading,
    *,
    engine: Mapping[str, int] | None = None,
    hardware: Mapping[str, float] | None = None,
) -> Counters:
    """Return what happened between two readings."""
    server, machine = after.server, after.machine
    server_then, machine_then = before.server, before.machine
    total_s = max(machine.total_s - machine_then.total_s, 1e-9)
    busy_s = _grown(machine_then.busy_s, machine.busy_s)
    stolen_s = _grown(machine_then.steal_s, machine.steal_s)
    switches = process.switches(server_then, server)
    read_bytes = _grown(machine_then.device_read_bytes, machine.device_read_bytes)
    write_bytes = _grown(machine_then.device_write_bytes, machine.device_write_bytes)
    return Counters(
        server_cpu_us=_grown(server_then.cpu_ns, server.cpu_ns) / _NS_PER_US,
        voluntary_switches=switches.voluntary,
        involuntary_switches=switches.involuntary,
        switches_seen_percent=switches.seen_percent,
        server_read_bytes=_grown(server_then.read_bytes, server.read_bytes),
        server_write_bytes=_grown(server_then.write_bytes, server.write_bytes),
        server_read_calls=_grown(server_then.read_calls, server.read_calls),
        server_write_calls=_grown(server_then.write_calls, server.write_calls),
        minor_faults=_grown(server_then.minor_faults, server.minor_faults),
        major_faults=_grown(server_then.major_faults, server.major_faults),
        machine_cpu_percent=100 * busy_s / total_s,
        machine_cpu_us=busy_s * _US,
        machine_switches=_grown(machine_then.switches, machine.switches),
        machine_steal_percent=100 * stolen_s / total_s,
        device_reads=_grown(machine_then.device_reads, machine.device_reads),
        device_read_kib=read_bytes / _KIB,
        device_write_kib=write_bytes / _KIB,
        engine=dict(engine or {}),
        hardware=dict(hardware or {}),
    )


def _grown(before: float, after: float) -> float:
    """Return the growth of a counter; a counter that was reset has not shrunk below zero."""
    return max(0.0, after - before)

"""Fingerprint: what makes the results of one host comparable with its own earlier ones.

Facts with names come out, a stable digest over them, and what changed between two sets. Load,
temperature and free space are not among them: they pass. Compilers are not either: they belong to
the artifact.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict

from runner.host import readings, topology
from runner.host.facts import cpu_model, kernel, memory_bytes, settings
from runner.host.history import History

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from runner.host.machine import Machine

_DIGITS: Final = 16
#: Knobs that stop and start by the day without making results incomparable.
_PASSING: Final = frozenset({"timers", "cron"})


class Fingerprint(BaseModel):
    """A host's facts at one time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    taken_at: AwareDatetime
    facts: dict[str, str]

    @property
    def digest(self) -> str:
        """A short text that is equal for equal facts."""
        text = json.dumps(self.facts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One fact that is not what it was; an empty text is a fact that was not there."""

    name: str
    before: str
    after: str


def take(machine: Machine, home: Path, *, at: datetime) -> Fingerprint:
    """Return the host's fingerprint now."""
    cpus = topology.read(machine).cpus
    facts = {
        "architecture": platform.machine(),
        "cpu_model": cpu_model(machine),
        "microcode": machine.cpuinfo("microcode"),
        "processors": str(len(cpus)),
        "cores": str(len({cpu.core for cpu in cpus})),
        "packages": str(len({cpu.package for cpu in cpus})),
        "memory_nodes": str(len({cpu.node for cpu in cpus})),
        "memory_gib": str(round(memory_bytes(machine) / 1024**3)),
        "kernel": kernel(machine),
        "kernel_command_line": _command_line(machine),
        "libc": os.confstr("CS_GNU_LIBC_VERSION") or "",
        "filesystem": readings.filesystem(home),
        "virtualised": "yes" if machine.virtualised() else "no",
        **_mitigations(machine),
        **{name: value for name, value in settings(machine).items() if name not in _PASSING},
    }
    return Fingerprint(taken_at=at, facts={name: value for name, value in facts.items() if value})


def changes(before: Fingerprint, after: Fingerprint) -> Sequence[Difference]:
    """Return what changed between two fingerprints, by name."""
    names = sorted({*before.facts, *after.facts})
    return [
        Difference(name=name, before=before.facts.get(name, ""), after=after.facts.get(name, ""))
        for name in names
        if before.facts.get(name, "") != after.facts.get(name, "")
    ]


def remember(folder: Path, now: Fingerprint) -> Fingerprint | None:
    """Keep a fingerprint in the host's folder and return the last one that differed, if any."""
    history = History(folder / "fingerprints.jsonl", Fingerprint)
    earlier = history.read()
    if not earlier or earlier[-1].digest != now.digest:
        history.append([now])
    return next((past for past in reversed(earlier) if past.digest != now.digest), None)


def _command_line(machine: Machine) -> str:
    """Return the kernel's arguments without those that are different on every disk or boot."""
    words = machine.text("/proc/cmdline").split()
    return " ".join(word for word in words if not word.startswith(("BOOT_IMAGE=", "root=", "ip=")))


def _mitigations(machine: Machine) -> Mapping[str, str]:
    names = machine.names("/sys/devices/system/cpu/vulnerabilities/*")
    return {f"mitigation_{name.rpartition('/')[2]}": machine.text(name) for name in names}

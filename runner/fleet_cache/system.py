"""Systems: what two machines have in common where one may use what the other has made.

A machine goes in, a digest for each kind of pack comes out. Builds may be made for the processor
they are built on (RocksDB's are, where nobody says otherwise), and a data directory may hold texts
in an order that the C library decides.
"""

from __future__ import annotations

import hashlib
import os
import platform
from typing import TYPE_CHECKING, Final

from runner.fleet_cache.notes import Kind
from runner.host.facts import cpu_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.host.machine import Machine

_DIGITS: Final = 16


def systems(machine: Machine) -> Mapping[Kind, str]:
    """Return the digest that stands for machines like this one, for each kind of pack."""
    here = (
        platform.machine(),
        os.confstr("CS_GNU_LIBC_VERSION") or "",
        *(_release(machine, key) for key in ("ID", "VERSION_ID")),
    )
    # ARM calls its flags features.
    flags = machine.cpuinfo("flags") or machine.cpuinfo("Features")
    processor = (cpu_model(machine), *sorted(flags.split()))
    return {Kind.ARTIFACT: _digest((*here, *processor)), Kind.DATASET: _digest(here)}


def _release(machine: Machine, key: str) -> str:
    """Return what the distribution says of itself."""
    for line in machine.text("/etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == key:
            return value.strip("\"'")
    return ""


def _digest(words: tuple[str, ...]) -> str:
    return hashlib.sha256("\x1f".join(words).encode()).hexdigest()[:_DIGITS]

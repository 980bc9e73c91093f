"""A host with a service manager of our own: it remembers what it was told, and may refuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runner import shell
from runner.host.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class ManagedHost(Machine):
    """A machine whose units are in a state that the test sets."""

    #: States of units; what is not here is inactive.
    units: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    #: Words that are refused.
    refused: set[str] = field(default_factory=set)
    group: str = "/system.slice/unit"

    def command(self, argv: Sequence[str]) -> shell.Completed | None:
        """Do as systemctl does, as far as it is asked here."""
        words = " ".join(argv)
        if argv[1:2] == ["is-active"]:
            return _said(self.units.get(argv[2], "inactive"))
        if argv[1:2] == ["show"]:
            return _said(self.group)
        self.told.append(words)
        if words in self.refused:
            return shell.Completed(returncode=1, stdout="", stderr="Access denied")
        return _said("")

    def runs(self, *programs: str) -> None:
        """Let the unit's control group have processes of these names."""
        pids = [str(100 + number) for number in range(len(programs))]
        self._write(f"/sys/fs/cgroup{self.group}/job/cgroup.procs", "\n".join(pids))
        for pid, name in zip(pids, programs, strict=True):
            self._write(f"/proc/{pid}/comm", name)

    def _write(self, name: str, text: str) -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(f"{text}\n")


def _said(text: str) -> shell.Completed:
    return shell.Completed(returncode=0, stdout=f"{text}\n", stderr="")

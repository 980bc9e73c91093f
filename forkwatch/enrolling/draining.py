"""Draining: a host ends the job that it does and takes no other, and goes on when it is told to.

The host as files and its service manager come in, what was done goes out in words. A file stands
for the wish, so that it outlives a reboot; the unit looks for it before every job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from forkwatch.enrolling.enrolment import DRAINING, System
from forkwatch.errors import EnrolError
from runner.host.storage import remove, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkwatch.enrolling.placing import Placement
    from runner.host.machine import Machine

#: What GitHub's runner calls the process that does a job; there is none between jobs.
_WORKER: Final = "Runner.Worker"
_WISH: Final = "no new job; `forkwatch host drain --resume` ends it\n"
_STOPPED: Final = frozenset({"inactive", "failed", ""})


def drain(machine: Machine, placed: Placement) -> str:
    """Take no new job, and say what becomes of the one that may run.

    Raises:
        EnrolError: The service manager refused.
        OSError: The wish could not be written down.
    """
    write_whole(machine.path(str(DRAINING)), _WISH)
    if state(machine, placed) in _STOPPED:
        return f"{placed.unit} does not run; it takes no job until --resume"
    if placed.system is System.BUILDKITE:
        # Asked to end, the agent finishes its job first. Nobody waits here for that.
        _systemctl(machine, "stop", "--no-block", placed.unit)
        return "the agent was asked to end: a job that runs is finished, and no other is taken"
    if is_busy(machine, placed):
        return "a job runs: it is finished, and no other is taken"
    _systemctl(machine, "stop", placed.unit)
    return "no job ran: the runner has ended"


def resume(machine: Machine, placed: Placement) -> str:
    """Take jobs again.

    Raises:
        EnrolError: The service manager refused.
    """
    remove(machine.path(str(DRAINING)))
    _systemctl(machine, "start", "--no-block", placed.unit)
    return f"{placed.unit} takes jobs again"


def state(machine: Machine, placed: Placement) -> str:
    """Return what the service manager says of the unit; empty where there is no service manager."""
    done = machine.command(["systemctl", "is-active", placed.unit])
    return "" if done is None else done.stdout.strip()


def must_be_stopped(machine: Machine, placed: Placement) -> None:
    """Raise EnrolError while the unit still takes or does jobs."""
    found = state(machine, placed)
    if found not in _STOPPED:
        raise EnrolError(
            f"{placed.unit} is {found}: `forkwatch host drain` first, and wait until it has ended"
        )


def is_busy(machine: Machine, placed: Placement) -> bool:
    """Whether GitHub's runner does a job now."""
    done = machine.command(["systemctl", "show", "--property=ControlGroup", "--value", placed.unit])
    group = "" if done is None else done.stdout.strip()
    if not group:
        return False
    return any(
        machine.text(f"/proc/{pid}/comm") == _WORKER
        for path in machine.names(f"/sys/fs/cgroup{group}/**/cgroup.procs")
        for pid in machine.text(path).split()
    )


def after_placing(machine: Machine, units: Sequence[str]) -> None:
    """Let the service manager see new units, make the user, and begin them with every boot.

    Raises:
        EnrolError: It refused.
    """
    _run(machine, ["systemd-sysusers"])
    _systemctl(machine, "daemon-reload")
    _systemctl(machine, "enable", *units)


def before_taking_away(machine: Machine, units: Sequence[str]) -> None:
    """Stop units and begin them no more, which puts a tuned host back; forget that it was drained.

    Raises:
        EnrolError: The service manager refused.
    """
    _systemctl(machine, "disable", "--now", *units)
    remove(machine.path(str(DRAINING)))


def after_taking_away(machine: Machine) -> None:
    """Let the service manager forget the units.

    Raises:
        EnrolError: It refused.
    """
    _systemctl(machine, "daemon-reload")


def _systemctl(machine: Machine, *words: str) -> None:
    _run(machine, ["systemctl", *words])


def _run(machine: Machine, words: Sequence[str]) -> None:
    done = machine.command(words)
    if done is None:
        raise EnrolError(f"{words[0]} is not installed: enrolling needs a host with systemd")
    if not done.ok:
        raise EnrolError(f"{' '.join(words)} failed: {done.stderr.strip()[-300:]}")

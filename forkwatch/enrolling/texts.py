"""Files of an enrolment: an enrolment in, every file with its place, text and mode out.

What both systems have in common stands here: the user, the tuned host. Nothing is written here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from forkwatch.enrolling import buildkite, github
from forkwatch.enrolling.enrolment import TUNE_UNIT, UNITS, System
from forkwatch.enrolling.wanted import HEAD, SYSUSERS, WantedFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forkwatch.enrolling.enrolment import Enrolment

_USER: Final = """\
{head}
u {user} - "runner of forkwatch" {home} /usr/sbin/nologin
"""
_TUNE: Final = """\
{head}
[Unit]
Description=forkwatch: this host as an instrument
# Both would turn the same knobs again later on.
Conflicts=tuned.service power-profiles-daemon.service
# Timers and cron are among the knobs: they have to be there to be stopped.
After=timers.target cron.service crond.service irqbalance.service

[Service]
Type=oneshot
RemainAfterExit=yes
# A home of root's own: what the runner's user may write is not what root puts back.
StateDirectory=forkwatch-tune
# 1 is a knob that this machine refuses; `forkwatch host check` names it before every job.
SuccessExitStatus=1
ExecStart={program} host tune --home /var/lib/forkwatch-tune
ExecStop={program} host reset --home /var/lib/forkwatch-tune

[Install]
WantedBy=multi-user.target
"""


def files_of(enrolment: Enrolment, hooks: Mapping[str, str]) -> Sequence[WantedFile]:
    """Return every file of an enrolment, in the order in which they are needed.

    Args:
        enrolment: What the host is enrolled as.
        hooks: The agent's hooks by name; only Buildkite has any.
    """
    named = {"head": HEAD, "user": enrolment.user, "home": enrolment.home}
    common = [
        WantedFile(path=SYSUSERS, text=_USER.format_map(named)),
        WantedFile(path=UNITS / TUNE_UNIT, text=_TUNE.format(head=HEAD, program=enrolment.program)),
    ]
    if enrolment.system is System.GITHUB:
        return [*common, *github.files(enrolment)]
    return [*common, *buildkite.files(enrolment, hooks)]


def next_steps(enrolment: Enrolment) -> Sequence[str]:
    """Return what is left for a person to do, in order."""
    first = (
        github.steps(enrolment) if enrolment.system is System.GITHUB else buildkite.steps(enrolment)
    )
    return [
        *first,
        f"systemctl start {TUNE_UNIT} {enrolment.unit}",
        f"sudo -u {enrolment.user} {enrolment.program} host check --home {enrolment.home}",
    ]

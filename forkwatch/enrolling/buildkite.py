"""A buildkite-agent on a benchmark host: one job, then a new agent.

An enrolment and the hooks go in; out come the unit, the agent's configuration, and the hooks in a
folder that no job may write to.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from forkwatch.enrolling.enrolment import CONFIG, DRAINING, TUNE_UNIT, UNITS
from forkwatch.enrolling.wanted import HEAD, WantedFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forkwatch.enrolling.enrolment import Enrolment

AGENT_CONFIG: Final = CONFIG / "buildkite-agent.cfg"
HOOKS: Final = CONFIG / "agent-hooks"
#: The agent's own folder: checkouts, mirrors and its home.
STATE: Final = Path("/var/lib/forkwatch-agent")
#: Read by the hook `environment`.
_AGENT_ENV: Final = "agent.env"

_UNIT: Final = """\
{head}
[Unit]
Description=forkwatch: one job of Buildkite after another ({host_class}, {org})
Wants=network-online.target {tune_unit}
After=network-online.target {tune_unit}
StartLimitIntervalSec=0

[Service]
User={user}
StateDirectory={state} {agent_state}
Environment=HOME={agent_folder}
# BUILDKITE_AGENT_TOKEN=...: read by systemd as root. The agent takes it out of what jobs inherit.
EnvironmentFile={secret}
# `forkwatch host drain` makes the file, and a host that is drained stays so after a reboot.
ExecCondition=/usr/bin/test ! -e {draining}
ExecStart={agent} start --config {config}
# The agent goes after each job, and a new one comes.
Restart=always
RestartSec=5
# Asked to end, the agent finishes its job first, for as long as a job may take.
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=7h
# One process that ran out of memory must not end the job that measures it.
OOMPolicy=continue
# A server with a thousand clients and a build on many processors.
LimitNOFILE=65536
TasksMax=infinity
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
"""
_CONFIG: Final = """\
{head}
# The token is not here but in {secret}, which only root reads.
name="%hostname-{host_class}"
tags="queue={host_class},forkwatch=true"
# One agent on a host, one job at a time, and a new agent for each.
spawn=1
disconnect-after-job=true
hooks-path="{hooks}"
# What a repository brings along does not run on the host: neither hooks nor plugins.
no-local-hooks=true
no-plugins=true
build-path="{agent_folder}/builds"
plugins-path="{agent_folder}/plugins"
sockets-path="{agent_folder}/sockets"
git-mirrors-path="{agent_folder}/mirrors"
# Seconds for a cancelled job to put its servers away.
cancel-grace-period=60
"""
_ENV: Final = """\
{head}
FORKWATCH_HOME={home}
FORKWATCH_HOST_CLASS={host_class}
PATH={program_folder}:$PATH
"""


def files(enrolment: Enrolment, hooks: Mapping[str, str]) -> Sequence[WantedFile]:
    """Return the unit, the configuration and the hooks."""
    named = {
        "head": HEAD,
        "host_class": enrolment.host_class,
        "org": enrolment.org,
        "user": enrolment.user,
        "home": str(enrolment.home),
        "state": enrolment.home.name,
        "agent_state": STATE.name,
        "agent_folder": str(STATE),
        "agent": str(enrolment.agent),
        "config": str(AGENT_CONFIG),
        "hooks": str(HOOKS),
        "secret": str(enrolment.secret),
        "draining": str(DRAINING),
        "tune_unit": TUNE_UNIT,
        "program_folder": str(enrolment.program.parent),
    }
    return [
        WantedFile(path=AGENT_CONFIG, text=_CONFIG.format_map(named)),
        *(
            WantedFile(path=HOOKS / name, text=text, mode=0o755)
            for name, text in sorted(hooks.items())
        ),
        WantedFile(path=HOOKS / _AGENT_ENV, text=_ENV.format_map(named)),
        WantedFile(path=UNITS / enrolment.unit, text=_UNIT.format_map(named)),
    ]


def steps(enrolment: Enrolment) -> Sequence[str]:
    """Return what is left to do before the unit can start."""
    return [
        f"install the buildkite-agent as {enrolment.agent}",
        (
            f"install --mode=0600 /dev/null {enrolment.secret}, and put BUILDKITE_AGENT_TOKEN=... "
            f"into it, an agent token of the organisation {enrolment.org}"
        ),
    ]

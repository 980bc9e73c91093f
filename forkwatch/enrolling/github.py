"""GitHub's official runner on a benchmark host: one job, then a new registration.

An enrolment goes in; out come the unit and the script that registers. The secret stays with root:
the runner's user is registered by somebody else and gets no token.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from forkwatch.enrolling.enrolment import DRAINING, TUNE_UNIT, UNITS
from forkwatch.enrolling.wanted import HEAD, WantedFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkwatch.enrolling.enrolment import Enrolment

REGISTER: Final = Path("/usr/local/lib/forkwatch/register-runner")
#: The runner of one job, its checkout and its home; made anew for each.
JOB: Final = Path("/var/lib/forkwatch-job")

_UNIT: Final = """\
{head}
[Unit]
Description=forkwatch: one job of GitHub Actions after another ({host_class}, {url})
Wants=network-online.target {tune_unit}
After=network-online.target {tune_unit}
# A host that cannot reach GitHub for a night comes back by itself.
StartLimitIntervalSec=0

[Service]
User={user}
StateDirectory={state}
Environment=FORKWATCH_HOME={home}
Environment=FORKWATCH_HOST_CLASS={host_class}
Environment=HOME={job}/home
WorkingDirectory=-{job}
# `forkwatch host drain` makes the file: the job that runs is the last one.
ExecCondition=/usr/bin/test ! -e {draining}
# As root, for it reads the secret. What it leaves is a fresh runner that is registered for one job.
ExecStartPre=+{register}
ExecStart={job}/runner/run.sh
Restart=always
RestartSec=15
TimeoutStartSec=15min
# A stop ends the job that runs; `forkwatch host drain` waits for it.
KillMode=mixed
KillSignal=SIGINT
TimeoutStopSec=5min
# One process that ran out of memory must not end the job that measures it.
OOMPolicy=continue
# A server with a thousand clients and a build on many processors.
LimitNOFILE=65536
TasksMax=infinity
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
"""
#: Words between @ are filled in; all of them have forms that need no quoting.
_REGISTER: Final = """\
#!/bin/sh
@head@
# systemd runs it as root before each job. The secret is read here and goes to GitHub by standard
# input: no command line, no environment and no file that the runner's user may read has it.
set -eu
umask 077
cd /
secret=@secret@
if [ ! -s "$secret" ]; then
  echo "forkwatch: put a token that may register runners into $secret" >&2
  exit 1
fi

# Nothing of the last job is left: its checkout, its home, and whatever it did to its runner.
rm -rf --one-file-system -- @job@
mkdir -- @job@ @job@/home
cp --archive --reflink=auto -- @runner@/. @job@/runner
chown --recursive --no-dereference @user@: -- @job@

# Good for an hour, and for registering alone.
token=$(
  printf 'header = "Authorization: Bearer %s"\\n' "$(cat -- "$secret")" |
    curl --config - --silent --show-error --fail --max-time 60 --request POST \\
      --header 'Accept: application/vnd.github+json' @api@ |
    sed -n 's/.*"token"[[:space:]]*:[[:space:]]*"\\([A-Za-z0-9_-]*\\)".*/\\1/p'
)
if [ -z "$token" ]; then
  echo "forkwatch: GitHub gave no registration token" >&2
  exit 1
fi

cd @job@/runner
# The runner reads its answers from such variables too, and takes them out of its environment.
ACTIONS_RUNNER_INPUT_TOKEN=$token runuser --user=@user@ -- env HOME=@job@/home \\
  ./config.sh --unattended --ephemeral --replace --disableupdate \\
  --url @url@ --name "$(uname -n)" --labels forkwatch,@host_class@ --work _work
"""


def files(enrolment: Enrolment) -> Sequence[WantedFile]:
    """Return the unit and the script that registers."""
    named = {
        "head": HEAD,
        "host_class": enrolment.host_class,
        "url": enrolment.url,
        "user": enrolment.user,
        "home": str(enrolment.home),
        "state": enrolment.home.name,
        "job": str(JOB),
        "draining": str(DRAINING),
        "register": str(REGISTER),
        "tune_unit": TUNE_UNIT,
        "secret": str(enrolment.secret),
        "runner": str(enrolment.runner),
        "api": enrolment.registration_api,
    }
    script = _REGISTER
    for name, value in named.items():
        script = script.replace(f"@{name}@", value)
    return [
        WantedFile(path=REGISTER, text=script, mode=0o755),
        WantedFile(path=UNITS / enrolment.unit, text=_UNIT.format_map(named)),
    ]


def steps(enrolment: Enrolment) -> Sequence[str]:
    """Return what is left to do before the unit can start."""
    return [
        (
            f"unpack GitHub's runner into {enrolment.runner}, owned by root, again every month: "
            "GitHub refuses old ones, and a fresh copy for each job does not update itself"
        ),
        (
            f"install --mode=0600 /dev/null {enrolment.secret}, and put a token into it that may "
            f"administer runners of {enrolment.url}"
        ),
    ]

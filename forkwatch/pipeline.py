"""Steps for Buildkite: a plan and an event come in, a pipeline goes out as plain data.

Nothing that a person can choose freely, such as the name of a branch, is written into a command:
commands name Buildkite's variables, with the dollar doubled so that the shell of the job fills them
in and not the upload. It starts nothing and does not know where it is printed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from forkwatch.errors import DoorError
from forkwatch.streams import EXIT_UNSTABLE

if TYPE_CHECKING:
    from workloads.plan import Plan

RUN_FILE: Final = "forkwatch-run.json"
PAIR_FILE: Final = "forkwatch-pair.json"
#: What else a job may take: a first load of the data, canaries, exact counters. A limit and no
#: estimate; it costs time only where something hangs.
OTHER_MINUTES: Final = 60
#: A start takes about this many times its slices: settling, and warm-ups until two agree.
START_FACTOR: Final = 3
#: Buildkite loses an agent now and then; the same command goes on from the last complete start.
RETRIES_MAX: Final = 2
AGENT_LOST: Final = -1
#: What Buildkite takes as the name of a queue.
_QUEUE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: A branch that is written into a command; what git would take besides is refused, not quoted.
_BRANCH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,199}")
#: Address of a service, which is written into a command.
_SERVICE: Final = re.compile(r"https?://[A-Za-z0-9.:_-]{1,253}")


class Event(StrEnum):
    """What is measured."""

    PUSH = "push"
    PULL_REQUEST = "pull-request"
    #: What a service has asked for; the order is fetched from it.
    JOB = "job"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the steps are to do, besides what the plan says."""

    suite: str = "commit"
    #: Each a queue of Buildkite.
    host_classes: tuple[str, ...]
    #: Machines of each host class: so many jobs of it run at once.
    hosts: int = 1
    #: Branch of the history; None keeps none.
    history: str | None = None
    #: Queue of the agents that may push the history; that of the host class if absent.
    history_queue: str | None = None
    #: A person has to let the steps of a pull request from another repository begin.
    ask_first: bool = False
    #: Address of the service whose jobs are done.
    service: str = ""


def pipeline_of(plan: Plan, event: Event, wish: Wish) -> dict[str, Any]:
    """Return the steps of a build.

    Raises:
        PlanError: There is no such suite.
        DoorError: A host class or branch has a name that cannot be used here, or a job is of
            several host classes or of no service.
    """
    _check(wish)
    if event is Event.JOB and len(wish.host_classes) != 1:
        raise DoorError("a job is of one host class: give --host-class, as the build names it")
    plan.suite(wish.suite)
    steps: list[dict[str, Any]] = []
    if wish.ask_first:
        steps.append(
            {
                "block": "Measure a pull request of another repository",
                "key": "forkwatch-ask",
                "prompt": "Its code is built and run in a sandbox on a benchmark host. Read it.",
                "blocked_state": "passed",
            }
        )
    for host_class in wish.host_classes:
        if event is Event.PULL_REQUEST:
            steps.append(_pull_request_step(plan, wish, host_class))
        elif event is Event.JOB:
            steps.append(_job_step(plan, wish, host_class))
        else:
            steps += _push_steps(plan, wish, host_class)
    return {"steps": steps}


def confirm_pipeline(plan: Plan, wish: Wish, *, baseline: str, candidate: str) -> dict[str, Any]:
    """Return the steps that compare a suspicious commit with its baseline, and keep the answer.

    Args:
        plan: Of the fork.
        wish: With one host class, that of the run that aroused the suspicion.
        baseline: Full hash.
        candidate: Full hash.
    """
    _check(wish)
    (host_class,) = wish.host_classes
    key = f"forkwatch-confirm-{host_class}-{candidate[:12]}"
    compare = (
        f"forkwatch compare --suite {wish.suite} --ci --document {PAIR_FILE} "
        f"-- {baseline} {candidate}"
    )
    step = _measuring(
        wish,
        key=key,
        label=f"confirm on {host_class}",
        commands=[compare],
        host_class=host_class,
        minutes=minutes_max(plan, wish.suite, paired=True),
        artifact=PAIR_FILE,
    )
    return {"steps": [step, *_remembering(wish, key, host_class)]}


def minutes_max(plan: Plan, suite_name: str, *, paired: bool) -> int:
    """Return after how many minutes a job of a suite is certainly stuck."""
    suite = plan.suite(suite_name)
    variant = plan.build(suite.build)
    sides = 2 if paired else 1
    building = 0 if variant.is_prebuilt else sides * variant.build_minutes_max
    slices_s = len(suite.workloads) * (suite.slices * suite.seconds + suite.warmup_seconds)
    start = START_FACTOR * sides * slices_s / 60
    measuring = suite.budget_minutes + start if paired else suite.starts * start
    return math.ceil(building + measuring + OTHER_MINUTES)


def _push_steps(plan: Plan, wish: Wish, host_class: str) -> list[dict[str, Any]]:
    key = f"forkwatch-run-{host_class}"
    run = f'forkwatch run --suite {wish.suite} --document {RUN_FILE} -- "$$BUILDKITE_COMMIT"'
    measure = _measuring(
        wish,
        key=key,
        label=f"measure on {host_class}",
        commands=[run],
        host_class=host_class,
        minutes=minutes_max(plan, wish.suite, paired=False),
        artifact=RUN_FILE,
    )
    if wish.history is None:
        return [measure]
    judge = _step(
        key=f"forkwatch-history-{host_class}",
        label=f"judge {host_class}",
        commands=[
            f"buildkite-agent artifact download {RUN_FILE} . --step {key}",
            f"forkwatch history add --branch {wish.history} -- {RUN_FILE}",
            (
                f"forkwatch history judge --branch {wish.history} --ci --say-only "
                f"--hosts {wish.hosts} -- {RUN_FILE}"
            ),
        ],
        queue=wish.history_queue or host_class,
        minutes=OTHER_MINUTES,
    )
    return [measure, judge | {"depends_on": key}]


def _pull_request_step(plan: Plan, wish: Wish, host_class: str) -> dict[str, Any]:
    """Return the step that compares a head with its merge base, by the plan of the target branch.

    The plan of the pull request itself could loosen its own gate.
    """
    step = _measuring(
        wish,
        key=f"forkwatch-pair-{host_class}",
        label=f"compare on {host_class}",
        commands=[
            'git fetch --quiet -- origin "$$BUILDKITE_PULL_REQUEST_BASE_BRANCH"',
            (
                f"forkwatch compare --suite {wish.suite} --merge-base --plan-from FETCH_HEAD "
                f'--untrusted --ci --document {PAIR_FILE} -- FETCH_HEAD "$$BUILDKITE_COMMIT"'
            ),
        ],
        host_class=host_class,
        minutes=minutes_max(plan, wish.suite, paired=True),
        artifact=PAIR_FILE,
    )
    return step | ({"depends_on": "forkwatch-ask"} if wish.ask_first else {})


def _job_step(plan: Plan, wish: Wish, host_class: str) -> dict[str, Any]:
    """Return the step that does the job which a service has made this build for."""
    if not _SERVICE.fullmatch(wish.service):
        raise DoorError(
            "a job of a service needs its address: give --service, such as "
            "https://perf.example.org, without a path"
        )
    run = f'forkwatch run --order "$$FORKWATCH_JOB" --service {wish.service} --document {RUN_FILE}'
    # What is asked is not known before the order is here: a pair is the longest it can be.
    return _measuring(
        wish,
        key=f"forkwatch-job-{host_class}",
        label=f"measure on {host_class}",
        commands=[run],
        host_class=host_class,
        minutes=minutes_max(plan, wish.suite, paired=True),
        artifact=RUN_FILE,
    )


def _remembering(wish: Wish, confirm: str, host_class: str) -> list[dict[str, Any]]:
    """Return the step that adds a pair to the history, whatever its verdict."""
    if wish.history is None:
        return []
    step = _step(
        key=f"{confirm}-kept",
        label="keep the answer",
        commands=[
            f"buildkite-agent artifact download {PAIR_FILE} . --step {confirm}",
            f"forkwatch history add --branch {wish.history} -- {PAIR_FILE}",
        ],
        queue=wish.history_queue or host_class,
        minutes=OTHER_MINUTES,
    )
    # A regression fails the step before this one, and is what has to be kept. A pair that was not
    # measured has left nothing to keep.
    return [step | {"depends_on": [{"step": confirm, "allow_failure": True}], "soft_fail": True}]


def _measuring(
    wish: Wish,
    *,
    key: str,
    label: str,
    commands: list[str],
    host_class: str,
    minutes: int,
    artifact: str,
) -> dict[str, Any]:
    """Return a step that has a benchmark host to itself."""
    step = _step(key=key, label=label, commands=commands, queue=host_class, minutes=minutes)
    return step | {
        "concurrency": wish.hosts,
        "concurrency_group": f"forkwatch/{host_class}",
        "env": {"FORKWATCH_HOST_CLASS": host_class},
        "artifact_paths": [artifact],
        "soft_fail": [{"exit_status": EXIT_UNSTABLE}],
        "retry": {"automatic": [{"exit_status": AGENT_LOST, "limit": RETRIES_MAX}]},
    }


def _step(*, key: str, label: str, commands: list[str], queue: str, minutes: int) -> dict[str, Any]:
    return {
        "key": key,
        "label": label,
        "commands": commands,
        "agents": {"queue": queue},
        "timeout_in_minutes": minutes,
    }


def _check(wish: Wish) -> None:
    """Refuse names that would have to be quoted, here or by Buildkite."""
    for name in (*wish.host_classes, *([wish.history_queue] if wish.history_queue else [])):
        if not _QUEUE.fullmatch(name):
            raise DoorError(
                f"{name!r} cannot be a queue of Buildkite: letters, digits, _ and - only; call the "
                "host class otherwise, or name another with --host-class"
            )
    if wish.history is not None and not _BRANCH.fullmatch(wish.history):
        raise DoorError(
            f"{wish.history!r} cannot be the branch of the history: letters, digits, _ . / and - "
            "only, beginning with a letter or digit"
        )

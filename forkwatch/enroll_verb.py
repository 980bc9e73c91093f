"""The verbs `forkwatch host enroll`, `drain` and `retire`: a host and the CI that it works for.

stdout is the product: the files, or what was done with them. Exit status: 0 fine, 2 misuse.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from forkwatch.enrolling.enrolment import TUNE_UNIT, Enrolment, System
from forkwatch.errors import EnrolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkwatch.enrolling.placing import Standing
    from forkwatch.enrolling.wanted import WantedFile

_out = Console(soft_wrap=True, highlight=False, markup=False)

Apply = Annotated[
    bool, typer.Option("--apply", help="Do it on this host, as root; otherwise it is shown.")
]
Write = Annotated[
    Path | None, typer.Option("--write", help="Write below this folder instead of /.")
]
Hooks = Annotated[
    Path | None, typer.Option("--hooks", help="Buildkite: folder of the agent's hooks.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the files; the default.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Set aside what lies in the way.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def enroll(
    system: Annotated[System, typer.Option("--system", help="Who gives this host its jobs.")],
    host_class: Annotated[
        str, typer.Option("--class", help="Host class: the label, or the queue.")
    ],
    *,
    url: Annotated[
        str, typer.Option("--url", help="GitHub: address of the repository or organisation.")
    ] = "",
    org: Annotated[str, typer.Option("--org", help="Buildkite: name of the organisation.")] = "",
    user: Annotated[
        str, typer.Option("--user", help="Who runs jobs; made where there is none.")
    ] = "forkwatch",
    home: Annotated[
        Path, typer.Option("--home", help="Folder for artifacts, datasets and jobs.")
    ] = Path("/var/lib/forkwatch"),
    program: Annotated[
        Path | None, typer.Option("--program", help="The forkwatch that units call; this one.")
    ] = None,
    runner: Annotated[
        Path, typer.Option("--runner", help="GitHub: where its runner is unpacked.")
    ] = Path("/opt/actions-runner"),
    agent: Annotated[Path, typer.Option("--agent", help="Buildkite: the buildkite-agent.")] = Path(
        "/usr/bin/buildkite-agent"
    ),
    hooks: Hooks = None,
    dry_run: DryRun = False,
    write: Write = None,
    apply: Apply = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Make this host a runner of GitHub Actions or a Buildkite agent; shows what it would write."""
    from forkwatch.enrolling import placing
    from forkwatch.enrolling.agent_hooks import read_hooks
    from forkwatch.enrolling.draining import after_placing
    from forkwatch.enrolling.texts import files_of, next_steps
    from runner.host.machine import Machine

    if sum((dry_run, write is not None, apply)) > 1:
        raise EnrolError("choose one of --dry-run, --write and --apply")
    enrolment = Enrolment(
        system=system,
        host_class=host_class,
        url=url,
        org=org,
        user=user,
        home=home,
        program=program or Path(sys.executable).with_name("forkwatch"),
        runner=runner,
        agent=agent,
    )
    files = files_of(enrolment, read_hooks(hooks) if system is System.BUILDKITE else {})
    if apply:
        _must_be_root()
    wrote = apply or write is not None
    if wrote:
        found = placing.place(write or Path("/"), enrolment, files, overwrite=overwrite)
    else:
        found = placing.standing(Path("/"), files)
    if apply:
        after_placing(Machine(), [TUNE_UNIT, enrolment.unit])
    _show(files, found, wrote=wrote, steps=next_steps(enrolment), as_json=as_json)


def drain(
    *,
    resume: Annotated[bool, typer.Option("--resume", help="Take jobs again.")] = False,
) -> None:
    """End the job that runs and take no other, also after a reboot."""
    from forkwatch.enrolling import draining, placing
    from runner.host.machine import Machine

    placed = placing.read(Path("/"))
    if placed is None:
        raise EnrolError("this host is not enrolled: `forkwatch host enroll` does that")
    _must_be_root()
    machine = Machine()
    _out.print(draining.resume(machine, placed) if resume else draining.drain(machine, placed))


def retire(*, apply: Apply = False) -> None:
    """Take away exactly what `forkwatch host enroll` wrote; shows what that is."""
    from forkwatch.enrolling import draining, placing
    from runner.host.machine import Machine

    placed = placing.read(Path("/"))
    if placed is None:
        raise EnrolError("this host is not enrolled: there is nothing to take away")
    if not apply:
        for one in placed.files:
            back = f", and {one.path.name}{placing.KEPT} goes back" if one.kept else ""
            _out.print(f"would remove {one.path}{back}")
        return
    _must_be_root()
    machine = Machine()
    draining.must_be_stopped(machine, placed)
    draining.before_taking_away(machine, [placed.unit, TUNE_UNIT])
    gone, stay = placing.take_away(Path("/"))
    draining.after_taking_away(machine)
    for path in gone:
        _out.print(f"removed {path}")
    for path in stay:
        _out.print(f"left {path}: it was changed since it was written")
    _out.print(f"left the user {placed.user} and {placed.home}: they hold what was measured")


def _must_be_root() -> None:
    if os.geteuid() != 0:
        raise EnrolError("this changes the host: run it as root")


def _show(
    files: Sequence[WantedFile],
    found: dict[Path, Standing],
    *,
    wrote: bool,
    steps: Sequence[str],
    as_json: bool,
) -> None:
    if as_json:
        shown: list[dict[str, Any]] = [
            {**dataclasses.asdict(one), "path": str(one.path), "standing": found[one.path]}
            for one in files
        ]
        text = json.dumps({"wrote": wrote, "files": shown, "steps": steps}, indent=2)
        print(text)  # noqa: T201  the product
        return
    for one in files:
        if wrote:
            _out.print(f"{_DONE[found[one.path]]} {one.path}")
        else:
            _out.print(f"==> {one.path} ({one.mode:o}, {_WOULD[found[one.path]]})\n{one.text}")
    _out.print("\nleft to do:")
    for number, step in enumerate(steps, start=1):
        _out.print(f"{number}. {step}")


_WOULD = {
    "new": "would be made",
    "same": "is there already",
    "ours": "would be written again",
    "foreign": "IN THE WAY: somebody else's, or changed; only with --overwrite",
}
_DONE = {
    "new": "wrote",
    "same": "left as it is",
    "ours": "wrote again",
    "foreign": "set aside and wrote",
}

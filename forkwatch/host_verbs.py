"""The verbs `forkwatch host ...`: look at this machine, set it up for benchmarks, put it back.

stdout is the product, a table or JSON. Exit status: 0 fine, 1 something could not be done, 2
misuse, 3 the host is not fit to measure on.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from forkwatch.aa_verb import aa
from forkwatch.enroll_verb import drain, enroll, retire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner.host.fingerprint import Fingerprint
    from runner.host.knobs import Knob
    from runner.host.profile import HostProfile

EXIT_FAILED, EXIT_UNSTABLE = 1, 3

host = typer.Typer(
    help="This machine as an instrument: look, set up, put back, calibrate.", no_args_is_help=True
)

_out = Console(soft_wrap=True, highlight=False, markup=False)
_err = Console(stderr=True, highlight=False, markup=False)

HomeFolder = Annotated[
    Path | None, typer.Option("--home", help="Folder for artifacts, datasets and jobs.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done; do nothing.")]
KnobNames = Annotated[
    list[str] | None, typer.Option("--knob", help="Only this knob; may be given several times.")
]


@host.command()
def show(home: HomeFolder = None, *, as_json: AsJson = False) -> None:
    """Show the machine, its knobs, what tuning has changed and what calibration found."""
    from runner.host import facts, profile, tuning
    from runner.host.knobs import KNOBS
    from runner.host.machine import Machine

    machine, folder = Machine(), _folder(home)
    found = profile.read(folder)
    tuned = tuning.recorded(folder)
    if as_json:
        _json(
            {
                "facts": dict(facts.layout(machine)),
                "knobs": {knob.name: dict(knob.read(machine)) for knob in KNOBS},
                "tuned": [entry.model_dump() for entry in tuned],
                "profile": found.model_dump(mode="json") if found else None,
            }
        )
        return
    _pairs({**facts.layout(machine), **facts.settings(machine)})
    _out.print("")
    for entry in tuned:
        _out.print(f"tuned: {entry.knob} {entry.place} was {entry.earlier}")
    if found is None:
        _out.print("not calibrated: `forkwatch host calibrate` finds the quietest placement")
    else:
        _print_profile(found, _fingerprint(home))


@host.command()
def check(home: HomeFolder = None, *, as_json: AsJson = False) -> None:
    """Look for what makes results noisy; exit 3 when there is something."""
    from runner.host.checks import quiet_checks, storage_checks

    found = [*quiet_checks(), *storage_checks(_home(home).root)]
    noisy = [one for one in found if not one.ok]
    if as_json:
        _json({"stable": not noisy, "checks": [dataclasses.asdict(one) for one in found]})
    else:
        for one in found:
            advice = "" if one.ok else f"\n        {one.advice}"
            _out.print(f"{'ok     ' if one.ok else 'noisy  '} {one.name}: {one.found}{advice}")
        if noisy:
            _out.print(
                f"\nresults from this host may be unstable ({len(noisy)} of {len(found)} checks); "
                "`forkwatch host tune --dry-run` shows what can be set"
            )
    if noisy:
        raise typer.Exit(EXIT_UNSTABLE)


@host.command()
def tune(
    home: HomeFolder = None,
    *,
    dry_run: DryRun = False,
    knob: KnobNames = None,
    as_json: AsJson = False,
) -> None:
    """Set the knobs for benchmarks; what they were is kept for `forkwatch host reset`."""
    from runner.host import tuning
    from runner.host.machine import Machine

    knobs = _knobs(knob)
    steps = (
        tuning.plan(Machine(), knobs=knobs)
        if dry_run
        else tuning.tune(Machine(), _folder(home), knobs=knobs)
    )
    if as_json:
        _json({"dry_run": dry_run, "steps": [dataclasses.asdict(step) for step in steps]})
    else:
        verb = "would set" if dry_run else "set"
        for step in steps:
            did = f"could not set ({step.fault})" if step.fault else verb
            _out.print(f"{did} {step.knob} {step.place}: {step.now} -> {step.wanted}")
        if not steps:
            _out.print("every knob is as a benchmark wants it; nothing to set")
    if any(step.fault for step in steps):
        raise typer.Exit(EXIT_FAILED)


@host.command()
def reset(home: HomeFolder = None, *, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Put back exactly what `forkwatch host tune` found; exit 1 when something refused."""
    from runner.host import tuning
    from runner.host.machine import Machine

    folder = _folder(home)
    if dry_run:
        entries = tuning.recorded(folder)
        if as_json:
            _json({"dry_run": True, "entries": [entry.model_dump() for entry in entries]})
        else:
            for entry in reversed(entries):
                _out.print(f"would set {entry.knob} {entry.place} to {entry.earlier}")
        return
    done = tuning.reset(Machine(), folder)
    if as_json:
        _json({"dry_run": False, "restored": [dataclasses.asdict(one) for one in done]})
    else:
        for one in done:
            _out.print(f"{one.knob} {one.place} = {one.earlier}: {one.said}")
        if not done:
            _out.print("nothing was tuned; nothing to put back")
    if not all(one.ok for one in done):
        raise typer.Exit(EXIT_FAILED)


@host.command()
def fingerprint(home: HomeFolder = None, *, as_json: AsJson = False) -> None:
    """Print what makes this host comparable with its own past, and what changed since."""
    from runner.host.fingerprint import changes, remember

    now = _fingerprint(home)
    before = remember(_folder(home), now)
    since = changes(before, now) if before else ()
    if as_json:
        _json(
            {
                "digest": now.digest,
                "facts": now.facts,
                "since": before.taken_at.isoformat() if before else None,
                "changes": [dataclasses.asdict(one) for one in since],
            }
        )
        return
    _out.print(now.digest)
    _pairs(now.facts)
    if before:
        _out.print(f"\nchanged since {before.taken_at:%Y-%m-%d %H:%M} UTC:")
        for one in since:
            _out.print(f"{one.name}: {one.before or '(not there)'} -> {one.after or '(gone)'}")


@host.command()
def calibrate(
    home: HomeFolder = None,
    *,
    server: Annotated[
        Path | None,
        typer.Option("--server", help="Prefix of a server; the installed one if absent."),
    ] = None,
    pingpong: Annotated[
        bool, typer.Option("--ping-pong", help="Use no server even where one is installed.")
    ] = False,
    rounds: Annotated[
        int, typer.Option("--rounds", min=3, max=100, help="Slices of each mode and kind.")
    ] = 6,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, max=60, help="Length of a slice.")
    ] = 3,
    as_json: AsJson = False,
) -> None:
    """Measure how well each placement repeats here and keep the quietest for jobs."""
    import contextlib

    from runner import clock, placement
    from runner.host import profile
    from runner.host.calibration import calibrate as measure
    from runner.host.loads import PingPong, installed_server, server_load
    from runner.host.machine import Machine

    folder = _folder(home)
    prefix = None if pingpong else server or installed_server()
    with contextlib.ExitStack() as stack:
        load = (
            stack.enter_context(server_load(prefix.resolve(), folder, seconds=seconds))
            if prefix
            else PingPong(folder, seconds=seconds)
        )
        found = measure(
            load,
            machine=Machine(),
            cpus=placement.usable_cpus(),
            rounds=rounds,
            fingerprint=_fingerprint(home).digest,
            at=clock.now(),
            say=_err.print,
        )
    if as_json:
        _json(found.model_dump(mode="json"))
    else:
        _print_profile(found, None)
    if found.too_busy():
        _err.print(f"nothing was kept: {found.too_busy()}")
        raise typer.Exit(EXIT_UNSTABLE)
    profile.write(folder, found)


@host.command()
def canary(
    home: HomeFolder = None,
    *,
    accept: Annotated[
        bool, typer.Option("--accept", help="The host has changed for good: begin a new history.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a small fixed load and compare it with this host's past; exit 3 when it changed."""
    from runner import clock, placement
    from runner.host import canary as bird

    folder = _folder(home)
    if accept:
        bird.accept(folder, at=clock.now())
    programs = bird.Programs(folder)
    if programs.missing():
        _err.print(programs.missing())
    readings = bird.look(
        folder,
        programs,
        moment="alone",
        cpu=placement.place("shared-core", cpus=placement.usable_cpus()).server_cpus[0],
        fingerprint=_fingerprint(home).digest,
        at=clock.now(),
    )
    noise = bird.noise(bird.history(folder).read())
    if as_json:
        _json({"readings": [one.model_dump() for one in readings], "cv_percent": dict(noise)})
    else:
        for one in readings:
            past = (
                f"history of {one.history}, too short to judge"
                if one.change_percent is None
                else f"{one.change_percent:+.1f} % from the last {one.history} looks"
            )
            mark = "CHANGED " if one.suspicious else ""
            _out.print(f"{one.name}: {one.value:.4g} {one.unit}; {mark}{past}")
    if any(one.suspicious for one in readings):
        raise typer.Exit(EXIT_UNSTABLE)


host.command()(aa)
host.command()(enroll)
host.command()(drain)
host.command()(retire)


def _home(home: Path | None) -> Any:
    from runner.settings import Home, RunnerSettings

    found = Home(home or RunnerSettings().home)
    found.folder()
    return found


def _folder(home: Path | None) -> Path:
    folder: Path = _home(home).folder("host")
    return folder


def _fingerprint(home: Path | None) -> Fingerprint:
    from runner import clock
    from runner.host.fingerprint import take
    from runner.host.machine import Machine

    return take(Machine(), _home(home).root, at=clock.now())


def _knobs(names: Sequence[str] | None) -> Sequence[Knob]:
    from runner.host.knobs import KNOBS

    known = {knob.name: knob for knob in KNOBS}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise typer.BadParameter(f"no knob {unknown[0]!r}; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(KNOBS)


def _print_profile(found: HostProfile, now: Fingerprint | None) -> None:
    _out.print(f"calibrated {found.made_at:%Y-%m-%d %H:%M} UTC")
    for one in found.figures:
        mark = "*" if found.modes.get(one.kind) == one.mode else " "
        _out.print(
            f"{mark} {one.kind:15} {one.mode:14} CV {one.cv_percent:6.2f} % "
            f"({one.cv_low_percent:.2f} to {one.cv_high_percent:.2f}), "
            f"{one.mean_ops_s:,.0f}/s, {one.samples} x {one.measured}"
            + (f", {one.disturbed} disturbed" if one.disturbed else "")
        )
    _out.print("* is what jobs use whose plan names no placement")
    if now is not None and now.digest != found.fingerprint:
        _out.print("the host has changed since: calibrate again (`forkwatch host fingerprint`)")


def _pairs(values: Mapping[str, str]) -> None:
    width = max(map(len, values), default=0)
    for name, value in values.items():
        _out.print(f"{name:{width}}  {value}")


def _json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))  # noqa: T201  the product

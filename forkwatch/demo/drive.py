"""Driving the demo: the fork is made, the service follows it, and each verdict is printed.

The service is the real one, in a process of its own, on SQLite in the demo's folder; this module
only looks at it over HTTP, as any user could.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx
from rich.console import Console

from forkwatch.demo.fork import BRANCH, DemoFork, make_demo_fork
from forkwatch.errors import DoorError
from runner import shell
from runner.host import quiet_checks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runner.shell import Process

FACTS: Final = "demo-fork.json"
READY_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
#: The whole demo takes about ten minutes; a demo that hangs should say so.
FOLLOW_TIMEOUT_S: Final = 3600.0
_POLL_S: Final = 1.0
_console = Console(soft_wrap=True, highlight=False)
_COLOURS: Final = {"regression": "bold red", "improvement": "bold green", "build-failed": "yellow"}


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the service says at the end: outcome by commit, and (commit, workloads) by alert."""

    outcomes: dict[str, str]
    alerts: tuple[tuple[str, tuple[str, ...]], ...]


def drive(home: Path, *, port: int, leave: bool) -> int:
    """Run the demo and return its exit status.

    With `leave`, 0 means that exactly the slow commit was found: one alert, for scan, and every
    other commit quiet. Without it the pages are served until Ctrl-C.

    Raises:
        DoorError: The service did not start, or the demo hung.
    """
    home = home.resolve()
    fork = _fork_in(home)
    for check in quiet_checks():
        if not check.ok:
            _say(f"note: {check.name}: {check.found}; {check.advice}")
    url = f"http://127.0.0.1:{port}"
    with _service(home, fork.repository, url=url, port=port) as process:
        _say(f"following {fork.repository} with {len(fork.commits)} commits; pages at {url}/")
        found = _follow(url, fork, process)
        right = _check(fork, found, home)
        if leave:
            return 0 if right else 1
        _say(f"\npages: {url}/   (Ctrl-C ends the demo)")
        while process.poll() is None:
            time.sleep(_POLL_S)
        raise DoorError(f"the service ended; its log is {home / 'service.log'}")


def _fork_in(home: Path) -> DemoFork:
    """Return the demo fork in this home, made now or by an earlier call."""
    facts = home / FACTS
    folder = home / "fork"
    if facts.exists():
        return _read_facts(facts, folder)
    # A fork without its facts was being made when something killed us.
    shutil.rmtree(folder, ignore_errors=True)
    fork = make_demo_fork(folder)
    facts.write_text(json.dumps(asdict(fork), default=str, indent=2))
    _say(f"made a demo fork in {folder}")
    return fork


def _read_facts(facts: Path, folder: Path) -> DemoFork:
    values = json.loads(facts.read_text())
    values |= {"repository": folder, "commits": tuple(values["commits"])}
    return DemoFork(**values)


@contextmanager
def _service(home: Path, repository: Path, *, url: str, port: int) -> Iterator[Process]:
    """Run `forkwatch serve` beside us and give it once it answers."""
    words = [sys.executable, "-m", "forkwatch", "serve", "--home", str(home)]
    words += ["--repository", str(repository), "--port", str(port), "--poll-seconds", "1"]
    log = home / "service.log"
    with log.open("ab") as output:
        process = shell.start(words, output=output)
    try:
        _wait_until_ready(url, process, log)
        yield process
    finally:
        process.terminate()
        if process.wait(STOP_TIMEOUT_S) is None:
            process.kill()


def _wait_until_ready(url: str, process: Process, log: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DoorError(f"the service did not start:\n{shell.tail(log)}")
        try:
            if httpx.get(f"{url}/readyz").is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise DoorError(f"the service was not ready within {READY_TIMEOUT_S:.0f} s; see {log}")


def _follow(url: str, fork: DemoFork, process: Process) -> _Found:
    """Print each commit's verdict as it comes, and return them all."""
    began = time.monotonic()
    told: set[str] = set()
    last_state: dict[str, str] = {}
    with httpx.Client(base_url=url, timeout=30) as client:
        while len(told) < len(fork.commits):
            if process.poll() is not None:
                raise DoorError("the service ended before every commit was judged")
            if time.monotonic() - began > FOLLOW_TIMEOUT_S:
                raise DoorError("the demo hung: not every commit was judged within an hour")
            commits = {item["sha"]: item for item in _commits(client)}
            for position, sha in enumerate(fork.commits, start=1):
                commit = commits.get(sha)
                if commit is not None and sha not in told:
                    _tell(commit, position, last_state, elapsed_s=time.monotonic() - began)
                    if commit["state"] == "finished":
                        told.add(sha)
            time.sleep(_POLL_S)
        alerts = client.get("/api/v1/alerts").raise_for_status().json()
    return _Found(
        outcomes={sha: commits[sha]["outcome"] for sha in fork.commits},
        alerts=tuple(
            (alert["sha"], tuple(item["workload"] for item in alert["workloads"]))
            for alert in alerts
        ),
    )


def _commits(client: httpx.Client) -> list[dict[str, Any]]:
    """Return the commits the service knows; none while it has not seen the fork yet."""
    forks = client.get("/api/v1/forks").raise_for_status().json()
    if not forks:
        return []
    answer = client.get("/api/v1/commits", params={"fork": forks[0]["name"]})
    found: list[dict[str, Any]] = answer.raise_for_status().json()
    return found


def _tell(
    commit: dict[str, Any], position: int, last_state: dict[str, str], *, elapsed_s: float
) -> None:
    """Print what is new about a commit."""
    sha, state = commit["sha"], commit["state"]
    if last_state.get(sha) == state:
        return
    last_state[sha] = state
    clock = f"{int(elapsed_s) // 60:2}:{int(elapsed_s) % 60:02}"
    head = f"{clock}  {position}. {sha[:8]}"
    if state == "measuring":
        _say(f"{head}  {commit['subject']}", style="dim")
    elif state == "confirming":
        _say(f"{head}  suspicious: measuring it again beside its baseline", style="yellow")
    elif state == "finished":
        style = _COLOURS.get(commit["outcome"], "")
        _say(f"{head}  {commit['outcome']}: {commit['reason']}", style=style)


def _check(fork: DemoFork, found: _Found, home: Path) -> bool:
    """Compare what was found with what is true, say so, and return whether all was right."""
    faults = []
    if found.outcomes[fork.slow] != "regression":
        faults.append(f"the slow commit {fork.slow[:8]} was called {found.outcomes[fork.slow]}")
    if found.outcomes[fork.broken] != "build-failed":
        faults.append(f"the broken commit was called {found.outcomes[fork.broken]}")
    if found.outcomes[fork.docs_only] != "unchanged":
        faults.append(f"the commit of documentation was called {found.outcomes[fork.docs_only]}")
    faults += [
        f"{sha[:8]} was called a regression and is none"
        for sha, outcome in found.outcomes.items()
        if outcome == "regression" and sha != fork.slow
    ]
    if found.alerts != ((fork.slow, ("scan",)),):
        faults.append(f"alerts: {found.alerts}; expected one, for scan at {fork.slow[:8]}")
    for fault in faults:
        _say(f"wrong: {fault}", style="bold red")
    for path in sorted((home / "alerts").glob("*.md")):
        _say(f"\nthe alert, as written to {path}:\n\n{path.read_text()}")
    if not faults:
        _say(f"found: {fork.slow[:8]} on {BRANCH}, and nothing else", style="bold green")
    return not faults


def _say(text: str, *, style: str = "") -> None:
    _console.print(text, style=style or None, markup=False)

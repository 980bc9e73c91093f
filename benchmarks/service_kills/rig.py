"""Where lives of a service are lived: its outside, templates of its home, one life after another.

A scene comes in, what it leaves behind goes out, with or without kills. GitHub and Slack are
doubles in this process, which kills the service too: after they did what it asked, and before it
hears so.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess  # noqa: TID251  the error of a life that hangs; nothing is started with it
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pygit2

from benchmarks.service_kills.effects import effects
from benchmarks.service_kills.life import Order
from benchmarks.service_kills.scenes import Outside
from service.app.database import upgrade
from service.core.clock import SystemClock
from service.core.settings import load_settings
from service.core.tokens import Scope
from service.flows.tokens import Tokens
from service.store.database import Database
from tests.fakes.git_fork import GitFork
from tests.fakes.github_api.contract import Contract
from tests.fakes.github_api.credentials import USER_TOKEN
from tests.fakes.github_api.description import description
from tests.fakes.github_api.double import GitHubDouble
from tests.fakes.github_api.opened import REPOSITORY
from tests.fakes.hub_signature import SECRET as GITHUB_SECRET
from tests.fakes.slack_api import CHANNEL, TOKEN, SlackDouble, SlackServer
from tests.fakes.slack_requests import SECRET as SLACK_SECRET
from tests.fakes.warm_process import WarmProcess

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.service_kills.scenes import Scene
    from tests.fakes.github_api.rules import Reply as GitHubReply
    from tests.fakes.github_api.server import DoubleServer
    from tests.fakes.slack_api import Reply as SlackReply

LIFE: Final = "benchmarks.service_kills.life"
#: A life bounds itself; this is for one that cannot.
LIFE_SECONDS_MAX: Final = 120.0
#: Status of a life that did not end within that; no process ends with it.
HUNG: Final = -1000
#: Lives without a kill after the last one; a second would be a fault of the service.
LAST_LIVES_MAX: Final = 2
#: The "step" of what GitHub and Slack were asked to write: it is done, and nobody has heard.
ANSWER: Final = "answer"
INSIDE: Final = "inside"


@dataclass(frozen=True, kw_only=True)
class Point:
    """Where the service is killed."""

    step: str
    moment: str
    #: How often this moment of this step came before, with this one.
    count: int


@dataclass(frozen=True, kw_only=True)
class Lived:
    """What came of a scene."""

    effects: Counter[str]
    #: Points at which the service died of a kill.
    killed: tuple[Point, ...]
    #: Why it did not come to its end, with its log; empty where it did.
    trouble: str = ""


@dataclass(kw_only=True)
class Writes:
    """Counts what the doubles were asked to write, and kills who asked."""

    count: int = 0
    #: At which of them.
    at: int = 0
    victim: WarmProcess | None = None

    def wrote(self) -> None:
        """Hear of a write that is done."""
        self.count += 1
        if self.count == self.at and self.victim is not None:
            os.kill(self.victim.pid, signal.SIGKILL)


class HeardGitHub(GitHubDouble):
    """Tells of every write before it answers."""

    heard: Writes

    def reply(self, method: str, path: str, **asked: Any) -> GitHubReply:
        """Return the answer to a request."""
        found = super().reply(method, path, **asked)
        if method != "GET" and found.status < 300:  # noqa: PLR2004  a success of HTTP
            self.heard.wrote()
        return found


class HeardSlack(SlackDouble):
    """Tells of every write before it answers."""

    heard: Writes

    def reply(self, method: str, token: str, body: dict[str, Any]) -> SlackReply:
        """Return the answer to a request."""
        found = super().reply(method, token, body)
        if method.startswith(("chat.", "files.")):
            self.heard.wrote()
        return found


@dataclass(kw_only=True)
class Template:
    """What every life of a scene begins with."""

    scene: Scene
    home: Path
    repository: Path
    outside: Outside
    about: dict[str, Any] = field(default_factory=dict)


class Rig:
    """Lives scenes."""

    def __init__(self, folder: Path, github: DoubleServer, slack: SlackServer) -> None:
        self._folder, self._github, self._slack = folder, github, slack
        self._description = description()
        self._contract = Contract(self._description)
        self._log = folder / "log"
        self._runs = 0

    def template(self, scene: Scene) -> Template:
        """Live the history of a scene, and keep what it left."""
        folder = self._folder / scene.name.replace(" ", "-")
        folder.mkdir()
        home = folder / "home"
        fork = GitFork(folder / "fork.git")
        shas = [fork.push(subject) for subject in scene.history]
        with self._doubles() as (github, slack, writes):
            settings = load_settings(home=home)
            upgrade(settings)
            database = Database(settings.data_url)
            tokens = Tokens(database=database, clock=SystemClock())
            _, token = tokens.create("kills", [Scope.ACT])
            database.close()
            github.world.permissions["ada"] = "write"
            number = github.world.new_issue({"title": "Faster"}, login="bob", pull=True)["number"]
            about: dict[str, Any] = {"shas": shas, "token": token, "number": number}
            before = Order(home=str(home), repository=str(fork.folder))
            _, trouble = self._live(before, writes, ())
            assert not trouble, trouble
            if scene.head:
                about["head"] = fork.commit_aside(scene.head, parent=shas[-1])
                own = pygit2.Repository(str(fork.folder))
                name = f"refs/pull/{number}/head"
                own.references.create(name, pygit2.Oid(hex=about["head"]))
            for subject in scene.pushed:
                fork.push(subject)
            outside = Outside.of(github, slack)
        return Template(
            scene=scene, home=home, repository=fork.folder, outside=outside, about=about
        )

    def points(self, template: Template) -> tuple[list[Point], Lived]:
        """Live a scene unharmed; return its points, and what it left."""
        trace = self._folder / "trace"
        trace.write_text("")
        lived, answers = self._lived(template, (), trace=trace)
        found = [json.loads(line) for line in trace.read_text().splitlines()]
        points = [Point(step=step, moment=moment, count=count) for step, moment, count in found]
        points += [Point(step=ANSWER, moment=INSIDE, count=n + 1) for n in range(answers)]
        return [point for point in points if template.scene.counts(point.step)], lived

    def killed(self, template: Template, points: Sequence[Point]) -> Lived:
        """Live a scene, with one life for each of these points and one that comes to the end."""
        return self._lived(template, points)[0]

    def _lived(
        self, template: Template, points: Sequence[Point], *, trace: Path | None = None
    ) -> tuple[Lived, int]:
        self._runs += 1
        home = self._folder / f"home-{self._runs}"
        shutil.copytree(template.home, home)
        self._log.write_text("")
        scene = template.scene
        # The same for all lives, as a delivery that is sent again is the same.
        at = SystemClock().now()
        order = Order(
            home=str(home),
            repository=str(template.repository),
            deed=scene.deed,
            about={**template.about, "at": at.isoformat()},
            settings=dict(scene.settings),
            days=scene.days,
            trace=str(trace) if trace else None,
        )
        with self._doubles(template.outside) as (github, slack, writes):
            killed, trouble = self._live(order, writes, points)
            faults = "\n".join(github.faults)
            found = effects(home, github.world, slack)
        shutil.rmtree(home)
        trouble = trouble or faults
        return Lived(effects=found, killed=tuple(killed), trouble=trouble), writes.count

    def _live(
        self, order: Order, writes: Writes, points: Sequence[Point]
    ) -> tuple[list[Point], str]:
        """Live one life after another; return where the service died, and what went wrong."""
        killed = []
        for point in points:
            status = self._one(order, writes, point)
            if status == -signal.SIGKILL:
                killed.append(point)
            elif status:
                return killed, self._ended(status)
            else:
                # It came to its end before it came to the point: nothing is left to be killed.
                return killed, ""
        for _ in range(LAST_LIVES_MAX):
            status = self._one(order, writes, None)
            if not status:
                return killed, ""
        return killed, self._ended(status)

    def _ended(self, status: int) -> str:
        how = f"hung for {LIFE_SECONDS_MAX} s" if status == HUNG else f"ended with {status}"
        return f"{how}\n{self._log.read_text()}"

    def _one(self, order: Order, writes: Writes, point: Point | None) -> int:
        kill = None
        writes.at = 0
        if point is not None and point.step == ANSWER:
            writes.at = writes.count + point.count
        elif point is not None:
            kill = (point.step, point.moment, point.count)
        words = json.dumps(asdict(replace(order, kill=kill)))
        writes.victim = WarmProcess(LIFE, words, log=self._log, environment=self._environment())
        try:
            return writes.victim.wait(timeout=LIFE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            # A life that hangs is a fault to be told, and no end of all others.
            writes.victim.kill()
            writes.victim.wait(timeout=LIFE_SECONDS_MAX)
            return HUNG

    def _environment(self) -> dict[str, str]:
        return {
            "FORKWATCH_GITHUB_REPOSITORY": REPOSITORY,
            "FORKWATCH_GITHUB_TOKEN": USER_TOKEN,
            "FORKWATCH_GITHUB_API_URL": self._github.url,
            "FORKWATCH_GITHUB_WEBHOOK_SECRET": GITHUB_SECRET,
            "FORKWATCH_SLACK_TOKEN": TOKEN,
            "FORKWATCH_SLACK_CHANNEL": CHANNEL,
            "FORKWATCH_SLACK_API_URL": f"{self._slack.url}/api/",
            "FORKWATCH_SLACK_SIGNING_SECRET": SLACK_SECRET,
            "FORKWATCH_SLACK_WRITERS": "U0ADA",
            "FORKWATCH_PUBLIC_URL": "https://perf.example.org",
        }

    @contextmanager
    def _doubles(
        self, outside: Outside | None = None
    ) -> Iterator[tuple[HeardGitHub, HeardSlack, Writes]]:
        """Give a GitHub and a Slack as they were once, or new ones."""
        github = HeardGitHub(self._description, self._contract)
        slack = HeardSlack(self._slack.url)
        if outside is not None:
            outside.restore(github, slack)
        writes = Writes()
        github.heard = slack.heard = writes
        self._github.double, self._slack.double = github, slack
        yield github, slack, writes
        self._github.double = self._slack.double = None

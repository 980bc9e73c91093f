"""What the builds of both ends tell of their sources reaches the search; what the verb prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forkwatch.bisect_explaining import counted, explained
from forkwatch.bisect_jobs import documents_of, outside_of
from forkwatch.bisect_showing import dry_run_lines, show
from forkwatch.bisecting import run, search_of
from forkwatch.errors import DoorError
from forkwatch.watching import LogProgress
from results.job import DOCUMENT_FILE
from runner import checkout, server_sources
from runner.build import Builder
from runner.settings import Home, RunnerSettings
from tests.forkwatch.bisect_jobs import PlantedStep, ask, searched
from tests.runner.tiny_fork import CMAKE, TinyFork

if TYPE_CHECKING:
    from pathlib import Path

    from bisects.document import BisectDocument
    from results.document import RunDocument
    from results.job import JobOrder

SLOW = 5
#: Commits that touch a program that the server is not made of.
ASIDE = (1, 3, 6, 7)


@pytest.fixture
def fork(tmp_path: Path) -> TinyFork:
    found = TinyFork(tmp_path / "fork")
    tool = "add_executable(tool tool.c)\n"
    found.commit("a tool", {"CMakeLists.txt": CMAKE + tool, "tool.c": "int main() { return 0; }\n"})
    return found


@pytest.fixture
def commits(fork: TinyFork) -> list[str]:
    found = [fork.commit("begin", fork.launcher("1.0"))]
    for number in range(1, 9):
        aside = {"tool.c": f"int main() {{ return {number}; }}\n"}
        files = aside if number in ASIDE else fork.launcher(f"1.{number}")
        found.append(fork.commit(f"change {number}", files))
    return found


class BuildsEnds(PlantedStep):
    """Builds both ends for real with the first job, as a runner does."""

    def __init__(self, fork: TinyFork, home: Home, slow: list[str]) -> None:
        super().__init__(slow)
        settings = RunnerSettings(home=home.root, watch_host=False)
        self._fork = fork
        self._builder = Builder(home=home, settings=settings, repository=fork.folder)
        self.home = home

    def __call__(self, order: JobOrder) -> RunDocument:
        if not self.orders:
            plan = ask(self._fork, order.baseline, order.candidate).plan
            for sha in (order.candidate, order.baseline):
                commit = checkout.resolve(self._fork.folder, sha)
                self._builder.build(commit, "rel", plan.build("rel"))
        document = super().__call__(order)
        path = self.home.folder("jobs", order.job) / DOCUMENT_FILE
        path.write_text(document.model_dump_json())
        return document


def test_commits_beside_the_server_are_near_zero_once_both_ends_are_built(
    tmp_path, fork, commits
) -> None:
    home = Home(tmp_path / "home")
    asked = ask(fork, commits[0], commits[-1])
    assert outside_of(asked, home) == frozenset()
    measure = BuildsEnds(fork, home, commits[SLOW:])
    told: list[BisectDocument] = []

    found = run(
        asked,
        search_of(asked, {}),
        measure=measure,
        tell=told.append,
        sources=lambda: outside_of(asked, home),
    )

    assert outside_of(asked, home) == {"tool.c"}
    assert found.culprits == (SLOW,)
    priors = [one.prior for one in told[0].commits]
    assert all(priors[place] < 0.01 for place in ASIDE)
    assert all(priors[place] > 0.1 for place in range(1, 9) if place not in ASIDE)

    # Asked again it is known from the start, as is what the culprit's jobs counted.
    known = search_of(asked, {}, outside=outside_of(asked, home)).document()
    assert [one.prior for one in known.commits] == pytest.approx(priors)
    lines = dry_run_lines(asked, known, built=2, outside=outside_of(asked, home))
    assert lines[1].startswith("by their paths 4 change nothing that runs")
    assert "sources that the server is not made of" in lines[1]
    jobs = [one.job for one in found.observations if one.commit == SLOW]
    assert [one.job for one in documents_of(jobs, home)] == jobs
    assert counted(found, home) is not None


def test_one_end_alone_tells_nothing(tmp_path, fork, commits) -> None:
    home = Home(tmp_path / "home")
    asked = ask(fork, commits[0], commits[-1])
    settings = RunnerSettings(home=home.root, watch_host=False)
    builder = Builder(home=home, settings=settings, repository=fork.folder)
    plan = asked.plan
    first = builder.build(checkout.resolve(fork.folder, commits[0]), "rel", plan.build("rel"))

    assert server_sources.read(first.folder) == {"tool.c"}
    assert outside_of(asked, home) == frozenset()


def test_what_cannot_be_explained_is_refused_with_the_reason(tmp_path, fork, commits) -> None:
    asked = ask(fork, commits[0], commits[-1])
    # The step is in a build that is broken: it or the one after it.
    several = searched(asked, PlantedStep(commits[SLOW:], broken=[commits[SLOW]]))
    home = Home(tmp_path / "home")

    assert counted(several, home) is None
    with pytest.raises(DoorError, match="no one commit is named"):
        explained(
            asked,
            several,
            None,
            plan_path=None,
            home=home,
            settings=RunnerSettings(home=home.root, watch_host=False),
            progress=LogProgress(),
        )


def test_the_terminal_has_the_address_of_the_culprit_and_how_to_see_why(
    fork, commits, capsys
) -> None:
    found = searched(ask(fork, commits[0], commits[-1]), PlantedStep(commits[SLOW:]))

    show(
        found,
        as_json=False,
        as_markdown=False,
        commands=[],
        commit_url="https://forge.example/a/b/commit",
    )

    text = capsys.readouterr().out
    assert f"https://forge.example/a/b/commit/{commits[SLOW]}" in text
    assert f"why: forkwatch explain '{commits[SLOW][:8]}~1' {commits[SLOW][:8]}" in text

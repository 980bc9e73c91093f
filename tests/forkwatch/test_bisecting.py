from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import typer

from bisects.document import BisectEnd
from forkwatch.bisect_jobs import (
    TRIES,
    UnstableHostError,
    artifacts_of,
    kept,
    measure_here,
    order_of,
)
from forkwatch.bisect_question import minutes_of
from forkwatch.bisect_showing import (
    dry_run_lines,
    refuse_chart_path,
    show,
    write_chart,
)
from forkwatch.bisect_verb import bisect
from forkwatch.bisecting import merged_commands, run, search_of
from forkwatch.errors import DoorError
from results.document import Outcome
from results.job import DOCUMENT_FILE
from runner import shell
from runner.settings import Home, RunnerSettings
from tests.fakes.run_documents import a_run
from tests.forkwatch.bisect_jobs import PlantedStep, ask, searched
from tests.runner.tiny_fork import PLAN, TinyFork
from workloads.errors import CatalogError

if TYPE_CHECKING:
    from pathlib import Path


COMMITS = 10


@pytest.fixture
def fork(tmp_path: Path) -> TinyFork:
    return TinyFork(tmp_path / "fork")


@pytest.fixture
def commits(fork: TinyFork) -> list[str]:
    """Ten commits, the third of which only touches documentation."""
    found = [fork.first]
    for number in range(1, COMMITS):
        files = {"README.md": f"{number}\n"} if number == 2 else fork.launcher(f"1.{number}")
        found.append(fork.commit(f"change {number}", files))
    return found


def test_the_slow_commit_is_found_and_every_job_told(fork, commits) -> None:
    told: list[str] = []

    found = searched(ask(fork, commits[0], "main"), PlantedStep(commits[6:]), told)

    assert found.end is BisectEnd.CULPRIT
    assert found.culprits == (6,)
    assert found.commits[6].sha == commits[6]
    assert found.engine == "mariadb"
    assert found.question.variant == "rel"
    assert len(told) == len(found.observations)
    assert told[0].startswith(f"1. {commits[9][:8]} 0.")
    assert "bits unknown" in told[0]
    assert "min left" not in told[-1]


def test_a_range_without_a_slow_commit_is_not_reproduced(fork, commits) -> None:
    found = searched(ask(fork, commits[0], commits[9]), PlantedStep([]))

    assert found.end is BisectEnd.NOT_REPRODUCED


def test_a_broken_commit_is_skipped_and_named(fork, commits) -> None:
    measure = PlantedStep(commits[6:], broken=commits[5:7])

    found = searched(ask(fork, commits[0], commits[9]), measure)

    assert found.end is BisectEnd.INDISTINGUISHABLE
    assert found.culprits == (5, 6, 7)
    assert found.commits[5].failure == "build: it does not compile"


def test_jobs_are_pairs_with_the_good_end_named_by_what_they_depend_on(fork, commits) -> None:
    asked = ask(fork, commits[0], commits[9])

    order = order_of(asked, 6, number=0)

    assert (order.baseline, order.candidate) == (commits[0], commits[6])
    assert order.workloads == ("scan",)
    assert order.starts == 2
    assert order == order_of(ask(fork, commits[0], commits[9]), 6, number=0)
    assert order.job != order_of(asked, 6, number=1).job
    assert order.seed != order_of(asked, 6, number=1).seed
    assert order.job != order_of(asked, 5, number=0).job
    # Another range, stop or budget wants the same measurement.
    shorter = ask(fork, commits[0], commits[7], stop=0.9, budget_minutes=5.0)
    assert order.job == order_of(shorter, 6, number=0).job
    for other in ({"workload": "point-query"}, {"seed": 1}, {"host_class": "lab"}):
        assert order.job != order_of(ask(fork, commits[0], commits[9], **other), 6, number=0).job
    assert order.job != order_of(ask(fork, commits[1], commits[9]), 5, number=0).job
    fork.write({"forkwatch.toml": PLAN.replace('"Release"', '"Debug"')})
    assert order.job != order_of(ask(fork, commits[0], commits[9]), 6, number=0).job


def test_a_job_that_fails_is_tried_again_and_then_given_up(fork, commits) -> None:
    again = PlantedStep(commits[6:], ends={commits[9]: [Outcome.FAILED, Outcome.UNSTABLE]})
    found = searched(ask(fork, commits[0], commits[9]), again)
    assert found.culprits == (6,)
    assert again.orders[0] == again.orders[1] == again.orders[2]
    # Three jobs of four minutes count as one observation.
    assert found.observations[0].seconds == 3 * 240.0

    never = PlantedStep(commits[6:], ends={commits[9]: [Outcome.FAILED] * TRIES})
    found = searched(ask(fork, commits[0], commits[9]), never)
    assert found.observations[0].failure == "host: the canary fell"
    assert found.culprits == (6,)
    assert never.asked[commits[9]] == TRIES


def test_a_host_that_stays_unstable_ends_the_search(fork, commits) -> None:
    measure = PlantedStep(commits[6:], ends={commits[9]: [Outcome.UNSTABLE] * TRIES})

    with pytest.raises(UnstableHostError, match=r"the canary fell.*forkwatch doctor"):
        searched(ask(fork, commits[0], commits[9]), measure)


def test_a_good_end_that_does_not_build_is_said_at_once(fork, commits) -> None:
    def measure(order):
        story = a_run().on(order.candidate).against(order.baseline)
        document = story.that(Outcome.FAILED, stage="build", message="baseline: no").build()
        assert document.baseline is not None
        side = document.baseline.model_copy(update={"artifact": None})
        return document.model_copy(update={"baseline": side})

    with pytest.raises(DoorError, match=r"the good end, does not build here.*name another"):
        searched(ask(fork, commits[0], commits[9]), measure)


def test_a_merge_is_followed_by_the_command_for_what_it_merged(fork, commits) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=A Tester", "-c", "user.email=tester@example.com")
        done = shell.run(["git", *who, "-C", str(fork.folder), *words], timeout_s=60)
        assert done.ok, done.stderr
        return done.stdout.strip()

    git("checkout", "--quiet", "-b", "side", commits[4])
    fork.commit("side 1", {"side.c": "1\n"})
    side = fork.commit("side 2", {"side.c": "2\n"})
    git("checkout", "--quiet", "main")
    git("merge", "--quiet", "--no-ff", "--message", "merge side", "side")
    merge = git("rev-parse", "HEAD")
    asked = ask(fork, commits[7], merge)

    found = searched(asked, PlantedStep([merge]))

    assert found.culprits == (3,)
    assert merged_commands(asked, found) == [
        f"forkwatch bisect {commits[4][:8]} {side[:8]} --workload 'scan'"
    ]
    plain = ask(fork, commits[0], commits[9])
    assert merged_commands(plain, searched(plain, PlantedStep(commits[6:]))) == []


def test_what_cannot_be_bisected_is_refused(fork, commits) -> None:
    with pytest.raises(DoorError, match="a bisect looks at one: scan, point-query"):
        ask(fork, commits[0], commits[9], workload="commit")
    with pytest.raises(CatalogError, match="did you mean 'scan'"):
        ask(fork, commits[0], commits[9], workload="scam")
    prebuilt = '\n[builds.tree]\nsystem = "prebuilt"\nprefix = "/usr"\n'
    suite = '\n[suites.trees]\nworkloads = ["scan"]\nbuild = "tree"\n'
    fork.write({"forkwatch.toml": PLAN + prebuilt + suite})
    with pytest.raises(DoorError, match="belongs to no commit"):
        ask(fork, commits[0], commits[9], suite="trees")


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("90m", 90.0), ("2h", 120.0), ("45", 45.0), ("1.5 h", 90.0), ("5min", 5.0)],
)
def test_budgets_are_minutes_or_hours(text: str, minutes: float) -> None:
    assert minutes_of(text) == minutes


@pytest.mark.parametrize("text", ["", "soon", "0m", "-5m", "3d", "169h"])
def test_what_is_no_budget_says_how_one_looks(text: str) -> None:
    with pytest.raises(DoorError, match="90m or 2h"):
        minutes_of(text)


def test_asking_again_goes_on_from_every_job_that_is_done(tmp_path, fork, commits) -> None:
    home = Home(tmp_path / "home")
    measure = PlantedStep(commits[6:], broken=commits[5:6])

    def kept_on_disk(order):
        document = measure(order)
        (home.folder("jobs", order.job) / DOCUMENT_FILE).write_text(document.model_dump_json())
        return document

    asked = ask(fork, commits[0], commits[9])
    first = run(asked, search_of(asked, {}), measure=kept_on_disk, tell=lambda now: None)
    jobs = len(measure.orders)

    search = search_of(asked, {}, kept(asked, home))
    again = run(asked, search, measure=kept_on_disk, tell=lambda now: None)
    assert again.culprits == first.culprits
    assert len(measure.orders) == jobs, "nothing is measured anew"
    assert again.minutes_spent == 0

    # A range that ends earlier has these commits in common, and their jobs.
    shorter = ask(fork, commits[0], commits[8])
    known = kept(shorter, home)
    assert known
    assert len(known) == sum(place.commit <= 8 for place in first.observations)
    found = run(shorter, search_of(shorter, {}, known), measure=kept_on_disk, tell=lambda now: None)
    assert found.culprits == first.culprits
    assert len({order.job for order in measure.orders}) == len(measure.orders)


def test_jobs_that_are_done_are_taken_and_failures_tried_again(tmp_path, fork, commits) -> None:
    home = Home(tmp_path / "home")
    asked = ask(fork, commits[0], commits[9])
    order = order_of(asked, 6, number=0)
    path = home.folder("jobs", order.job) / DOCUMENT_FILE
    measured = PlantedStep([])(order)
    path.write_text(measured.model_dump_json())
    settings = RunnerSettings(home=home.root, watch_host=False)

    assert measure_here(home, settings, SilentProgress())(order) == measured
    assert [one.commit for one in kept(asked, home)] == [6]

    failed = PlantedStep([], ends={commits[6]: [Outcome.FAILED]})(order)
    path.write_text(failed.model_dump_json())
    assert kept(asked, home) == []


class SilentProgress:
    """Nobody watches."""

    def stage(self, name, detail): ...

    def piece(self, start, piece): ...

    def start(self, start, *, of): ...

    def look(self, workload, look): ...


def test_a_dry_run_tells_range_paths_and_minutes(fork, commits) -> None:
    asked = ask(fork, commits[0], commits[9], budget_minutes=90.0)

    lines = dry_run_lines(asked, search_of(asked, {}).document(), built=0)

    assert lines[0] == (
        f"scan of suite commit: 9 commits after {commits[0][:8]} up to {commits[9][:8]}, "
        "along first parents"
    )
    assert lines[1].startswith("by their paths 1 change nothing that runs")
    assert lines[2] == "0 of 10 are built already, 0 starts measured"
    assert lines[3].startswith("about ")
    assert "minutes, at most 90; 2 starts a side in each job, and an answer at 95 %" in lines[3]


def test_artifacts_that_are_there_make_a_search_cheaper(tmp_path, fork, commits) -> None:
    asked = ask(fork, commits[0], commits[9])
    home = Home(tmp_path / "home")
    assert artifacts_of(asked, home) == {}
    artifact = a_run().with_samples("scan", [[2.0]]).build().candidate.artifact
    assert artifact is not None

    dear = search_of(asked, {}).document().minutes_left
    cheap = search_of(asked, dict.fromkeys(commits, artifact)).document().minutes_left

    assert dear is not None
    assert cheap is not None
    assert cheap < dear


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (BisectEnd.CULPRIT, 0),
        (BisectEnd.NOT_REPRODUCED, 0),
        (BisectEnd.INDISTINGUISHABLE, 0),
        (BisectEnd.BUDGET, 1),
        (BisectEnd.LIMIT, 1),
        (BisectEnd.NOTHING_TO_MEASURE, 1),
    ],
)
def test_an_answer_exits_with_0_and_none_with_1(fork, commits, capsys, end, status) -> None:
    found = searched(ask(fork, commits[0], commits[9]), PlantedStep(commits[6:]))

    shown = show(
        found.model_copy(update={"end": end}), as_json=True, as_markdown=False, commands=["again"]
    )

    streams = capsys.readouterr()
    assert shown == status
    assert json.loads(streams.out)["end"] == end.value
    assert "what it merged is searched by: again" in streams.err
    assert ("the same command goes on from here" in streams.err) == (end is BisectEnd.BUDGET)


def test_a_bisect_is_shown_as_tables_and_as_markdown(fork, commits, capsys) -> None:
    found = searched(
        ask(fork, commits[0], commits[9]), PlantedStep(commits[6:], broken=commits[5:6])
    )

    show(found, as_json=False, as_markdown=False, commands=[])
    tables = capsys.readouterr().out
    show(found, as_json=False, as_markdown=True, commands=[])
    text = capsys.readouterr().out

    assert "slower (95 %" in tables
    assert "it does not compile" in tables
    assert "again: forkwatch bisect" in tables
    assert text.startswith("**scan is ")


@pytest.mark.parametrize("suffix", [".png", ".svg", ".json"])
def test_the_chart_is_drawn_into_a_file(fork, commits, tmp_path, suffix) -> None:
    path = tmp_path / f"chart{suffix}"
    refuse_chart_path(path)

    write_chart(searched(ask(fork, commits[0], commits[9]), PlantedStep(commits[6:])), path)

    assert path.stat().st_size > 1_000


def test_a_place_that_is_no_chart_is_refused_before_anything_is_measured(tmp_path) -> None:
    refuse_chart_path(None)
    with pytest.raises(DoorError, match=r"name a file that ends in \.png, \.svg, \.json"):
        refuse_chart_path(tmp_path / "chart.gif")
    with pytest.raises(DoorError, match="is no folder"):
        refuse_chart_path(tmp_path / "nowhere" / "chart.png")


@pytest.fixture
def forkwatch_bisect():
    """The verb as the command line has it, without a process."""
    app = typer.Typer()
    app.command()(bisect)

    def call(*words: str) -> Any:
        return app([*words], standalone_mode=False)

    return call


def test_the_verb_prints_a_dry_run(forkwatch_bisect, fork, commits, tmp_path, capsys) -> None:
    forkwatch_bisect(
        *(commits[0][:10], "main", "--workload", "scan", "--repository", str(fork.folder)),
        *("--home", str(tmp_path / "home"), "--budget", "30m", "--dry-run"),
    )

    assert "9 commits after" in capsys.readouterr().out


def test_the_verb_refuses_a_wrong_budget(forkwatch_bisect, fork, commits, tmp_path) -> None:
    with pytest.raises(DoorError, match="'soon' is no budget"):
        forkwatch_bisect(
            *(commits[0], "main", "--workload", "scan", "--repository", str(fork.folder)),
            *("--home", str(tmp_path / "home"), "--budget", "soon"),
        )

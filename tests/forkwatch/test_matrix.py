from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
import typer

from forkwatch.errors import DoorError
from forkwatch.matrix import Pair, conclude, dry_run_lines, question_of
from forkwatch.matrix_showing import as_data, report_of, show, significant
from reports.matrix import throughput_table
from results.document import Outcome
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.verdicts import a_verdict
from tests.runner.tiny_fork import PLAN, TinyFork
from workloads.errors import CatalogError, PlanError
from workloads.plan import MATRIX_CELLS_MAX

if TYPE_CHECKING:
    from pathlib import Path

    from detectors.verdict import Verdict
    from forkwatch.matrix import Question
    from results.document import RunDocument

TABLES = """
[builds.rel_lto]
server = "sbin/mariadbd"
[builds.rel_lto.cmake_options]
CMAKE_INTERPROCEDURAL_OPTIMIZATION = true

[configs.ps0.options]
performance_schema = 0

[matrices.lto]
builds = ["rel", "rel_lto"]
configs = ["default", "ps0"]
"""


@pytest.fixture
def fork(tmp_path: Path) -> TinyFork:
    fork = TinyFork(tmp_path / "fork")
    fork.write({"forkwatch.toml": PLAN + TABLES})
    return fork


def ask(fork: TinyFork, name: str = "lto", **chosen: Any) -> Question:
    facts: dict[str, Any] = {
        "plan_path": None,
        "commits": (),
        "workloads": ("point-query", "scan"),
        "starts": 4,
        "seed": 0,
        "host_class": "default",
    }
    return question_of(repository=fork.folder, name=name, **{**facts, **chosen})


def a_pair(*, seed: int = 1, **ratios: float) -> RunDocument:
    """Four starts of two slices a side with 0.3 % of noise."""
    rng = random.Random(seed)
    story = a_run().on(sha("c")).against(sha("c"))
    for key, ratio in ratios.items():
        for side, level in ((SideName.BASELINE, 100.0), (SideName.CANDIDATE, 100.0 * ratio)):
            rows = [[level * rng.lognormvariate(0, 0.003) for _ in range(2)] for _ in range(4)]
            story = story.with_samples(key.replace("_", "-"), rows, side=side)
    return story.build()


def the_pairs(question: Question) -> list[Pair]:
    """A cell with numbers, one that does not build and one that is the base again."""
    ends = (
        a_pair(point_query=1.0, scan=0.8),
        a_run()
        .on(sha("c"))
        .against(sha("c"))
        .that(Outcome.BUILD_FAILED, stage="compile", message="no such flag: -flto")
        .build(),
        a_run()
        .on(sha("c"))
        .against(sha("c"))
        .that(Outcome.UNCHANGED, stage="none", message="")
        .build(),
    )
    cells = [cell for cell, _ in question.jobs]
    return [conclude(cell, end, question.plan) for cell, end in zip(cells, ends, strict=True)]


def test_every_cell_is_a_pair_with_the_base(fork):
    question = ask(fork)

    assert question.base.name == "rel/default"
    assert [cell.name for cell, _ in question.jobs] == ["rel/ps0", "rel_lto/default", "rel_lto/ps0"]
    order = question.jobs[2][1]
    assert order.baseline == order.candidate == fork.first
    assert order.variants == {"baseline": "rel", "candidate": "rel_lto"}
    assert order.configs == {"baseline": "default", "candidate": "ps0"}
    assert order.workloads == ("point-query", "scan")
    assert order.starts == 4


def test_several_commits_are_compared_with_the_first(fork):
    second = fork.commit("second", fork.launcher("2"))

    question = ask(fork, commits=(fork.first, "main", second), plan_path=None)

    assert question.base.name == f"{fork.first[:8]} rel/default"
    assert len(question.jobs) == 7, "main is the second commit again"
    assert question.jobs[3][0].name == f"{second[:8]} rel/default"
    assert question.jobs[3][1].candidate == second
    assert {order.baseline for _, order in question.jobs} == {fork.first}


def test_equal_questions_have_equal_jobs_and_what_a_pair_depends_on_is_in_its_name(fork):
    names = [order.job for _, order in ask(fork).jobs]

    assert names == [order.job for _, order in ask(fork).jobs]
    assert len(set(names)) == 3
    # A build that joins the matrix leaves the pairs of the others as they are.
    wider = (PLAN + TABLES).replace('"rel_lto"]', '"rel_lto", "rel_o2"]') + "[builds.rel_o2]\n"
    fork.write({"forkwatch.toml": wider})
    assert names == [order.job for _, order in ask(fork).jobs][:3]
    fork.write({"forkwatch.toml": (PLAN + TABLES).replace("performance_schema = 0", "port = 0")})
    changed = [order.job for _, order in ask(fork).jobs]
    assert [old == new for old, new in zip(names, changed, strict=True)] == [False, True, False]
    for other in ({"starts": 5}, {"seed": 1}, {"workloads": ("scan",)}, {"host_class": "lab"}):
        assert not set(names) & {order.job for _, order in ask(fork, **other).jobs}, other


def test_a_matrix_without_a_second_cell_or_with_too_many_is_refused(fork):
    one = '\n[matrices.one]\nbuilds = ["rel"]\n'
    fork.write({"forkwatch.toml": PLAN + TABLES + one})

    with pytest.raises(DoorError, match="has one cell"):
        ask(fork, "one")
    commits = [fork.first] + [
        fork.commit(f"{number}", fork.launcher(f"{number}")) for number in range(2, 8)
    ]
    assert len(commits) * 4 > MATRIX_CELLS_MAX
    with pytest.raises(DoorError, match="has 28 cells; at most 25 fit into a night"):
        ask(fork, commits=commits)
    assert len(ask(fork, "one", commits=commits).jobs) == 6


def test_a_misspelt_matrix_or_workload_names_the_nearest(fork):
    with pytest.raises(PlanError, match="did you mean 'lto'"):
        ask(fork, "ltoo")
    with pytest.raises(CatalogError, match="did you mean 'scan'"):
        ask(fork, workloads=("scam",))


def test_a_dry_run_tells_cells_and_minutes(fork):
    lines = dry_run_lines(ask(fork))

    assert lines[0] == "point-query, scan; at most 4 starts of 1 x 1 s a side"
    assert lines[1] == f"base rel/default of {fork.first[:8]}"
    # Two sides, two workloads, one second, four starts: 16 seconds.
    assert lines[2] == f"cell rel/ps0 of {fork.first[:8]}: up to 0.3 minutes"
    assert lines[5].startswith("3 pairs: up to 0.8 minutes of measuring")


def test_the_budget_of_a_pair_bounds_a_dry_run(fork):
    text = (PLAN + TABLES).replace("seconds = 1\n", "seconds = 600\nbudget_minutes = 60\n", 1)
    fork.write({"forkwatch.toml": text})

    # One start is 40 minutes: the second one runs out of budget and is measured to its end.
    assert ask(fork, starts=90).minutes_max() == 100


def test_gaps_are_named_and_the_others_have_their_numbers(fork):
    question = ask(fork)
    pairs = the_pairs(question)

    matrix = report_of(question, pairs)

    assert [cell.gap for cell in matrix.cells] == [
        "",
        f"{sha('c')[:8]} does not build (compile: no such flag: -flto)",
        "installs the same files as the base and runs under the same config",
    ]
    assert significant(pairs) == {("rel/ps0", "scan")}
    by_workload = {line.cells[0]: line.cells[1] for line in throughput_table(matrix).lines}
    assert by_workload["scan"] == "▼ 0.80"
    assert by_workload["point-query"] == "~ 1.00"
    assert set(matrix.base_levels) == {"point-query", "scan"}


def test_a_difference_has_to_stand_out_among_all_that_were_asked(fork):
    question = ask(fork)
    strong, weak, none = (
        a_verdict(-2.0, low=-4.0, high=-0.1, p_value=p_value) for p_value in (0.0001, 0.008, 0.6)
    )

    def pairs(*verdicts: Verdict) -> list[Pair]:
        return [
            Pair(cell=cell, document=None, verdicts={"scan": verdict, "point-query": none})
            for (cell, _), verdict in zip(question.jobs, verdicts, strict=False)
        ]

    # Alone, 0.008 is rarer than one in a hundred; as the smallest of six it is not.
    assert significant([Pair(cell=question.base, document=None, verdicts={"scan": weak})])
    assert significant(pairs(none, weak, none)) == set()
    assert significant(pairs(none, weak, strong)) == {("rel_lto/ps0", "scan")}
    assert significant([]) == set()


def test_json_has_the_evidence_of_every_cell(fork, capsys):
    question = ask(fork)
    pairs = the_pairs(question)

    with pytest.raises(typer.Exit) as left:
        show(question, pairs, as_json=True, as_markdown=False)

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    data = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert left.value.exit_code == 1, "one cell does not build"
    assert data["base"] == {
        "name": "rel/default",
        "commit": fork.first,
        "build": "rel",
        "config": "default",
    }
    measured, failed, unchanged = data["cells"]
    assert measured["workloads"]["scan"]["significant"] is True
    assert measured["workloads"]["scan"]["ratio"] == pytest.approx(0.8, abs=0.01)
    assert measured["workloads"]["scan"]["verdict"]["decision"] == "regression"
    assert failed["outcome"] == "build-failed"
    assert failed["workloads"] == {}
    assert unchanged["outcome"] == "unchanged"
    assert [group["group"] for group in data["groups"]] == ["point-1", "range-1"]


def test_a_slower_cell_is_an_answer_and_an_unstable_host_is_none(fork, capsys):
    question = ask(fork)
    slower = the_pairs(question)[:1]
    with pytest.raises(typer.Exit) as left:
        show(question, slower, as_json=False, as_markdown=True)
    assert left.value.exit_code == 0
    assert "| scan | ▼ 0.80 |" in capsys.readouterr().out

    unstable = (
        a_run()
        .on(sha("c"))
        .against(sha("c"))
        .that(Outcome.UNSTABLE, stage="host", message="the canary fell")
        .build()
    )
    gap = conclude(question.jobs[0][0], unstable, question.plan)
    with pytest.raises(typer.Exit) as left:
        show(question, [gap], as_json=False, as_markdown=False)
    assert left.value.exit_code == 3
    assert "unstable host" in capsys.readouterr().out
    assert as_data(question, [gap], report_of(question, [gap]))["cells"][0]["workloads"] == {}


TREES = """
[builds.{name}]
system = "prebuilt"
prefix = "{folder}"
server = "server"
"""


@pytest.fixture
def trees(tmp_path: Path) -> str:
    """Two prebuilt variants as the text of a plan."""
    text = ""
    for name in ("my5722", "my8031"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "server").write_text(name)
        text += TREES.format(name=name, folder=folder)
    return text


def test_a_matrix_of_prebuilt_builds_is_a_table_of_versions(
    fork: TinyFork, trees: str, tmp_path: Path
) -> None:
    table = '[matrices.versions]\nbuilds = ["my5722", "my8031"]\n'
    plan = tmp_path / "versions.toml"
    plan.write_text(PLAN + trees + table)

    question = question_of(
        repository=tmp_path / "no-repository",
        plan_path=plan,
        name="versions",
        commits=(),
        workloads=(),
        starts=None,
        seed=0,
        host_class="default",
    )

    assert question.base.name == "my5722"
    ((cell, order),) = question.jobs
    assert cell.name == "my8031"
    assert order.variants == {"baseline": "my5722", "candidate": "my8031"}
    assert (order.baseline, order.candidate) == (question.base.commit.sha, cell.commit.sha)
    assert dry_run_lines(question)[1] == f"base my5722 of {question.base.commit.sha[:8]}"
    with pytest.raises(DoorError, match="every build of this matrix is prebuilt"):
        ask(fork, "versions", plan_path=plan, commits=("HEAD",))


def test_a_prebuilt_build_has_one_cell_however_many_commits_there_are(
    fork: TinyFork, trees: str
) -> None:
    second = fork.commit("second", fork.launcher("2"))
    mixed = '[matrices.mixed]\nbuilds = ["my8031", "rel"]\nconfigs = ["default", "ps0"]\n'
    fork.write({"forkwatch.toml": PLAN + TABLES + trees + mixed})

    question = ask(fork, "mixed", commits=(fork.first, second))

    assert question.base.name == "my8031/default"
    assert [cell.name for cell, _ in question.jobs] == [
        "my8031/ps0",
        f"{fork.first[:8]} rel/default",
        f"{fork.first[:8]} rel/ps0",
        f"{second[:8]} rel/default",
        f"{second[:8]} rel/ps0",
    ]


def test_a_matrix_takes_a_list_of_workloads(fork: TinyFork) -> None:
    assert ask(fork, workloads=("commit",)).workloads == ("scan", "point-query", "update-index")

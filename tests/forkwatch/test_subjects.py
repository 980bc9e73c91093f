"""What one side of a comparison is called on the command line, and the orders that come of it."""

from __future__ import annotations

import pytest

from forkwatch.comparing import conclude, order_for
from forkwatch.errors import DoorError
from forkwatch.subjects import name_of, subject_of
from results.slice import SideName
from runner import prebuilt
from runner.errors import OperatorError
from tests.fakes.run_documents import a_run, sha
from tests.runner.tiny_fork import PLAN, TinyFork
from workloads.errors import PlanError
from workloads.plan import Plan, parse_plan

TREES = """
[builds.rel_lto]
server = "sbin/mariadbd"

[builds.old]
system = "prebuilt"
prefix = "{old}"
server = "server"

[builds.new]
system = "prebuilt"
prefix = "{new}"
server = "server"
"""


@pytest.fixture
def fork(tmp_path):
    return TinyFork(tmp_path / "fork")


@pytest.fixture
def text(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "server").write_text(name)
    return PLAN + TREES.format(old=tmp_path / "old", new=tmp_path / "new")


@pytest.fixture
def plan(text) -> Plan:
    return parse_plan(text)


def test_a_revision_is_built_as_the_suite_says(fork, plan):
    found = subject_of("HEAD", repository=fork.folder, plan=plan, usual="rel")

    assert (found.commit.sha, found.build) == (fork.first, "rel")


def test_a_build_is_of_head_or_of_the_commit_behind_it(fork, plan):
    second = fork.commit("second", fork.launcher("2"))

    head = subject_of("build:rel_lto", repository=fork.folder, plan=plan, usual="rel")
    first = subject_of(
        f"build:rel_lto@{fork.first[:10]}", repository=fork.folder, plan=plan, usual="rel"
    )

    assert (head.commit.sha, head.build) == (second, "rel_lto")
    assert first.commit.sha == fork.first


def test_a_prebuilt_build_needs_no_repository(tmp_path, plan):
    found = subject_of("build:old", repository=tmp_path / "nothing", plan=plan, usual="rel")

    assert found.build == "old"
    assert found.commit == prebuilt.commit_of("old", plan.build("old"))


@pytest.mark.parametrize(
    ("asked", "usual", "said"),
    [
        ("build:olf", "rel", "no build 'olf'; did you mean 'old'?"),
        ("build:rel@nothing-such", "rel", "no commit 'nothing-such'"),
        ("build:old@main", "rel", "prebuilt, so no commit is built as it: say build:old or build:"),
        ("HEAD", "old", "say build:old or build:NAME@HEAD, with NAME one of rel, rel_lto"),
        ("build:", "rel", "no build ''"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(fork, plan, asked, usual, said):
    with pytest.raises((DoorError, OperatorError, PlanError), match=said) as refused:
        subject_of(asked, repository=fork.folder, plan=plan, usual=usual)

    assert "\n" not in str(refused.value)


def ask(folder, plan_path, baseline, candidate, **chosen):
    facts = {"suite": "commit", "host_class": "default", "workloads": (), "starts": 3, "seed": 0}
    return order_for(
        repository=folder,
        plan_path=plan_path,
        baseline=baseline,
        candidate=candidate,
        **{**facts, **chosen},
    )[0]


def test_an_order_of_two_trees_names_their_builds(tmp_path, text, plan):
    path = tmp_path / "trees.toml"
    path.write_text(text)

    order = ask(tmp_path, path, "build:old", "build:new")
    back = ask(tmp_path, path, "build:new", "build:old")

    assert order.variants == {SideName.BASELINE: "old", SideName.CANDIDATE: "new"}
    assert order.baseline == prebuilt.commit_of("old", plan.build("old")).sha
    assert order.candidate != order.baseline
    assert order == ask(tmp_path, path, "build:old", "build:new")
    assert order.job != back.job


def test_an_order_of_two_commits_is_what_it_always_was(fork, text):
    second = fork.commit("second", fork.launcher("2"))
    (fork.folder / "forkwatch.toml").write_text(text)

    plain = ask(fork.folder, None, fork.first, second)
    named = ask(fork.folder, None, f"build:rel@{fork.first}", "build:rel")
    lto = ask(fork.folder, None, fork.first, "build:rel_lto")

    assert plain.variants == {}
    assert named == plain
    assert lto.variants == {SideName.CANDIDATE: "rel_lto"}
    assert lto.job != plain.job
    assert ask(fork.folder, None, fork.first, second, workloads=("commit",)).workloads == (
        "scan",
        "point-query",
        "update-index",
    )


def test_a_sentence_names_the_build_where_the_hash_tells_less():
    story = a_run().on(sha("c")).against(sha("c"))
    document = story.with_samples("scan", [[100.0], [101.0]]).build()
    sides = {
        "candidate": document.candidate.model_copy(update={"variant": "rel_lto"}),
        "baseline": document.baseline.model_copy(update={"variant": "rel"}),
    }

    assert name_of(document) == sha("c")
    assert name_of(document.model_copy(update=sides)) == "rel_lto"
    copied = document.candidate.artifact.model_copy(update={"toolchain": prebuilt.TOOLCHAIN})
    tree = document.candidate.model_copy(update={"variant": "my8031", "artifact": copied})
    named = document.model_copy(update={"candidate": tree, "baseline": sides["baseline"]})
    assert name_of(named) == "my8031"
    assert "my8031" in conclude(named, PLAN).sentence

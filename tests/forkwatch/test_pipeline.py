"""The steps for Buildkite: one host a job, nothing pasted, nothing endless."""

from __future__ import annotations

import json

import pygit2
import pytest
import typer
from typer.testing import CliRunner

from forkwatch.ci_settings import CiSettings
from forkwatch.errors import DoorError
from forkwatch.pipeline import Event, Wish, confirm_pipeline, minutes_max, pipeline_of
from forkwatch.pipeline_verb import pipeline
from tests.fakes.git_fork import GitFork
from tests.fakes.run_documents import sha
from tests.fakes.scripted_measurement import PLAN
from workloads.errors import PlanError
from workloads.plan import PLAN_FILE, parse_plan

APP = typer.Typer()
APP.command()(pipeline)
CLASSES = "\n[hosts.small]\n[hosts.large]\n"
FORK_PLAN = parse_plan(PLAN + CLASSES)
MEASURING = ("forkwatch-run-", "forkwatch-pair-", "forkwatch-confirm-")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    """No CI runs us, whoever runs the tests."""
    for name in CiSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def steps(event, **wished):
    wish = Wish(**({"host_classes": ("small", "large")} | wished))
    return {step["key"]: step for step in pipeline_of(FORK_PLAN, event, wish)["steps"]}


def is_measuring(key):
    return key.startswith(MEASURING) and not key.endswith("-kept")


def every_step():
    found = steps(Event.PUSH, history="forkwatch-history") | steps(Event.PULL_REQUEST)
    wish = Wish(host_classes=("small",), history="forkwatch-history")
    confirm = confirm_pipeline(FORK_PLAN, wish, baseline=sha("a"), candidate=sha("b"))
    return found | {step["key"]: step for step in confirm["steps"]}


def test_there_is_one_of_each_for_every_host_class():
    assert list(steps(Event.PUSH)) == ["forkwatch-run-small", "forkwatch-run-large"]
    assert list(steps(Event.PULL_REQUEST)) == ["forkwatch-pair-small", "forkwatch-pair-large"]


def test_a_measuring_step_has_a_host_to_itself_and_may_find_it_noisy():
    for key, step in every_step().items():
        if is_measuring(key):
            host_class = step["agents"]["queue"]
            assert step["concurrency_group"] == f"forkwatch/{host_class}"
            assert step["concurrency"] == 1
            assert step["env"] == {"FORKWATCH_HOST_CLASS": host_class}
            assert step["soft_fail"] == [{"exit_status": 3}]
            assert step["retry"]["automatic"] == [{"exit_status": -1, "limit": 2}]
            assert step["artifact_paths"]
        else:
            assert "concurrency_group" not in step


def test_as_many_jobs_of_a_class_run_at_once_as_it_has_hosts():
    assert {step["concurrency"] for step in steps(Event.PUSH, hosts=3).values()} == {3}


def test_the_upload_fills_in_nothing():
    for step in every_step().values():
        for command in step["commands"]:
            assert "$" not in command.replace("$$", "")
            # What the shell fills in stays one word.
            for place in range(len(command)):
                if command.startswith("$$", place):
                    assert command[place - 1] == '"'


def test_every_step_ends_some_day_and_a_pair_has_longer():
    alone, pair = (minutes_max(FORK_PLAN, "commit", paired=paired) for paired in (False, True))

    # Two builds of 120 minutes, 30 minutes of measuring, an hour for the rest, and one start.
    assert 330 < pair < 340
    assert 180 < alone < 190
    assert all(0 < step["timeout_in_minutes"] <= pair for step in every_step().values())


def test_a_prebuilt_variant_takes_no_time_to_build():
    text = PLAN.replace("[builds.rel]", '[builds.rel]\nsystem = "prebuilt"\nprefix = "/opt/x"')

    assert minutes_max(parse_plan(text), "commit", paired=True) < 120


def test_without_a_history_nothing_is_judged():
    assert list(steps(Event.PUSH, host_classes=("small",))) == ["forkwatch-run-small"]


def test_a_run_is_judged_after_it_was_measured_where_the_history_may_be_pushed():
    found = steps(Event.PUSH, host_classes=("small",), history="h", history_queue="light")
    judge = found["forkwatch-history-small"]

    assert judge["depends_on"] == "forkwatch-run-small"
    assert judge["agents"] == {"queue": "light"}
    assert [command.split()[:3] for command in judge["commands"]] == [
        ["buildkite-agent", "artifact", "download"],
        ["forkwatch", "history", "add"],
        ["forkwatch", "history", "judge"],
    ]


def test_a_regression_fails_the_confirm_and_is_kept_all_the_same():
    wish = Wish(host_classes=("small",), history="h")
    confirm, keeping = confirm_pipeline(FORK_PLAN, wish, baseline=sha("a"), candidate=sha("b"))[
        "steps"
    ]

    assert confirm["commands"] == [
        (
            "forkwatch compare --suite commit --ci --document forkwatch-pair.json "
            f"-- {sha('a')} {sha('b')}"
        )
    ]
    assert keeping["depends_on"] == [{"step": confirm["key"], "allow_failure": True}]


def test_a_pull_request_is_measured_by_the_plan_of_its_base():
    (step,) = steps(Event.PULL_REQUEST, host_classes=("small",)).values()

    assert "--merge-base --plan-from FETCH_HEAD --untrusted" in step["commands"][1]
    assert "depends_on" not in step


def test_a_pull_request_from_outside_waits_for_a_person():
    found = steps(Event.PULL_REQUEST, ask_first=True)

    assert found.pop("forkwatch-ask")["block"]
    assert {step["depends_on"] for step in found.values()} == {"forkwatch-ask"}


@pytest.mark.parametrize(
    "wished",
    [
        {"host_classes": ("v1.2",)},
        {"host_classes": ("a b",)},
        {"history": "x; touch pwned"},
        {"history": "--force"},
        {"history_queue": "$QUEUE"},
    ],
)
def test_names_that_would_have_to_be_quoted_are_refused(wished):
    with pytest.raises(DoorError, match="cannot be"):
        steps(Event.PUSH, **wished)


def test_a_suite_that_is_not_there_is_named():
    with pytest.raises(PlanError, match="did you mean 'commit'"):
        steps(Event.PUSH, suite="comit")


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / PLAN_FILE).write_text(PLAN + CLASSES)
    return tmp_path


def printed(checkout, *words):
    said = CliRunner().invoke(APP, ["--repository", str(checkout), *words])
    assert said.exit_code == 0, said.output
    return [step["key"] for step in json.loads(said.stdout)["steps"]]


def test_the_verb_prints_a_push_where_the_build_is_none_of_a_pull_request(checkout):
    assert printed(checkout) == ["forkwatch-run-small", "forkwatch-run-large"]
    assert printed(checkout, "--host-class", "other") == ["forkwatch-run-other"]
    assert printed(checkout, "--event", "pull-request")[0] == "forkwatch-pair-small"


@pytest.mark.parametrize(
    ("theirs", "asked"),
    [
        ("git@github.com:acme/fork.git", False),
        ("https://github.com/Acme/fork", False),
        ("git://github.com/stranger/fork.git", True),
        ("", True),
    ],
)
def test_the_verb_knows_pull_requests_and_strangers(checkout, monkeypatch, theirs, asked):
    monkeypatch.setenv("BUILDKITE_PULL_REQUEST", "7")
    monkeypatch.setenv("BUILDKITE_REPO", "https://github.com/acme/fork.git")
    monkeypatch.setenv("BUILDKITE_PULL_REQUEST_REPO", theirs)

    assert ("forkwatch-ask" in printed(checkout)) == asked
    assert printed(checkout)[-1] == "forkwatch-pair-large"


def test_the_plan_can_be_that_of_a_commit(tmp_path):
    fork = GitFork(tmp_path / "fork.git", plan=PLAN + "\n[hosts.known]\n")
    fork.push("one")

    assert printed(fork.folder, "--plan-from", "main") == ["forkwatch-run-known"]


@pytest.mark.parametrize(
    ("words", "message"),
    [(("--plan", "x.toml"), "not both"), ((), "has no forkwatch.toml")],
)
def test_a_plan_that_is_not_there_or_named_twice_is_an_error(tmp_path, words, message):
    fork = GitFork(tmp_path / "fork.git")
    repository = pygit2.Repository(str(fork.folder))
    who = pygit2.Signature("Ada", "ada@example.org", 1_770_000_000, 0)
    tree = repository.TreeBuilder().write()
    repository.create_commit("refs/heads/bare", who, who, "nothing", tree, [])
    where = ["--repository", str(fork.folder), "--plan-from", "bare"]
    said = CliRunner().invoke(APP, [*where, *words])

    assert isinstance(said.exception, DoorError)
    assert message in str(said.exception)

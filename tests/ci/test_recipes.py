"""The recipes hold no logic, hold no secret, and call verbs that there are."""

from __future__ import annotations

import re

import pytest
import typer.main

from forkwatch.cli import app
from forkwatch.pipeline import Event, Wish, confirm_pipeline, pipeline_of
from tests.ci import recipes
from tests.fakes.run_documents import sha
from tests.fakes.scripted_measurement import PLAN
from workloads.plan import parse_plan

JOBS = [job for path in recipes.WORKFLOWS for job in recipes.jobs(path)]
EVERY_JOB = pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.workflow}:{job.name}")
FORKS = [path for path in recipes.WORKFLOWS if path.name.startswith("forkwatch-")]
PINNED = re.compile(r"uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
#: Verbs that build or run code of the fork.
MEASURING = re.compile(r"forkwatch (run|compare|bisect)\b")


def misuse(words: list[str]) -> str:
    """Return what the command line would say to these words before it does anything."""
    command, path = typer.main.get_command(app), []
    rest = list(words)
    while hasattr(command, "commands"):
        name = rest.pop(0)
        if name not in command.commands:
            return f"no verb {' '.join([*path, name])}"
        path.append(name)
        command = command.commands[name]
    try:
        command.make_context("forkwatch", rest)
    except Exception as error:  # noqa: BLE001  the base of Typer's errors has no public name
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("path", recipes.WORKFLOWS, ids=lambda path: path.name)
def test_actions_of_others_are_pinned_by_hash(path):
    lines = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]

    assert lines
    assert [
        line
        for line in lines
        if not PINNED.search(line) and line != "uses: ./forkwatch/.github/actions/forkwatch"
    ] == []


@pytest.mark.parametrize("path", recipes.WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_rights_of_its_own_and_no_secret(path):
    assert recipes.load(path)["permissions"] == {}
    assert "secrets." not in path.read_text()
    assert "pull_request_target" not in recipes.load(path)["on"]
    assert "workflow_run" not in recipes.load(path)["on"]


@EVERY_JOB
def test_a_job_that_runs_code_may_read_and_no_more(job):
    rights = dict(job.data["permissions"])
    if job.workflow == "forkwatch-job.yml":
        # It proves to the service which run it is; what is measured has no way to ask for that.
        assert rights.pop("id-token") == "write"
        assert rights == {"contents": "read"}
    assert rights in ({"contents": "read"}, {"contents": "write"})
    if job.data["permissions"] == {"contents": "write"}:
        assert not MEASURING.search(job.commands)
        assert re.search(r"forkwatch history add", job.commands)


@EVERY_JOB
def test_a_token_is_there_only_where_the_history_is_pushed(job):
    with_token = ["github.token" in str(step) for step in job.steps]

    assert any(with_token) == (job.data["permissions"] == {"contents": "write"})


@EVERY_JOB
def test_checkouts_leave_no_credential_behind(job):
    checkouts = [step for step in job.steps if "actions/checkout@" in step.get("uses", "")]

    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@EVERY_JOB
def test_nothing_is_pasted_into_a_shell_and_a_step_is_one_command(job):
    steps = [step["run"] for step in job.steps if "run" in step]

    assert not any("${{" in step for step in steps)
    assert all(len(step.strip().splitlines()) == 1 for step in steps)
    assert not re.search(r"\b(if|for|while|case)\b|\|\||&&|;", job.commands)


@EVERY_JOB
def test_every_job_ends_some_day(job):
    assert job.data["timeout-minutes"]


@pytest.mark.parametrize("path", FORKS, ids=lambda path: path.name)
def test_a_workflow_is_called_and_started_by_hand_with_the_same_inputs(path):
    triggers = recipes.load(path)["on"]

    assert set(triggers) == {"workflow_call", "workflow_dispatch"}
    assert triggers["workflow_call"] == triggers["workflow_dispatch"]


@EVERY_JOB
def test_verbs_and_options_of_a_job_exist(job):
    calls = recipes.calls(job.commands)

    assert calls or job.workflow == "ci.yml"
    assert [misuse(words) for words in calls if misuse(words)] == []


def test_verbs_and_options_of_the_pipeline_exist():
    plan = parse_plan(PLAN)
    wish = Wish(
        host_classes=("small",),
        history="forkwatch-history",
        history_queue="light",
        service="https://perf.example",
    )
    pipelines = [pipeline_of(plan, event, wish) for event in Event]
    pipelines.append(confirm_pipeline(plan, wish, baseline=sha("a"), candidate=sha("b")))
    commands = [
        command
        for pipeline in pipelines
        for step in pipeline["steps"]
        for command in step.get("commands", ())
    ]
    calls = recipes.calls("\n".join(commands))

    assert len(calls) == 7
    assert [misuse(words) for words in calls if misuse(words)] == []


@pytest.mark.parametrize("page", recipes.PAGES, ids=lambda page: page.name)
def test_verbs_and_options_of_the_documentation_exist(page):
    calls = recipes.shown_calls(page)

    assert calls or page.name == "github-actions.md"
    assert [misuse(words) for words in calls if misuse(words)] == []


def test_the_example_of_buildkite_calls_what_there_is():
    (step,) = recipes.parsed(recipes.example("buildkite.md"))["steps"]
    calls = recipes.calls(step["command"])

    assert len(calls) == 1
    assert misuse(calls[0]) == ""


def test_the_workflow_of_a_fork_is_a_dozen_lines_and_names_inputs_that_there_are():
    text = recipes.example("github-actions.md")
    workflow = recipes.parsed(text)

    assert len(text.splitlines()) <= 13
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        called = re.fullmatch(r"forkwatch/forkwatch/(\.github/workflows/\S+)@(\w{40})", job["uses"])
        assert called
        path = recipes.ROOT / called[1]
        inputs = recipes.load(path)["on"]["workflow_call"]["inputs"]
        required = {name for name, one in inputs.items() if one.get("required")}
        assert required <= set(job["with"]) <= set(inputs)
        assert job["with"]["version"] == called[2]
        granted = [one.data["permissions"]["contents"] for one in recipes.jobs(path)]
        assert job["permissions"] == {"contents": max(granted)}


def test_these_checks_can_fail():
    assert misuse(["compare", "a"]).startswith("MissingParameter")
    assert misuse(["compare", "--no-such", "--", "a", "b"]).startswith("NoSuchOption")
    assert misuse(["history", "ad"]) == "no verb history ad"
    assert recipes.calls('x | forkwatch plan --plan "a b" >> out') == [["plan", "--plan", "a b"]]
    assert not PINNED.search("uses: actions/checkout@v4")

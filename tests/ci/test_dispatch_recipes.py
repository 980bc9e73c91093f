"""The recipes of dispatch: what the service sends is what the workflow and the steps take."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from forkwatch.pipeline import Event, Wish, pipeline_of
from service.channels.dispatch.buildkite import CLASS_VARIABLE, JOB_VARIABLE
from service.core.dispatch_settings import DispatchSettings
from service.core.dispatching import RunAsk
from tests.ci import recipes
from tests.ci.test_recipes import misuse
from tests.fakes.github_api import actions
from tests.fakes.run_documents import sha
from tests.fakes.scripted_measurement import PLAN
from workloads.plan import parse_plan

PAGE = "dispatching.md"
FORK_WORKFLOW = recipes.parsed(recipes.example(PAGE))
OURS = recipes.load(recipes.ROOT / ".github" / "workflows" / "forkwatch-job.yml")
ASK = RunAsk(
    job="single-1",
    attempt=2,
    host_class="small",
    candidate=sha("b"),
    suite="commit",
    branch="main",
    asked_at=datetime(2026, 11, 3, tzinfo=UTC),
)


def test_the_workflow_of_a_fork_takes_what_the_service_sends():
    inputs = FORK_WORKFLOW["on"]["workflow_dispatch"]["inputs"]

    assert set(inputs) == set(actions.INPUTS)
    assert all(one == {"type": "string", "required": True} for one in inputs.values())


def test_a_run_is_called_what_the_service_looks_for():
    for workflow in (FORK_WORKFLOW, OURS):
        name = workflow["run-name"]
        assert (
            name.replace("${{ inputs.job }}", ASK.job).replace(
                "${{ inputs.attempt }}", str(ASK.attempt)
            )
            == ASK.title
        )


def test_it_calls_ours_with_inputs_that_there_are():
    job = FORK_WORKFLOW["jobs"]["job"]
    called = re.fullmatch(
        r"forkwatch/forkwatch/\.github/workflows/forkwatch-job\.yml@(\w{40})", job["uses"]
    )
    inputs = OURS["on"]["workflow_call"]["inputs"]
    required = {name for name, one in inputs.items() if one.get("required")}

    assert called
    assert job["with"]["version"] == called[1]
    assert required <= set(job["with"]) <= set(inputs)
    assert job["permissions"] == OURS["jobs"]["job"]["permissions"]
    assert FORK_WORKFLOW["permissions"] == {}


def test_the_file_is_called_what_the_service_asks_for():
    usual = DispatchSettings.model_fields["dispatch_github_workflow"].default

    assert usual == "forkwatch-job.yml" == actions.WORKFLOW


def test_the_steps_on_buildkite_call_what_there_is_by_variables_that_there_are():
    blocks = re.findall(r"```yaml\n(.*?)```", (recipes.ROOT / "docs" / PAGE).read_text(), re.DOTALL)
    (step,) = recipes.parsed(blocks[1])["steps"]
    (call,) = recipes.calls(step["command"])
    made = pipeline_of(
        parse_plan(PLAN),
        Event.JOB,
        Wish(host_classes=("small",), service=call[call.index("--service") + 1]),
    )

    assert misuse(call) == ""
    assert f"${CLASS_VARIABLE}" in call
    assert f"$${JOB_VARIABLE}" in made["steps"][0]["commands"][0]

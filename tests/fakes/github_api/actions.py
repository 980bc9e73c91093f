"""What the double does about workflows: it dispatches them, lists their runs, and cancels those.

There is one workflow, as docs/dispatching.md has it: its inputs are required, and its runs are
named by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.fakes.github_api.rules import Reply, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.github_api.routes import Request
    from tests.fakes.github_api.world import World

WORKFLOW: Final = "forkwatch-job.yml"
BRANCH: Final = "main"
INPUTS: Final = ("job", "attempt", "host-class", "candidate", "suite")
#: GitHub takes no more in all inputs together.
_INPUTS_LENGTH_MAX: Final = 65_535


def table(world: World, own: str) -> dict[tuple[str, str], Callable[[Request], Reply]]:
    """Return what is done, by method and path."""
    workflow, run = f"{own}/actions/workflows/{{file}}", f"{own}/actions/runs/{{id}}"
    return {
        ("POST", f"{workflow}/dispatches"): lambda request: _dispatch(world, request),
        ("GET", f"{workflow}/runs"): lambda request: _runs(world, request),
        ("GET", run): lambda request: _show(world, request),
        ("POST", f"{run}/cancel"): lambda request: _cancel(world, request),
    }


def _dispatch(world: World, request: Request) -> Reply:
    if request.names["file"] != WORKFLOW:
        return refusal(404, "Not Found")
    branch, inputs = request.body["ref"], request.body.get("inputs", {})
    fault = _fault_of(branch, inputs)
    if fault:
        return refusal(422, fault)
    title = f"forkwatch {inputs['job']}, attempt {inputs['attempt']}"
    run = world.new_workflow_run(WORKFLOW, branch=branch, title=title)
    if world.runner is not None:
        world.runner.begin(run, inputs)
    if not request.body.get("return_run_details"):
        return Reply(status=204)
    told = {"workflow_run_id": run["id"], "run_url": run["url"], "html_url": run["html_url"]}
    return Reply(status=200, body=told)


def _fault_of(branch: str, inputs: dict[str, str]) -> str:
    """Return why GitHub would not begin a run, or nothing."""
    if branch != BRANCH:
        return f"No ref found for: {branch}"
    unknown = sorted(set(inputs) - set(INPUTS))
    if unknown:
        return f"Unexpected inputs provided: {unknown}"
    missing = [name for name in INPUTS if not inputs.get(name)]
    if missing:
        return f"Required input '{missing[0]}' not provided"
    too_long = sum(map(len, inputs.values())) > _INPUTS_LENGTH_MAX
    return "inputs are too large." if too_long else ""


def _runs(world: World, request: Request) -> Reply:
    asked = request.query
    found = [
        run
        for file, run in reversed(world.workflow_runs)
        if file == request.names["file"]
        and run["id"] not in world.unlisted
        and asked.get("event", run["event"]) == run["event"]
        and asked.get("branch", run["head_branch"]) == run["head_branch"]
    ]
    return Reply(status=200, body={"total_count": len(found), "workflow_runs": found[:100]})


def _show(world: World, request: Request) -> Reply:
    found = _with_id(world, request)
    return refusal(404, "Not Found") if found is None else Reply(status=200, body=found)


def _cancel(world: World, request: Request) -> Reply:
    found = _with_id(world, request)
    if found is None:
        return refusal(404, "Not Found")
    if found["status"] == "completed":
        return refusal(409, "Cannot cancel a workflow run that is completed.")
    if world.runner is None or not world.runner.cancel(found["id"]):
        world.end_workflow_run(found["id"], "cancelled")
    return Reply(status=202, body={})


def _with_id(world: World, request: Request) -> dict[str, Any] | None:
    runs = (run for _, run in world.workflow_runs)
    return next((run for run in runs if str(run["id"]) == request.names["id"]), None)

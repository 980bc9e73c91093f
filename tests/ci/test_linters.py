"""The recipes pass the checks that others have written for such files."""

from __future__ import annotations

import json
import shutil

import pytest

from forkwatch.pipeline import Event, Wish, confirm_pipeline, pipeline_of
from runner import shell
from tests.ci import recipes, tools
from tests.fakes.run_documents import sha
from tests.fakes.scripted_measurement import PLAN
from workloads.plan import parse_plan

pytestmark = pytest.mark.ci

FORK_WORKFLOW = recipes.example("github-actions.md")


@pytest.fixture
def fork(tmp_path):
    """A fork with nothing in it but the workflow of the documentation."""
    folder = tmp_path / "fork"
    path = folder / ".github" / "workflows" / "forkwatch.yml"
    path.parent.mkdir(parents=True)
    path.write_text(FORK_WORKFLOW)
    assert shell.run(["git", "init", "--quiet", str(folder)], timeout_s=120).ok
    return folder


def said(name, *words, cwd=recipes.ROOT):
    """Return what a checker finds fault with; nothing where it is content."""
    done = shell.run([str(tools.program(name)), *words], timeout_s=300, cwd=cwd)
    return "" if done.ok else done.stdout + done.stderr


def test_actionlint_finds_nothing_in_our_workflows():
    assert said("actionlint") == ""


def test_actionlint_finds_nothing_in_the_workflow_of_a_fork(fork):
    assert said("actionlint", cwd=fork) == ""


def test_actionlint_finds_what_is_wrong(fork):
    path = fork / ".github" / "workflows" / "forkwatch.yml"
    path.write_text(FORK_WORKFLOW.replace("if: github.event_name", "if: githup.event_name", 1))

    assert "githup" in said("actionlint", cwd=fork)


def test_zizmor_finds_nothing_in_our_workflows():
    assert said("zizmor", "--offline", "--no-progress", ".github") == ""


def test_zizmor_finds_nothing_in_the_workflow_of_a_fork(fork):
    assert said("zizmor", "--offline", "--no-progress", ".", cwd=fork) == ""


def test_zizmor_finds_what_is_wrong(fork):
    path = fork / ".github" / "workflows" / "forkwatch.yml"
    pin = "0123456789abcdef0123456789abcdef01234567"
    path.write_text(FORK_WORKFLOW.replace(f".yml@{pin}", ".yml@main"))

    assert "unpinned-uses" in said("zizmor", "--offline", "--no-progress", ".", cwd=fork)


def test_workflows_and_action_fit_the_schemas(fork):
    workflows = [str(path) for path in recipes.WORKFLOWS]
    workflows.append(str(fork / ".github" / "workflows" / "forkwatch.yml"))
    known = "--builtin-schema"

    assert said("check-jsonschema", known, "vendor.github-workflows", *workflows) == ""
    assert said("check-jsonschema", known, "vendor.github-actions", str(recipes.ACTION)) == ""


@pytest.mark.parametrize("event", Event)
def test_pipelines_fit_buildkites_schema(event, tmp_path):
    wish = Wish(host_classes=("small", "large"), hosts=3, history="forkwatch-history")
    one_class = Wish(host_classes=("small",), ask_first=True, service="https://perf.example")
    wishes = [one_class] if event is Event.JOB else [wish, one_class]
    paths = []
    for number, one in enumerate(wishes):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(pipeline_of(parse_plan(PLAN), event, one)))
        paths.append(str(path))

    assert said("check-jsonschema", "--builtin-schema", "vendor.buildkite", *paths) == ""


def test_what_a_suspicion_adds_fits_buildkites_schema(tmp_path):
    wish = Wish(host_classes=("small",), history="forkwatch-history")
    steps = confirm_pipeline(parse_plan(PLAN), wish, baseline=sha("a"), candidate=sha("b"))
    path = tmp_path / "confirm.json"
    path.write_text(json.dumps(steps))
    steps["steps"][0]["concurrency"] = "two"
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(steps))

    assert said("check-jsonschema", "--builtin-schema", "vendor.buildkite", str(path)) == ""
    assert "concurrency" in said(
        "check-jsonschema", "--builtin-schema", "vendor.buildkite", str(wrong)
    )


def test_pipeline_files_fit_buildkites_schema(tmp_path):
    example = tmp_path / "example.yml"
    example.write_text(recipes.example("buildkite.md"))
    paths = [str(recipes.ROOT / ".buildkite" / "pipeline.yml"), str(example)]

    assert said("check-jsonschema", "--builtin-schema", "vendor.buildkite", *paths) == ""


def test_scripts_pass_shellcheck(tmp_path):
    wrong = tmp_path / "wrong"
    shutil.copy(recipes.SCRIPTS[0], wrong)
    wrong.write_text(wrong.read_text() + 'cd $1\nrm -rf "$2"/\n')

    assert said("shellcheck", "--severity", "style", *map(str, recipes.SCRIPTS)) == ""
    assert "SC2086" in said("shellcheck", str(wrong))

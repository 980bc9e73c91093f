"""The step of a build that a service made: one host, one job, nothing pasted."""

from __future__ import annotations

import pytest

from forkwatch.errors import DoorError
from forkwatch.pipeline import Event, Wish, pipeline_of
from tests.fakes.scripted_measurement import PLAN
from workloads.plan import parse_plan

FORK_PLAN = parse_plan(PLAN + "\n[hosts.small]\n[hosts.large]\n")
SERVICE = "https://perf.example"


def steps(**wished):
    wish = Wish(**({"host_classes": ("small",), "service": SERVICE} | wished))
    return pipeline_of(FORK_PLAN, Event.JOB, wish)["steps"]


def test_a_job_of_a_service_is_one_step_on_a_host_of_its_class():
    (step,) = steps(history="forkwatch-history", hosts=3)

    assert step["agents"] == {"queue": "small"}
    assert (step["concurrency"], step["concurrency_group"]) == (3, "forkwatch/small")
    (command,) = step["commands"]
    assert command == (
        'forkwatch run --order "$$FORKWATCH_JOB" --service https://perf.example '
        "--document forkwatch-run.json"
    )
    assert step["artifact_paths"] == ["forkwatch-run.json"]


@pytest.mark.parametrize("service", ["", "perf.example", "https://perf.example/x", "https://a;ls"])
def test_what_is_no_service_is_refused(service):
    with pytest.raises(DoorError, match="--service"):
        steps(service=service)


def test_a_job_is_of_one_host_class():
    with pytest.raises(DoorError, match="--host-class"):
        steps(host_classes=("small", "large"))

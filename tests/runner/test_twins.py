"""A pair of one commit under two names of one recipe: built once, and copied."""

from __future__ import annotations

import pytest

from results.slice import SideName
from runner.build import Builder
from runner.setups import Setup
from runner.sides import Sides
from runner.twins import are_twins
from tests.runner.tiny_fork import PLAN
from workloads.plan import parse_plan
from workloads.twin_plan import twin_plan

OTHER = """
[builds.debug]
server = "sbin/mariadbd"
[builds.debug.cmake_options]
CMAKE_BUILD_TYPE = "Debug"

[builds.taken]
system = "prebuilt"
prefix = "/opt/taken"
server = "sbin/mariadbd"
"""


def an_order(tiny_fork, **chosen):
    """Return the order of an A/A check, as the service gives it."""
    twins = twin_plan(PLAN, "commit")
    facts = {
        "plan": twins.text,
        "baseline": tiny_fork.first,
        "variants": {SideName.BASELINE: twins.build, SideName.CANDIDATE: twins.twin_build},
        "configs": {SideName.BASELINE: twins.config, SideName.CANDIDATE: twins.twin_config},
    }
    return tiny_fork.order(tiny_fork.first, **{**facts, **chosen})


def sides_of(order, home, settings) -> Sides:
    plan = parse_plan(order.plan)
    builder = Builder.of_job(order, home=home, settings=settings, cache=None)
    return Sides(order, plan, plan.suite("commit"), builder)


def built(sides: Sides):
    """Build both sides, the candidate first as a job does, and return their artifacts."""
    for side in (SideName.CANDIDATE, SideName.BASELINE):
        sides.build(side)
    found = [sides.as_documented(side).artifact for side in SideName]
    assert all(found)
    return found


def logs_in(home) -> list[str]:
    return sorted(path.name for path in home.folder("logs").glob("build-*.log"))


def test_one_commit_under_two_names_is_built_once_and_copied(tiny_fork, own_home, settings) -> None:
    sides = sides_of(an_order(tiny_fork), own_home, settings)
    baseline, candidate = built(sides)

    assert (baseline.variant, candidate.variant) == ("rel", "rel-aa")
    assert baseline.id != candidate.id
    assert baseline.content_hash == candidate.content_hash
    assert len(logs_in(own_home)) == 1
    programs = [
        own_home.root / "artifacts" / one.id / "sbin" / "mariadbd" for one in (baseline, candidate)
    ]
    assert programs[0].stat().st_ino != programs[1].stat().st_ino
    # Two names of the config are what it takes for a pair of equals to be measured at all.
    assert not sides.is_unchanged()


def test_a_job_of_strangers_copies_nothing_to_where_ours_is(tiny_fork, own_home, settings) -> None:
    built(sides_of(an_order(tiny_fork, trusted=False), own_home, settings))

    assert len(logs_in(own_home)) == 2


@pytest.mark.parametrize(
    ("one", "other", "twins"),
    [
        ("rel", "rel-aa", True),
        ("rel-aa", "rel", True),
        ("rel", "rel", False),
        ("rel", "debug", False),
        ("taken", "taken-aa", False),
    ],
)
def test_twins_are_one_recipe_under_two_names(one: str, other: str, twins: bool) -> None:  # noqa: FBT001  a row of a table
    plan = parse_plan(twin_plan(PLAN + OTHER, "commit").text)
    prebuilt = plan.builds["taken"]
    builds = {**plan.builds, "taken-aa": prebuilt}
    config = plan.config("default")

    setups = [
        Setup(variant=name, build=builds[name], config="default", server=config)
        for name in (one, other)
    ]
    assert are_twins(*setups) is twins

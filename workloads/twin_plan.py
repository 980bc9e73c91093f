"""The plan of an A/A check: the fork's own, with a second name for the build and config it checks.

The text of a plan comes in; out goes a text in which a suite measures all of its starts, whatever
they show, and in which both sides of a pair can be told apart although they are the same.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.plan import BuildVariant, Plan

#: Added to the name of what is checked.
SUFFIX: Final = "-aa"
#: Nothing is ever equivalent within it, so a pair goes on to its last start: the scatter is wanted
#: here, and how soon the plan's own gate would have been satisfied is found out afterwards.
_GATE: Final = 1e-6
#: The most a plan allows, for the same reason.
_BUDGET_MINUTES: Final = 24 * 60


@dataclass(frozen=True, kw_only=True)
class TwinPlan:
    """A plan with twins, and their names."""

    text: str
    #: The fork's own plan, by whose gates the check is judged.
    plan: Plan
    build: str
    twin_build: str
    twin_variant: BuildVariant
    config: str
    twin_config: str


def twin_plan(text: str, suite_name: str) -> TwinPlan:
    """Return the plan in `text` with twins of what the suite builds and runs.

    Raises:
        PlanError: The plan is wrong or has no such suite.
    """
    plan = parse_plan(text)
    suite = plan.suite(suite_name)
    build, config = suite.build, suite.config
    tables = tomllib.loads(text)
    twin = dict(tables["builds"][build])
    if not plan.build(build).is_prebuilt:
        # Another identity for the same recipe: a minute more or less changes no artifact.
        minutes = plan.build(build).build_minutes_max
        twin["build_minutes_max"] = minutes - 1 if minutes > 1 else 2
    # A plan without configs has one that is called default and sets nothing.
    configs = tables.get("configs") or {config: {}}
    changed = {
        **tables,
        "builds": {**tables["builds"], build + SUFFIX: twin},
        "configs": {**configs, config + SUFFIX: configs[config]},
        "gates": {"default": _GATE},
        "suites": {suite_name: {**tables["suites"][suite_name], "budget_minutes": _BUDGET_MINUTES}},
    }
    # Its builds and configs are there, its suite may not be any more; nobody asks for it here.
    changed.pop("matrices", None)
    written = toml(changed)
    return TwinPlan(
        text=written,
        plan=plan,
        build=build,
        twin_build=build + SUFFIX,
        twin_variant=parse_plan(written).build(build + SUFFIX),
        config=config,
        twin_config=config + SUFFIX,
    )


def toml(tables: Mapping[str, Any]) -> str:
    """Return values as TOML that reads back as the same, one line for each key at the top."""
    return "".join(f"{_text(key)} = {_value(value)}\n" for key, value in tables.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_text(key)} = {_value(inner)}" for key, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _text(text: str) -> str:
    # JSON's escapes are among TOML's, once no character needs two of them; 7f alone is missing.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

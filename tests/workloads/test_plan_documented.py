"""docs/plan.md explains every key of a plan, and no key that there is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workloads.plan import (
    BuildVariant,
    DatasetPlan,
    Fork,
    Gates,
    HostPlan,
    Matrix,
    Notify,
    Plan,
    ServerConfig,
    Suite,
)

PAGE = (Path(__file__).parents[2] / "docs" / "plan.md").read_text(encoding="utf-8")
TABLES = {
    "[fork]": Fork,
    "[builds.NAME]": BuildVariant,
    "[configs.NAME]": ServerConfig,
    "[datasets.NAME]": DatasetPlan,
    "[suites.NAME]": Suite,
    "[gates]": Gates,
    "[hosts.CLASS]": HostPlan,
    "[notify]": Notify,
    "[matrices.NAME]": Matrix,
}


def keys_of(section: str) -> set[str]:
    """Return the keys in the first column of a section's table."""
    text = PAGE.split(f"## `{section}`\n", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"(?m)^\| (`[^|]*) \|", text)
    return {key for cell in cells for key in re.findall(r"`([a-z_]+)`", cell)}


@pytest.mark.parametrize("section", TABLES)
def test_a_section_has_the_keys_of_its_table(section):
    assert keys_of(section) == set(TABLES[section].model_fields)


def test_every_table_of_a_plan_has_a_section():
    sections = {re.sub(r"[\[\].A-Z]", "", section) for section in TABLES}

    assert sections == set(Plan.model_fields)

"""The threat model names a test for each attempt, and each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "threat-model.md"
_TEST = re.compile(r"`(test_\w+)`")
_DEFINED = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)


def attempts(page: str) -> dict[str, list[str]]:
    """Return what is tried, with the tests that try it."""
    section = page.partition("\n## Attempts\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {row[0].strip(): _TEST.findall(row[-1]) for row in rows[1:]}


def defined() -> set[str]:
    """Return the name of every test there is."""
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for path in files for name in _DEFINED.findall(path.read_text(encoding="utf-8"))}


def test_every_attempt_is_tried_by_a_test_that_exists() -> None:
    found = attempts(PAGE.read_text(encoding="utf-8"))
    there = defined()

    assert len(found) > 20
    assert [attempt for attempt, tests in found.items() if not tests] == []
    assert [test for tests in found.values() for test in tests if test not in there] == []


def test_this_rule_can_fail() -> None:
    page = (
        "# Page\n\n## Attempts\n\n| attempt | what stops it | test |\n|---|---|---|\n"
        "| one | a wall | `test_nobody_wrote_this`, `test_this_rule_can_fail` |\n"
        "| two | hope | none |\n\n## Not stopped\n\n| x | y | `test_x` |\n"
    )

    assert attempts(page) == {
        "one": ["test_nobody_wrote_this", "test_this_rule_can_fail"],
        "two": [],
    }
    assert "test_this_rule_can_fail" in defined()
    assert "test_nobody_wrote_this" not in defined()

"""Marks do what `make test` takes them for."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALONE = re.compile(r"^(pytestmark = |@)pytest\.mark\.alone$", re.MULTILINE)


def test_what_needs_the_machine_to_itself_lies_where_it_is_looked_for() -> None:
    """Elsewhere neither half of `make test` would run it."""
    recipe = (ROOT / "Makefile").read_text()
    [command] = [line for line in recipe.splitlines() if '$(NOT_LONG) and alone"' in line]
    folders = [ROOT / word for word in command.split() if word.startswith("tests/")]

    marked = [path for path in (ROOT / "tests").rglob("*.py") if ALONE.search(path.read_text())]

    assert marked
    assert [one for one in marked if not any(one.is_relative_to(at) for at in folders)] == []


def test_a_file_that_is_alone_as_a_whole_is_one_that_walks_from_end_to_end() -> None:
    """A mark for a file takes tests along that need no quiet, and each of them costs CI time."""
    whole = [
        path.relative_to(ROOT).parts[1]
        for path in (ROOT / "tests").rglob("*.py")
        if "pytestmark = pytest.mark.alone" in path.read_text() and path != Path(__file__)
    ]

    assert set(whole) == {"end_to_end"}

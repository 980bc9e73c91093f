"""The house is tidy: sizes, names, docstrings, reasons, and documentation of everything public."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from forkwatch.cli import app
from runner.settings import RunnerSettings
from service.core.settings import Settings
from service.store.schema import METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 400
#: Names that say nothing; a function without a room is a missing noun.
BANNED_NAMES = {"utils", "util", "helpers", "common", "misc", "manager", "base", "hacks"}
#: Hidden folders that are ours all the same.
OURS = {".buildkite", ".ci", ".github"}
#: Not ours, or made by tools.
NOT_OURS = {"node_modules", "__pycache__", "build", "dist"}
#: Read for forbidden words; larger files are data.
TEXT_BYTES_MAX = 2_000_000
_NOQA = re.compile(r"#\s*noqa\b(?P<rest>.*)$", re.IGNORECASE)
_NOQA_WITH_REASON = re.compile(r":\s*[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*\s+\S+")
_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[[a-z0-9, -]+\])")


def our_files() -> Iterator[Path]:
    """Give every file of the repository, hidden folders of tools left out."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") and part not in OURS for part in parts[:-1])
        if path.is_file() and not hidden and not NOT_OURS.intersection(parts):
            yield path


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


PYTHON = [path for path in our_files() if path.suffix == ".py"]
MARKDOWN = [path for path in our_files() if path.suffix == ".md"]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def long_functions(tree: ast.Module) -> list[str]:
    """Return functions that are too long, with their lengths."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                found.append(f"{node.name}: {lines} lines")
    return found


def titles(text: str) -> list[str]:
    """Return the first-level headings of a Markdown text, code blocks left out."""
    prose = re.sub(r"(?ms)^```.*?^```", "", text)
    return re.findall(r"(?m)^# .+$", prose)


def words_of(path: Path) -> set[str]:
    """Return the names of a file and of the folders it lies in."""
    return {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}


def unexplained(line: str) -> bool:
    """Whether a line silences a checker without saying which rule, and why."""
    noqa = _NOQA.search(line)
    silent = noqa is not None and not _NOQA_WITH_REASON.match(noqa.group("rest"))
    return silent or _IGNORE.search(line) is not None


def forbidden_words() -> dict[str, re.Pattern[str]]:
    """Return what no file may hold, put together here so that this file does not hold it."""
    hosts = [
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("snapshot", "debian", "org"),
        ("pypi", "org"),
        ("pypi", "python", "org"),
        ("files", "pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("proxy", "golang", "org"),
        ("repo1", "maven", "org"),
        ("crates", "io"),
    ]
    folders = [("", "work", ""), ("", "root", ""), ("", "tmp", "bash_jobs")]
    words = {".".join(host): rf"\b{re.escape('.'.join(host))}\b" for host in hosts}
    words |= {"/".join(parts): rf"(?<![\w.\-])/{'/'.join(parts[1:])}" for parts in folders}
    return {word: re.compile(pattern) for word, pattern in words.items()}


def test_functions_are_short() -> None:
    found = {name_of(path): long_functions(tree_of(path)) for path in PYTHON}

    assert {name: functions for name, functions in found.items() if functions} == {}


def test_files_are_short() -> None:
    lines = {name_of(path): len(path.read_text().splitlines()) for path in PYTHON}

    assert {name: count for name, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_test_files_have_names_of_their_own() -> None:
    # Folders of tests are no packages: pytest finds only the first of two files of one name.
    names = Counter(path.name for path in PYTHON if path.name.startswith("test_"))

    assert [name for name, count in names.items() if count > 1] == []


def test_modules_say_what_they_are() -> None:
    # A test's name and first comment say the rule.
    rooms = [path for path in PYTHON if not path.name.startswith(("test_", "conftest"))]
    silent = [name_of(path) for path in rooms if not ast.get_docstring(tree_of(path))]

    assert silent == [], "a module opens with what comes in and what goes out"


def test_names_say_something() -> None:
    vague = [name_of(path) for path in PYTHON if words_of(path) & BANNED_NAMES]

    assert vague == []


def test_silenced_checks_say_why() -> None:
    found = [
        f"{name_of(path)}:{number}"
        for path in PYTHON
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if unexplained(line)
    ]

    assert found == []


def test_a_markdown_file_has_one_title() -> None:
    counts = {name_of(path): len(titles(path.read_text())) for path in MARKDOWN}

    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_no_file_names_a_registry_or_this_machine() -> None:
    patterns = forbidden_words()
    found = []
    for path in our_files():
        if path.stat().st_size > TEXT_BYTES_MAX:
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        found += [f"{name_of(path)}: {word}" for word in patterns if patterns[word].search(text)]

    assert found == []


@cache
def documentation() -> str:
    """Return the README and everything in docs/ as one text."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in pages)


def verbs(command: Any, *path: str) -> list[str]:
    """Return every command below `command` as it is typed."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return [" ".join(path)]
    return [verb for name in inner for verb in verbs(inner[name], *path, name)]


@pytest.mark.parametrize("verb", verbs(typer.main.get_command(app)))
def test_every_verb_is_documented(verb: str) -> None:
    assert f"forkwatch {verb}" in documentation()


@pytest.mark.parametrize("setting", sorted({*Settings.model_fields, *RunnerSettings.model_fields}))
def test_every_setting_is_documented(setting: str) -> None:
    assert f"`FORKWATCH_{setting.upper()}`" in documentation()


@pytest.mark.parametrize("table", sorted(METADATA.tables))
def test_every_table_is_documented(table: str) -> None:
    assert f"`{table}`" in documentation()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_these_rules_can_fail() -> None:
    long = "def f():\n" + "    x = 1\n" * FUNCTION_LINES_MAX
    words = forbidden_words()

    assert long_functions(ast.parse(long)) == ["f: 71 lines"]
    assert long_functions(ast.parse(long.replace("    x = 1\n", "", 1))) == []
    assert titles("# One\n```\n# code\n```\n# Two\n") == ["# One", "# Two"]
    assert [
        unexplained(f"x = 1  # {text}")
        for text in (
            "no" + "qa",
            "no" + "qa: F401",
            "no" + "qa: F401, E501  because",
            "type" + ": ignore",
            "type" + ": ignore[misc]",
        )
    ] == [True, True, False, True, False]
    slash, dot = "/", "."
    machine, registry = slash.join(["", "work", ""]), dot.join(["pypi", "org"])
    assert words[machine].search(f'"{machine}main"')
    assert not words[machine].search(f"home{machine}main")
    assert words[registry].search(f"https://{registry}/simple")

"""What the recipes say: workflows, the action, pipelines, and the examples of the documentation.

Files come in; jobs, steps and command lines go out, as they are written. Nothing is run.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION: Final = ROOT / ".github" / "actions" / "forkwatch" / "action.yml"
SCRIPTS: Final = (
    ROOT / ".ci" / "run",
    ACTION.parent / "install",
    *sorted((ROOT / ".buildkite" / "agent-hooks").iterdir()),
)
PAGES: Final = tuple(
    ROOT / "docs" / name for name in ("github-actions.md", "buildkite.md", "without-a-service.md")
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of a workflow."""

    workflow: str
    name: str
    #: As written.
    data: dict[str, Any]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Its steps; none for a job that calls another workflow."""
        steps: list[dict[str, Any]] = self.data.get("steps", [])
        return steps

    @property
    def commands(self) -> str:
        """Everything that it has a shell do."""
        return "\n".join(step["run"] for step in self.steps if "run" in step)


def load(path: Path) -> dict[str, Any]:
    """Return a YAML file; the key `on` is a word here and no truth value."""
    return parsed(path.read_text())


def parsed(text: str) -> dict[str, Any]:
    """Return YAML as data."""
    data: dict[Any, Any] = yaml.safe_load(text)
    return {"on" if key is True else key: value for key, value in data.items()}


def jobs(path: Path) -> Iterator[Job]:
    """Give the jobs of a workflow."""
    for name, data in load(path)["jobs"].items():
        yield Job(workflow=path.name, name=name, data=data)


def example(page: str, language: str = "yaml") -> str:
    """Return the first block of code of that language in a page."""
    found = blocks(page, language)
    assert found, f"docs/{page} has no block of {language}"
    return found[0]


def blocks(page: str, language: str = "yaml") -> list[str]:
    """Return the blocks of code of that language in a page."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def calls(text: str) -> list[list[str]]:
    """Return the arguments of every call of forkwatch in a shell text, one line each call."""
    found = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        for part in re.split(r"\||&&|;", line.split(" #")[0]):
            command = re.sub(r">>?\s*\S+", "", part).strip()
            if command.startswith("forkwatch "):
                found.append(shlex.split(command)[1:])
    return found


def shown_calls(page: Path) -> list[list[str]]:
    """Return the calls in the indented examples of a page."""
    prose = re.sub(r"(?ms)^```.*?^```", "", page.read_text())
    indented = [line[4:] for line in prose.splitlines() if line.startswith("    ")]
    return calls("\n".join(indented))

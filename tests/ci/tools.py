"""Programs that CI recipes are checked with, fetched once by their own clients, never committed.

Names come in, paths of programs go out: Go's from modules of a fixed version, Python's from a lock
with hashes. They are kept below `.forkwatch/ci-tools`.

    python -m tests.ci.tools     fetches all of them ahead of the tests
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Final

from runner import locks, shell
from tests.ci import golang

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / ".forkwatch" / "ci-tools"
LOCK: Final = Path(__file__).parent / "tools.lock"
#: buildkite-agent: the newest that the module proxy serves whole.
GO_MODULES: Final = {
    "buildkite-agent": "github.com/buildkite/agent/v3@v3.78.0",
    "act": "github.com/nektos/act@v0.2.89",
    "actionlint": "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12",
    "versitygw": "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
}
#: Parts that tests of ours have no use for: act works on the machine itself, in no container.
GO_TAGS: Final = {"act": "WITHOUT_DOCKER"}
PYTHON_PROGRAMS: Final = ("check-jsonschema", "shellcheck", "zizmor")
INSTALL_SECONDS_MAX: Final = 1800


class ToolError(Exception):
    """A program could not be had; says why."""


@cache
def program(name: str) -> Path:
    """Return the path of a program, fetched if it is not there.

    Raises:
        ToolError: It could not be had.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    with locks.exclusive(KEPT / ".lock"):
        return _go(name) if name in GO_MODULES else _python(name)


def go(*words: str, **variables: str) -> str:
    """Return what Go itself says; it is installed if it is not there.

    Raises:
        golang.GoError: It failed.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    with locks.exclusive(KEPT / ".lock"):
        return golang.call(KEPT, *words, **variables)


def _go(name: str) -> Path:
    module = GO_MODULES[name]
    # The agent calls itself by its name, so the version is in the folder's.
    path = KEPT / module.rpartition("@")[2] / name
    if path.exists():
        return path
    try:
        golang.install(KEPT, module, path, tags=GO_TAGS.get(name, ""))
    except golang.GoError as error:
        raise ToolError(f"{name}: {error}") from error
    return path


def _python(name: str) -> Path:
    folder = KEPT / "python"
    made = folder / "made"
    if not made.exists() or made.read_text() != LOCK.read_text():
        uv = str(Path(sys.executable).parent / "uv")
        python = str(folder / "bin" / "python")
        for words in (
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
            [uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", str(LOCK)],
        ):
            done = shell.run(words, timeout_s=INSTALL_SECONDS_MAX)
            if not done.ok:
                raise ToolError(f"{LOCK.name} was not installed: {done.stderr.strip()[-800:]}")
        made.write_text(LOCK.read_text())
    return folder / "bin" / name


def main() -> int:
    """Fetch all; print a line for each that could not be had, and return 1 if there is one."""
    missing = 0
    for name in (*GO_MODULES, *PYTHON_PROGRAMS):
        try:
            program(name)
        except ToolError as error:
            missing = 1
            print(f"{name}: {error}")
    return missing


if __name__ == "__main__":
    sys.exit(main())

"""Programs that CI recipes are checked with, fetched once by their own clients, never committed.

Names come in, paths of programs go out: Go's from modules of a fixed version, Python's from a lock
with hashes. They are kept below `.forkwatch/ci-tools`.

    python -m tests.ci.tools     fetches all of them ahead of the tests
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from runner import locks, shell

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
PYTHON_PROGRAMS: Final = ("check-jsonschema", "shellcheck", "zizmor")
#: Building the agent takes a minute and a half of two processors.
BUILD_SECONDS_MAX: Final = 1800


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


def _go(name: str) -> Path:
    module = GO_MODULES[name]
    # The agent calls itself by its name, so the version is in the folder's.
    path = KEPT / module.rpartition("@")[2] / name
    if path.exists():
        return path
    if shutil.which("go") is None:
        raise ToolError(f"{name} is built by Go: install Go 1.23 or later")
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        words = ["nice", "-n", "19", "go", "install", module]
        done = shell.run(["env", f"GOBIN={folder}", *words], timeout_s=BUILD_SECONDS_MAX)
        if not done.ok:
            raise ToolError(f"{module} was not built: {done.stderr.strip()[-800:]}")
        (built,) = Path(folder).iterdir()
        path.parent.mkdir(exist_ok=True)
        built.rename(path)
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
            done = shell.run(words, timeout_s=BUILD_SECONDS_MAX)
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

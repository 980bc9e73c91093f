"""Go, for tools that come as its modules: the machine's own where it is new enough, or PyPI's.

A folder comes in where Go may be kept; a path and a program built from a module go out. Go fetches
modules through its proxy and checks them against its checksum database; PyPI's Go has hashes.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from runner import shell

LOCK: Final = Path(__file__).parent / "go.lock"
#: What the modules of `tools.py` ask for; Debian 12 has 1.19.
VERSION_MIN: Final = (1, 25)
#: Building the agent takes a minute and a half of two processors.
SECONDS_MAX: Final = 1800
#: Programs without symbols and without C, from a compiler that collects its garbage late: a sixth
#: less work, as user time of building actionlint (23.4 s, then 20.1 s).
LEAN: Final = {"CGO_ENABLED": "0", "GOGC": "400"}
LEAN_LINK: Final = "-ldflags=-s -w"


class GoError(Exception):
    """Go could not be had, or did not do what it was to do; says why."""


def go(kept: Path) -> str:
    """Return the path of a Go that is new enough, installed below a folder if there is none.

    Raises:
        GoError: It could not be installed.
    """
    own = shutil.which("go")
    return own if own is not None and new_enough(own) else _from_pypi(kept / "go")


def new_enough(program: str) -> bool:
    """Whether a Go is of the version that is needed, without fetching another by itself."""
    done = shell.run(["env", "GOTOOLCHAIN=local", program, "version"], timeout_s=SECONDS_MAX)
    said = re.search(r"\bgo(\d+)\.(\d+)", done.stdout)
    return done.ok and said is not None and (int(said[1]), int(said[2])) >= VERSION_MIN


def call(kept: Path, *words: str, **variables: str) -> str:
    """Return what Go says to these words.

    Raises:
        GoError: It says that it failed.
    """
    # A version that a module prefers is no reason to fetch another Go.
    named = [f"{name}={value}" for name, value in {"GOTOOLCHAIN": "local", **variables}.items()]
    done = shell.run(["env", *named, go(kept), *words], timeout_s=SECONDS_MAX)
    if not done.ok:
        raise GoError(f"go {' '.join(words)}: {(done.stderr or done.stdout).strip()[-800:]}")
    return done.stdout


def install(kept: Path, module: str, path: Path, *, tags: str = "") -> None:
    """Build the program of a module, and put it at a path.

    Raises:
        GoError: It was not built.
    """
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        words = ["install", LEAN_LINK, *([f"-tags={tags}"] if tags else []), module]
        call(kept, *words, GOBIN=folder, **LEAN)
        (built,) = Path(folder).iterdir()
        path.parent.mkdir(exist_ok=True)
        built.rename(path)


def _from_pypi(folder: Path) -> str:
    made = folder / "made"
    program = folder / "installed" / "go" / "bin" / "go"
    if not made.exists() or made.read_text() != LOCK.read_text():
        uv = str(Path(sys.executable).parent / "uv")
        shutil.rmtree(folder, ignore_errors=True)
        target = str(folder / "installed")
        words = ["pip", "install", "--quiet", "--python", sys.executable, "--target", target]
        words += ["--no-deps", "--require-hashes", "--requirement", str(LOCK)]
        done = shell.run([uv, *words], timeout_s=SECONDS_MAX)
        if not done.ok:
            raise GoError(f"{LOCK.name} was not installed: {done.stderr.strip()[-800:]}")
        made.write_text(LOCK.read_text())
    return str(program)

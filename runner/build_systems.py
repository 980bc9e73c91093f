"""Build systems: a build variant in, the commands that build and install it out.

The commands run inside the sandbox, where the source, the build folder and the prefix are always at
the same places. Nothing is run here; what a failed command means is `runner/build.py`'s matter.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from results.document import Toolchain
from runner import shell
from runner.errors import BuildError
from runner.sandbox import INSIDE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.plan import BuildVariant

SOURCE: Final = INSIDE / "source"
BUILD: Final = INSIDE / "build"
PREFIX: Final = INSIDE / "artifact"
#: Where distributions keep links to ccache under the compilers' names: whatever calls `gcc` with
#: this folder first in PATH goes through the cache.
_MASQUERADE: Final = (Path("/usr/lib/ccache"), Path("/usr/lib64/ccache"))
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LINKER_FLAG: Final = {"mold": "-fuse-ld=mold", "lld": "-fuse-ld=lld", "gold": "-fuse-ld=gold"}
_LINKER_PROGRAM: Final = {"mold": "mold", "lld": "ld.lld", "gold": "ld.gold"}
#: Longest part of a command that a message shows.
_SHOWN: Final = 120


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command with what a failure of it is called."""

    stage: str
    argv: Sequence[str]
    #: For messages, such as `make -j2`; the stage alone says enough where empty.
    words: str = ""

    @property
    def name(self) -> str:
        """The step in a message."""
        return f"{self.stage} ({self.words})" if self.words else self.stage


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that turns a source folder into an install prefix."""

    steps: tuple[Step, ...]
    #: Environment besides the sandbox's own.
    environment: Mapping[str, str] = field(default_factory=dict)


def recipe_of(variant: BuildVariant, *, jobs: int) -> Recipe:
    """Return the commands that build and install `variant` with so many processes at once."""
    if variant.system == "command":
        return Recipe(steps=_commands(variant, jobs), environment=_environment(variant))
    assert variant.system == "cmake", "a prebuilt variant is not built"
    return Recipe(
        steps=(
            Step(stage="configure", argv=_configure(variant)),
            Step(stage="build", argv=_build(variant, jobs)),
            *(Step(stage="install", argv=words) for words in _installs(variant)),
        )
    )


def find_toolchain(variant: BuildVariant) -> Toolchain:
    """Return what would build `variant` on this machine.

    Raises:
        HostError: A compiler or tool is not installed.
        BuildError: A compiler does not tell its version.
    """
    by_cmake = variant.system == "cmake"
    if by_cmake:
        shell.require("ninja", package="ninja-build")
    shell.require("ccache", package="ccache")
    linker = "ld" if variant.linker == "default" else _LINKER_PROGRAM[variant.linker]
    versions = {
        "c_compiler": _version(variant.c_compiler, package="gcc"),
        "cxx_compiler": _version(variant.cxx_compiler, package="g++"),
        "cmake": _version("cmake", package="cmake") if by_cmake else _cmake_if_there(),
        "linker": _version(linker, package=variant.linker),
    }
    text = "\n".join(f"{name}={value}" for name, value in sorted(versions.items()))
    return Toolchain(**versions, digest=hashlib.sha256(text.encode()).hexdigest()[:16])


def _version(program: str, *, package: str) -> str:
    done = shell.run([shell.require(program, package=package), "--version"], timeout_s=30)
    first = done.stdout.strip().splitlines()
    if not done.ok or not first:
        raise BuildError("configure", f"{program} --version failed", done.stderr)
    return first[0][:200]


def _cmake_if_there() -> str:
    """Return CMake's version: a list of commands may call it, and need not."""
    there = shutil.which("cmake") is not None
    return _version("cmake", package="cmake") if there else "not installed"


def _commands(variant: BuildVariant, jobs: int) -> tuple[Step, ...]:
    """Return the variant's own commands, each begun in the source folder."""
    values = {
        "{source}": str(SOURCE),
        "{build}": str(BUILD),
        "{prefix}": str(PREFIX),
        "{jobs}": str(jobs),
    }
    steps = []
    for number, command in enumerate(variant.commands, start=1):
        words = [_filled(word, values) for word in command]
        shown = " ".join(words)
        shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
        steps.append(
            Step(
                stage="build",
                argv=["env", f"--chdir={SOURCE}", "--", *words],
                words=f"command {number} of {len(variant.commands)}: {shown}",
            )
        )
    return tuple(steps)


def _filled(word: str, values: Mapping[str, str]) -> str:
    """Return a word with its placeholders filled in; other braces are the command's own."""
    for placeholder, value in values.items():
        word = word.replace(placeholder, value)
    return word


def _environment(variant: BuildVariant) -> dict[str, str]:
    """Return what configure, make and meson read: compilers behind ccache, and chosen flags.

    A flag variable takes the place of the project's own choice, -O2 included, so one is set only
    where the plan has flags.
    """
    masks = [folder for folder in _MASQUERADE if folder.is_dir()]
    found = {"PATH": ":".join([*map(str, masks), _PATH])}
    for name, compiler in (("CC", variant.c_compiler), ("CXX", variant.cxx_compiler)):
        masked = any((folder / compiler).exists() for folder in masks)
        found[name] = compiler if masked else f"ccache {compiler}"
    for name, flags in (("CFLAGS", variant.c_flags), ("CXXFLAGS", variant.cxx_flags)):
        if flags:
            found[name] = " ".join(flags)
    if variant.linker != "default":
        found["LDFLAGS"] = _LINKER_FLAG[variant.linker]
    return found


def _option(name: str, value: str | float | bool) -> str:  # noqa: FBT001  a value, not a flag
    if isinstance(value, bool):
        value = "ON" if value else "OFF"
    return f"-D{name}={value}"


def _configure(variant: BuildVariant) -> list[str]:
    options: dict[str, str | int | float | bool] = {
        "CMAKE_INSTALL_PREFIX": str(PREFIX),
        "CMAKE_C_COMPILER": variant.c_compiler,
        "CMAKE_CXX_COMPILER": variant.cxx_compiler,
        "CMAKE_C_COMPILER_LAUNCHER": "ccache",
        "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
    }
    if variant.c_flags:
        options["CMAKE_C_FLAGS"] = " ".join(variant.c_flags)
    if variant.cxx_flags:
        options["CMAKE_CXX_FLAGS"] = " ".join(variant.cxx_flags)
    if variant.linker != "default":
        for kind in ("EXE", "SHARED", "MODULE"):
            options[f"CMAKE_{kind}_LINKER_FLAGS"] = _LINKER_FLAG[variant.linker]
    options |= variant.cmake_options
    words = [_option(name, value) for name, value in options.items()]
    return ["cmake", "-G", "Ninja", "-S", "source", "-B", "build", *words]


def _build(variant: BuildVariant, jobs: int) -> list[str]:
    return ["cmake", "--build", "build", "--parallel", str(jobs), "--target", *variant.targets]


def _installs(variant: BuildVariant) -> Sequence[list[str]]:
    words = ["cmake", "--install", "build"]
    if not variant.install_components:
        return [words]
    return [[*words, "--component", name] for name in variant.install_components]

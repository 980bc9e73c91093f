"""Build variants of a plan: how one commit becomes an artifact, or which folder is one already.

Values only, and what contradicts itself in them. How they are carried out is the runner's matter
(`runner/build_systems.py`, `runner/prebuilt.py`).
"""

from __future__ import annotations

import difflib
import re
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from workloads.plan_values import (
    AbsolutePath,
    Argument,
    Key,
    OptionName,
    OptionValue,
    RelativePath,
    Table,
)

#: The measured program below the prefix, by engine, where a build variant does not name it. For an
#: engine that is a library it is the benchmark program, which no install rule of its own installs.
SERVERS: Final = {
    "mariadb": "bin/mariadbd",
    "mysql": "bin/mysqld",
    "postgres": "bin/postgres",
    "rocksdb": "bin/db_bench",
    "leveldb": "bin/db_bench",
}
#: What stands in a command for a folder or a number that only the runner knows.
PLACEHOLDERS: Final = ("source", "build", "prefix", "jobs")
#: Configure, make, install, and a few more; hundreds would be a script, which a fork can carry.
COMMANDS_MAX: Final = 50

System = Literal["cmake", "command", "prebuilt"]
Command = Annotated[tuple[Argument, ...], Field(min_length=1, max_length=1000)]

#: Keys that one build system understands and the others do not.
_ONLY_FOR: Final[dict[str, tuple[str, ...]]] = {
    "cmake_options": ("cmake",),
    "targets": ("cmake",),
    "install_components": ("cmake",),
    "commands": ("command",),
    "prefix": ("prebuilt",),
    "loader": ("prebuilt",),
    "library_paths": ("prebuilt",),
    "c_compiler": ("cmake", "command"),
    "cxx_compiler": ("cmake", "command"),
    "c_flags": ("cmake", "command"),
    "cxx_flags": ("cmake", "command"),
    "linker": ("cmake", "command"),
    "build_minutes_max": ("cmake", "command"),
}
_IN_BRACES: Final = re.compile(r"(?<!\$)\{([a-z]+)\}")


class BuildVariant(Table):
    """A named way to an artifact: a build system with its options, compiler and flags."""

    joined_later: ClassVar[frozenset[str]] = frozenset(
        {"system", "commands", "prefix", "loader", "library_paths"}
    )

    system: System = Field(
        default="cmake",
        description="`cmake`, `command` (a list of commands) or `prebuilt` (a folder).",
    )
    cmake_options: dict[OptionName, OptionValue] = Field(
        default_factory=dict, description="Options of CMake, without -D."
    )
    commands: tuple[Command, ...] = Field(
        default=(),
        max_length=COMMANDS_MAX,
        description="Commands of system `command`, each a list of words, run in the source folder.",
    )
    prefix: AbsolutePath | None = Field(
        default=None, description="Folder of this host that system `prebuilt` takes as it is."
    )
    loader: RelativePath | None = Field(
        default=None,
        description="Dynamic loader inside the artifact that the server is started with.",
    )
    library_paths: tuple[RelativePath, ...] = Field(
        default=(), description="Folders inside the artifact where the loader looks."
    )
    c_compiler: RelativePath = Field(default="gcc", description="Compiler of C.")
    cxx_compiler: RelativePath = Field(default="g++", description="Compiler of C++.")
    c_flags: tuple[Argument, ...] = Field(default=(), description="Flags of the C compiler.")
    cxx_flags: tuple[Argument, ...] = Field(default=(), description="Flags of the C++ compiler.")
    linker: Literal["default", "mold", "lld", "gold"] = Field(
        default="default", description="Linker that the compilers call."
    )
    targets: tuple[Key, ...] = Field(default=("all",), description="Build targets of CMake.")
    install_components: tuple[Key, ...] = Field(
        default=(), description="CMake install components; empty installs everything."
    )
    server: RelativePath = Field(
        default="bin/mariadbd",
        description="The measured program, relative to the install prefix; by engine where not "
        "set.",
    )
    install_db: RelativePath | None = Field(
        default=None,
        description="Script that makes a data directory, relative to the install prefix; "
        "the system's where not set.",
    )
    build_minutes_max: Annotated[int, Field(ge=1, le=24 * 60)] = Field(
        default=120, description="A build that takes longer has failed."
    )

    @property
    def is_prebuilt(self) -> bool:
        """Whether it is a folder, and belongs to no commit."""
        return self.system == "prebuilt"

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> BuildVariant:
        faults = [*self._foreign_keys(), *self._missing_keys(), *self._odd_words()]
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _foreign_keys(self) -> list[str]:
        """Name what was written down for another build system than the chosen one."""
        found = []
        for key in sorted(self.model_fields_set):
            systems = _ONLY_FOR.get(key, (self.system,))
            if self.system not in systems:
                meant = " or ".join(f'"{name}"' for name in systems)
                found.append(f'{key} needs system = {meant}, and this one is "{self.system}"')
        return found

    def _missing_keys(self) -> list[str]:
        if self.system == "command" and not self.commands:
            example = '[["./configure", "--prefix={prefix}"], ["make", "-j{jobs}", "install"]]'
            return [f'system = "command" needs commands, such as {example}']
        if self.system == "prebuilt" and self.prefix is None:
            return ['system = "prebuilt" needs prefix, the absolute path of an installed tree']
        if self.library_paths and self.loader is None:
            return ["library_paths needs loader, the program that looks there"]
        return []

    def _odd_words(self) -> list[str]:
        """Name what looks like a misspelt placeholder; other braces are the command's own."""
        words = (word for command in self.commands for word in command)
        names = {name for word in words for name in _IN_BRACES.findall(word)}
        return [
            f"commands: unknown placeholder {{{name}}}; did you mean {{{near[0]}}}?"
            for name in sorted(names - set(PLACEHOLDERS))
            if (near := difflib.get_close_matches(name, PLACEHOLDERS, n=1, cutoff=0.7))
        ]

"""Servers to run from trees that somebody else installed: the system's, or make engines'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from results.document import Artifact, Toolchain
from runner.artifacts import Installed
from runner.servers.engine import ServerSpec

#: Debian's own PostgreSQL, the newest.
POSTGRES = sorted(
    Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3])
)
ROCKSDB_PLUGIN = Path("/usr/lib/mysql/plugin/ha_rocksdb.so")
TOOLCHAIN = Toolchain(
    c_compiler="unknown", cxx_compiler="unknown", cmake="unknown", linker="unknown", digest="-"
)


def spec_of(
    engine: str, folder: Path, program: str, *, version: str = "", **chosen: Any
) -> ServerSpec:
    """Return what runs a program of an installed tree."""
    facts = Artifact(
        id="installed",
        variant="installed",
        tree="0" * 40,
        toolchain=TOOLCHAIN,
        content_hash="installed",
        installed_bytes=0,
        build_seconds=0,
        cached=True,
        server_version=version,
    )
    return ServerSpec(
        **{
            "engine": engine,
            "installed": Installed(facts=facts, folder=folder),
            "program": program,
            "install_db": None,
            "options": {},
            **chosen,
        }
    )


def described(folder: Path) -> ServerSpec:
    """Return what runs a tree that make engines has unpacked and described."""
    facts = json.loads((folder / "engine.json").read_text())
    return spec_of(
        facts["engine"],
        folder,
        facts["server"],
        version=f"Ver {facts['version']}",
        install_db=facts["install_db"],
        loader=facts["loader"],
        library_paths=tuple(facts["library_paths"]),
    )


def script(path: Path, text: str) -> None:
    """Write a program that the sandbox can run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)

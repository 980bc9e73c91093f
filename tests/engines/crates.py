"""RocksDB's releases out of crates, as commits of one git repository.

Cargo finds the registry, checks the digest and keeps what it has fetched; each release becomes a
commit with a tag and a plan, so that `forkwatch compare v8.1.1 v8.6.7` builds both as it builds
every fork.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Final

from runner import checkout, shell
from tests.engines.wanted import CRATE, NotHadError, Release
from workloads.plan import PLAN_FILE, parse_plan

_CARGO_TIMEOUT_S: Final = 900
_PARTS: Final = ("MAJOR", "MINOR", "PATCH")
_WHO: Final = ("-c", "user.name=make engines", "-c", "user.email=engines@example.com")
#: The plan for any fork of RocksDB; releases get it with one more question.
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "rocksdb.toml"
_LTO: Final = """
# What does link-time optimisation bring? Archives of what is not compiled yet need gcc's own tools.
[builds.rel_lto]
system = "command"
c_flags = ["-flto=auto"]
cxx_flags = ["-flto=auto"]
commands = {commands}

[matrices.lto]
builds = ["rel", "rel_lto"]
configs = ["byrx"]
"""
_LTO_TOOLS: Final = ("-DCMAKE_AR=/usr/bin/gcc-ar", "-DCMAKE_RANLIB=/usr/bin/gcc-ranlib")


def plan_text() -> str:
    """Return the plan that every release gets."""
    example = EXAMPLE.read_text(encoding="utf-8")
    configure, *others = parse_plan(example).builds["rel"].commands
    commands = json.dumps([[*configure, *_LTO_TOOLS], *others])
    text = example + _LTO.format(commands=commands)
    parse_plan(text)
    return text


def commit(release: Release, repository: Path) -> None:
    """Add a release to the repository as a commit with a tag, unless it is there.

    Raises:
        NotHadError: It cannot be had, or git refuses.
    """
    tag = f"v{release.version}"
    if not (repository / ".git").is_dir():
        repository.mkdir(parents=True, exist_ok=True)
        _git(repository, "init", "--quiet", "--initial-branch=main")
    if checkout.git(repository, "rev-parse", "--verify", "--quiet", f"refs/tags/{tag}").ok:
        return
    source = _source(release)
    for path in repository.iterdir():
        if path.name == ".git":
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.copytree(source, repository, symlinks=True, dirs_exist_ok=True)
    (repository / PLAN_FILE).write_text(plan_text())
    # Forced: a crate may carry files that its own ignore list names.
    _git(repository, "add", "--all", "--force")
    _git(repository, "commit", "--quiet", "--message", f"RocksDB {release.version}")
    _git(repository, "tag", tag)


def _source(release: Release) -> Path:
    """Return cargo's folder of the release's source."""
    shell.require("cargo", package="cargo")
    project = Path(shell.run(["mktemp", "--directory"], timeout_s=10).stdout.strip())
    try:
        (project / "src").mkdir()
        (project / "src" / "lib.rs").write_text("")
        (project / "Cargo.toml").write_text(
            '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n'
            f'{CRATE} = {{ version = "={release.crate}", default-features = false }}\n'
        )
        words = ["cargo", "metadata", "--quiet", "--format-version", "1"]
        words += ["--manifest-path", str(project / "Cargo.toml")]
        done = shell.run(words, timeout_s=_CARGO_TIMEOUT_S)
    finally:
        shutil.rmtree(project, ignore_errors=True)
    if not done.ok:
        said = done.stderr.strip().splitlines()
        raise NotHadError(f"cargo has no {CRATE} {release.crate}: {said[0] if said else 'timeout'}")
    packages = json.loads(done.stdout)["packages"]
    (manifest,) = (one["manifest_path"] for one in packages if one["name"] == CRATE)
    source = Path(manifest).parent / "rocksdb"
    found = version_of(source)
    if found != release.version:
        raise NotHadError(f"{CRATE} {release.crate} carries {found or 'no source tree'}")
    return source


def version_of(source: Path) -> str:
    """Return the version that a source tree's own header tells; empty where there is none."""
    header = source / "include" / "rocksdb" / "version.h"
    text = header.read_text(encoding="utf-8") if header.is_file() else ""
    parts = [re.search(rf"define ROCKSDB_{part}\s+(\d+)", text) for part in _PARTS]
    return ".".join(part.group(1) for part in parts if part)


def _git(repository: Path, *words: str) -> None:
    done = checkout.git(repository, *_WHO, *words)
    if not done.ok:
        raise NotHadError(f"git {words[0]}: {done.stderr.strip()[:300]}")

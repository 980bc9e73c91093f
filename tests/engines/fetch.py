"""Fetching real engines: the program behind `make engines`.

Names come in (all of them where none is given); out go installed trees below `.forkwatch/engines`,
each with `engine.json`, a plan for each engine beside them, and RocksDB's releases as a repository.
What cannot be had is said, and the rest goes on. Nothing of it is ever committed.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
from functools import partial
from pathlib import Path
from tarfile import TarError
from typing import TYPE_CHECKING, Final
from zipfile import BadZipFile

from runner import locks, shell
from runner.errors import RunnerError
from tests.engines import crates, jars, plans, prefixes, suites
from tests.engines.wanted import RELEASES, WANTED, Jar, NotHadError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.engines.wanted import Release, Wanted

ROOT: Final = Path(__file__).parents[2] / ".forkwatch"
ROCKSDB: Final = "rocksdb"


def main(arguments: Sequence[str]) -> int:
    """Fetch, print a line for each, and return 0 unless nothing is there in the end."""
    choices = [*(one.name for one in WANTED), ROCKSDB]
    parser = argparse.ArgumentParser(prog="make engines", description="Fetch real engines.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(choices))
    parser.add_argument("--into", type=Path, default=ROOT / "engines", help="Folder of the trees.")
    parser.add_argument("--again", action="store_true", help="Unpack what is there once more.")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(choices))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(choices)}")
    if platform.machine() != "x86_64":
        print("make engines: the registries carry these engines for x86-64 only")
        return 1
    into = given.into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    names = given.names or choices
    with locks.exclusive(into / ".lock"):
        for one in WANTED:
            if one.name in names:
                _say(one.name, partial(_tree, one, into, again=given.again))
        if ROCKSDB in names:
            for release in RELEASES:
                name = f"{ROCKSDB} {release.version}"
                _say(name, partial(_release, release, into.parent / ROCKSDB))
        written = write_plans(into)
    return 0 if written or (into.parent / ROCKSDB).is_dir() else 1


def _say(name: str, fetch: Callable[[], str]) -> None:
    """Print what came of one."""
    try:
        found = fetch()
    except (NotHadError, RunnerError, OSError, TarError, BadZipFile) as error:
        found = f"not had: {error}"
    print(f"{name:16} {found}", flush=True)


def _tree(wanted: Wanted, into: Path, *, again: bool) -> str:
    """Fetch, unpack and describe one engine; return what is there now."""
    prefix = into / wanted.name
    facts = prefixes.known(prefix)
    if facts is not None and not again:
        return f"{facts['engine']} {facts['version']}, there already"
    shutil.rmtree(prefix, ignore_errors=True)
    cache = into.parent / "fetched"
    try:
        if isinstance(wanted.source, Jar):
            jars.unpack(wanted.source, prefix, cache=cache)
        else:
            suites.unpack(wanted.source, prefix, cache=cache)
        # For the sandbox's user, who is nobody's owner.
        shell.run(["chmod", "--recursive", "go=u-w", str(prefix)], timeout_s=60)
        facts = prefixes.describe(wanted, prefix)
    except BaseException:
        shutil.rmtree(prefix, ignore_errors=True)
        raise
    return f"{facts['engine']} {facts['version']}, fetched"


def _release(release: Release, repository: Path) -> str:
    crates.commit(release, repository)
    return f"the tag v{release.version} of {repository}"


def write_plans(into: Path) -> list[Path]:
    """Write a plan for each engine of which something is there; return their paths."""
    written = []
    for engine in dict.fromkeys(one.engine for one in WANTED):
        trees = {}
        for one in WANTED:
            facts = prefixes.known(into / one.name) if one.engine == engine else None
            if facts is not None:
                trees[one.name] = (into / one.name, facts)
        if trees:
            path = into / f"{engine}.toml"
            path.write_text(plans.plan_text(engine, trees))
            print(f"{path}: {', '.join(trees)}")
            written.append(path)
    return written


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

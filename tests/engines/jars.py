"""Installed trees out of jars, by Maven's own client.

Maven finds the registry, checks the digest and keeps what it has fetched; this unpacks the one
archive inside that is for Linux on x86-64, or the jar itself where it holds the tree as files.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import zipfile
from typing import TYPE_CHECKING, Final

from runner import shell
from tests.engines.wanted import Jar, NotHadError

if TYPE_CHECKING:
    from pathlib import Path

_MAVEN_TIMEOUT_S: Final = 900
_ARCHIVE: Final = re.compile(r"\.(tar\.gz|tgz|txz|tar\.xz)$")
#: Says that an archive is for another machine.
_FOREIGN: Final = re.compile(r"(?i)mac|osx|darwin|windows|win64|arm|aarch|i386|musl|alpine")
PROGRAMS: Final = ("mariadbd", "mysqld", "postgres")


def unpack(jar: Jar, into: Path, *, cache: Path) -> None:
    """Fetch a jar and leave its installed tree in the new folder `into`.

    Raises:
        NotHadError: It cannot be had, or holds no tree.
    """
    with zipfile.ZipFile(_fetch(jar, cache)) as opened:
        names = opened.namelist()
        archives = [name for name in names if _ARCHIVE.search(name) and not _FOREIGN.search(name)]
        folder = into.with_suffix(".unpacking")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            if archives:
                with opened.open(archives[0]) as packed, tarfile.open(fileobj=packed) as tar:
                    tar.extractall(folder, filter=_inside)
            else:
                opened.extractall(folder)
            root = _root(folder)
            for part in ("bin", "scripts"):
                for program in (root / part).glob("*"):
                    # A jar has no rights.
                    program.chmod(0o755)
            root.rename(into)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _inside(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Let a member through that stays in its folder: no devices, no odd rights, no way out."""
    try:
        return tarfile.data_filter(member, folder)
    except (tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError):
        # To where it was on the machine of whoever packed it.
        return None


def _fetch(jar: Jar, cache: Path) -> Path:
    shell.require("mvn", package="maven")
    ready = cache / "jars" / f"{jar.artifact}-{jar.version}.jar"
    if ready.exists():
        return ready
    repository = cache / "m2"
    words = ["mvn", "--batch-mode", "--quiet", "--strict-checksums"]
    words += [f"-Dmaven.repo.local={repository}", "dependency:get"]
    words += [f"-Dartifact={jar.coordinates}", "-Dtransitive=false"]
    done = shell.run(words, timeout_s=_MAVEN_TIMEOUT_S)
    folders = (*jar.group.split("."), jar.artifact, jar.version)
    fetched = repository.joinpath(*folders) / ready.name
    if not done.ok or not fetched.exists():
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise NotHadError(f"Maven has no {jar.coordinates}: {said[0][:300] if said else 'timeout'}")
    ready.parent.mkdir(parents=True, exist_ok=True)
    fetched.rename(ready)
    return ready


def _root(folder: Path) -> Path:
    """Return the folder that has a server program in its `bin`."""
    for name in PROGRAMS:
        for program in sorted(folder.rglob(f"bin/{name}")):
            return program.parent.parent
    raise NotHadError("the jar holds no bin/mysqld, bin/mariadbd or bin/postgres")

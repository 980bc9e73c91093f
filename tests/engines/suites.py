"""Installed trees out of packages of newer Debian suites, by apt and dpkg.

The system's own sources say where packages come from and by which keys they are signed; only the
suite is another. apt works on folders of its own and believes that nothing is installed, so that it
fetches the whole closure, C library included; the tree then runs beside the system's.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import shell
from tests.engines.wanted import NotHadError

if TYPE_CHECKING:
    from tests.engines.wanted import Packages

SYSTEM_LISTS: Final = Path("/etc/apt")
_APT_TIMEOUT_S: Final = 900
#: Folders of the top that a merged system keeps below /usr; made first, so that packages which
#: still name the old places unpack into the new ones.
_MERGED: Final = ("bin", "sbin", "lib", "lib64")
#: Not read by any server.
_LEFT_OUT: Final = ("doc", "info", "lintian", "locale", "man")


def unpack(packages: Packages, into: Path, *, cache: Path) -> None:
    """Fetch packages with all they need and leave the tree in the new folder `into`.

    Raises:
        NotHadError: apt cannot have them, or a package does not unpack.
    """
    folder = cache / "apt" / packages.suite
    apt = _private_apt(folder, packages.suite)
    words = [*apt, "apt-get", "--yes", "--no-install-recommends", "--download-only", "install"]
    for step in ([*apt, "apt-get", "update"], [*words, *packages.names]):
        done = shell.run(step, timeout_s=_APT_TIMEOUT_S)
        if not done.ok:
            said = (done.stdout + done.stderr).strip().splitlines()
            raise NotHadError(f"apt: {said[-1][:300] if said else 'no answer in time'}")
    tree = into.with_suffix(".unpacking")
    shutil.rmtree(tree, ignore_errors=True)
    for name in _MERGED:
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    for package in sorted((folder / "cache" / "archives").glob("*.deb")):
        done = shell.run(["dpkg-deb", "--extract", str(package), str(tree)], timeout_s=300)
        if not done.ok:
            raise NotHadError(f"{package.name} does not unpack: {done.stderr.strip()[:300]}")
    _tidy(tree)
    tree.rename(into)


def other_suite(text: str, suite: str) -> str:
    """Return the part of a .sources file that names the distribution itself, for another suite.

    Updates and security are left out: other suites have none of that name.
    """
    kept = []
    for stanza in re.split(r"\n\s*\n", text):
        suites = re.search(r"(?m)^Suites:(.*)$", stanza)
        own = [name for name in suites.group(1).split() if "-" not in name] if suites else []
        if own and "debian" in stanza.lower():
            plain = re.sub(r"(?m)^#.*\n", "", stanza)
            kept.append(re.sub(r"(?m)^Suites:.*$", f"Suites: {suite}", plain).strip())
    return "\n\n".join(kept[:1]) + "\n" if kept else ""


def other_suite_of_lines(text: str, suite: str) -> str:
    """Return the first line of a .list file that names the distribution itself, for another suite.

    A line is `deb [options] address suite component...`.
    """
    for line in text.splitlines():
        match = re.match(r"(deb\s+(?:\[[^\]]*\]\s+)?\S+)\s+([a-z]+)\s+(\S.*)$", line)
        if match and "debian" in line.lower():
            return f"{match.group(1)} {suite} {match.group(3)}\n"
    return ""


def _private_apt(folder: Path, suite: str) -> list[str]:
    """Return the words that make an apt program work inside `folder` on another suite."""
    sources = folder / "sources"
    for name in ("sources", "state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").write_text("")
    found = False
    for path in sorted(SYSTEM_LISTS.glob("sources.list.d/*.sources")):
        text = other_suite(path.read_text(), suite)
        if text:
            (sources / "suite.sources").write_text(text)
            found = True
    for path in [
        SYSTEM_LISTS / "sources.list",
        *sorted(SYSTEM_LISTS.glob("sources.list.d/*.list")),
    ]:
        text = other_suite_of_lines(path.read_text(), suite) if path.exists() else ""
        if text and not found:
            (sources / "suite.list").write_text(text)
            found = True
    if not found:
        raise NotHadError("this system's package sources name no Debian archive")
    config = folder / "apt.conf"
    config.write_text(
        'Dir::Etc::sourcelist "/dev/null";\n'
        f'Dir::Etc::sourceparts "{sources}";\n'
        f'Dir::State "{folder}/state";\n'
        f'Dir::State::lists "{folder}/state/lists";\n'
        f'Dir::State::status "{folder}/status";\n'
        f'Dir::Cache "{folder}/cache";\n'
        f'Dir::Cache::archives "{folder}/cache/archives";\n'
        'APT::Sandbox::User "root";\n'
    )
    return ["env", f"APT_CONFIG={config}"]


def _tidy(tree: Path) -> None:
    """Leave what a program reads: /usr and the links into it, none of which leads outside."""
    for path in tree.iterdir():
        if path.name not in {"usr", *_MERGED}:
            shutil.rmtree(path, ignore_errors=True)
    for name in _LEFT_OUT:
        shutil.rmtree(tree / "usr/share" / name, ignore_errors=True)
    for path in list(tree.rglob("*")):
        if path.is_symlink():
            straighten(path, tree)


def straighten(link: Path, tree: Path) -> None:
    """Make a link relative that is absolute inside its tree; remove one that leads nowhere."""
    text = os.readlink(link)  # noqa: PTH115  the text, which Path would tidy
    target = tree / text.lstrip("/") if text.startswith("/") else link.parent / text
    if not target.exists() or not target.resolve().is_relative_to(tree.resolve()):
        link.unlink()
        return
    # From where the link really lies, or dots would lead astray behind another link.
    relative = os.path.relpath(target.resolve(), link.parent.resolve())
    link.unlink()
    link.symlink_to(relative)

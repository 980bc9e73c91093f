"""MariaDB's source, from the distribution's own archive.

The system's list of package sources goes in, a tar file of MariaDB's release comes out, downloaded
once and kept. apt checks signatures and digests as it does for any package; it works on folders of
its own, so the system's package lists stay as they are.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from runner import shell

#: The release that the expectations of this test were measured with.
PREFERRED = "1:10.11.18-0+deb12u1"
SYSTEM_LISTS = Path("/etc/apt")
_APT_TIMEOUT_S = 1200


class SourceError(Exception):
    """The distribution's archive did not hand out MariaDB's source."""


def obtain_source(folder: Path, *, lists: Path = SYSTEM_LISTS) -> Path:
    """Return the tar file of a MariaDB 10.11 release, downloaded into `folder` unless it is there.

    Raises:
        SourceError: No version could be downloaded; carries what apt said.
    """
    ready = _find(folder)
    if ready is not None:
        return ready
    apt = _private_apt(folder, lists)
    updated = shell.run([*apt, "apt-get", "update"], timeout_s=_APT_TIMEOUT_S)
    said = [updated.stdout + updated.stderr]
    for version in _versions(apt):
        words = [*apt, "apt-get", "source", "--download-only", f"mariadb={version}"]
        said.append(shell.run(words, timeout_s=_APT_TIMEOUT_S, cwd=folder).stderr)
        # Archives drop the packaging of superseded versions sooner than the release itself, so
        # apt may fail after it has fetched and checked the one file that is needed.
        ready = _find(folder)
        if ready is not None:
            return ready
    raise SourceError("no MariaDB source:\n" + "\n".join(said)[-4000:])


def version_of(tar: Path) -> str:
    """Return the release that a source's file name tells, such as 10.11.18."""
    return tar.name.removeprefix("mariadb_").partition(".orig.")[0]


def deb822_sources(text: str) -> str:
    """Return the stanzas of a .sources file, asking for source packages instead."""
    return re.sub(r"(?m)^Types:.*$", "Types: deb-src", text)


def one_line_sources(text: str) -> str:
    """Return the `deb` lines of a .list file, asking for source packages instead."""
    lines = [line for line in text.splitlines() if line.startswith("deb ")]
    return "".join(f"deb-src {line.removeprefix('deb ')}\n" for line in lines)


def _find(folder: Path) -> Path | None:
    # While it downloads, apt keeps a file under partial/ or with another ending.
    return next(iter(sorted(folder.glob("mariadb_10.11.*.orig.tar.gz"), reverse=True)), None)


def _private_apt(folder: Path, lists: Path) -> list[str]:
    """Return the words that make an apt program work inside `folder` on source packages."""
    sources = folder / "apt" / "sources"
    for name in ("sources", "lists/partial", "cache/archives/partial"):
        (folder / "apt" / name).mkdir(parents=True, exist_ok=True)
    for path in sorted(lists.glob("sources.list.d/*.sources")):
        (sources / path.name).write_text(deb822_sources(path.read_text()))
    for path in [lists / "sources.list", *sorted(lists.glob("sources.list.d/*.list"))]:
        if path.exists():
            (sources / path.with_suffix(".list").name).write_text(
                one_line_sources(path.read_text())
            )
    config = folder / "apt" / "apt.conf"
    config.write_text(
        'Dir::Etc::sourcelist "/dev/null";\n'
        f'Dir::Etc::sourceparts "{sources}";\n'
        f'Dir::State::lists "{folder}/apt/lists";\n'
        f'Dir::Cache "{folder}/apt/cache";\n'
        'APT::Sandbox::User "root";\n'
    )
    return ["env", f"APT_CONFIG={config}"]


def _versions(apt: list[str]) -> list[str]:
    """Return versions of MariaDB 10.11 on offer: the preferred one, then newest first."""
    words = [*apt, "apt-cache", "showsrc", "--only-source", "mariadb"]
    shown = shell.run(words, timeout_s=_APT_TIMEOUT_S).stdout
    found = dict.fromkeys(re.findall(r"(?m)^Version: (\S*\b10\.11\.\S+)$", shown))
    newest_first = sorted(found, key=functools.cmp_to_key(_order), reverse=True)
    return sorted(newest_first, key=lambda version: version != PREFERRED)


def _order(one: str, other: str) -> int:
    """Compare two versions as Debian does."""
    if one == other:
        return 0
    words = ["dpkg", "--compare-versions", one, "gt", other]
    return 1 if shell.run(words, timeout_s=30).ok else -1

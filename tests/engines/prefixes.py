"""What an unpacked tree is: which programs it has, whether they start, and which version they tell.

A folder comes in, `engine.json` at its top goes out; a tree whose server does not start is no use
to anybody and raises NotHadError with what it said.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from runner import shell
from runner.prebuilt import FACTS
from runner.sandbox import INSIDE, Bind, Sandbox
from tests.engines.wanted import NotHadError, Packages, Wanted

if TYPE_CHECKING:
    from pathlib import Path

#: Programs by engine, the newest name first.
_SERVERS: Final = {
    "mysql": ("mysqld",),
    "mariadb": ("mariadbd", "mysqld"),
    "postgres": ("postgres",),
}
_INSTALL_DB: Final = ("mariadb-install-db", "mysql_install_db")
#: Packages first: in an unpacked tree the short ones are links, and what lies beside is below usr.
_PROGRAM_FOLDERS: Final = ("usr/sbin", "usr/bin", "bin", "sbin", "scripts")
#: Where a tree that came with its C library keeps the loader, and libraries besides those that the
#: loader knows of itself.
_LOADER: Final = "usr/lib64/ld-linux-x86-64.so.2"
_LIBRARIES: Final = ("usr/lib/x86_64-linux-gnu", "usr/lib/mysql/private")


def describe(wanted: Wanted, prefix: Path) -> dict[str, Any]:
    """Write what the tree is into it, and return that.

    Raises:
        NotHadError: It has no server, or one that does not start or is another version.
    """
    server = _first(prefix, _SERVERS[wanted.engine])
    if server is None:
        raise NotHadError(f"the tree has no {' or '.join(_SERVERS[wanted.engine])}")
    packed = isinstance(wanted.source, Packages)
    facts: dict[str, Any] = {
        "name": wanted.name,
        "engine": wanted.engine,
        "server": server,
        "install_db": _first(prefix, _INSTALL_DB) if wanted.engine == "mariadb" else None,
        "loader": _LOADER if packed else None,
        "library_paths": [path for path in _LIBRARIES if packed and (prefix / path).is_dir()],
    }
    facts["version"] = _version(wanted, prefix, facts)
    (prefix / FACTS).write_text(json.dumps(facts, indent=2) + "\n")
    return facts


def known(prefix: Path) -> dict[str, Any] | None:
    """Return what a tree says it is, if it was described."""
    path = prefix / FACTS
    found: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    return found


def _first(prefix: Path, names: tuple[str, ...]) -> str | None:
    for name in names:
        for folder in _PROGRAM_FOLDERS:
            if (prefix / folder / name).is_file():
                return f"{folder}/{name}"
    return None


def _version(wanted: Wanted, prefix: Path, facts: dict[str, Any]) -> str:
    inside = INSIDE / "artifact"
    words = [str(inside / facts["server"]), "--version"]
    if facts["loader"]:
        libraries = ":".join(str(inside / path) for path in facts["library_paths"])
        words = [str(inside / facts["loader"]), "--library-path", libraries, *words]
    done = Sandbox(binds=(Bind(host=prefix, inside="artifact"),)).run(words, timeout_s=60)
    said = shell.readable(done.stdout + done.stderr).strip()
    if not done.ok:
        last = said.splitlines()[-1] if said else f"status {done.returncode}"
        raise NotHadError(f"{facts['server']} does not start here: {last[:300]}")
    found = re.search(rf"(?<![\d.]){re.escape(wanted.version)}(?:\.\d+)*(?!\d)", said)
    if found is None:
        raise NotHadError(f"{facts['server']} is another version: {said[:200]}")
    return found.group(0)

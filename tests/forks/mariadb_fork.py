"""A fork of the real MariaDB with one real slowdown in its history.

The tar file of a release goes in, a git repository with a plan and seven commits comes out. The
slow commit does what MySQL 8.0.29 did: a check of every record's fields, on the scan path, that the
compiler does not inline.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from runner import shell

BRANCH = "main"
_START = "storage/innobase/srv/srv0start.cc"
_SELECT = "storage/innobase/row/row0sel.cc"
_GIT_TIMEOUT_S = 1800
_HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One replacement in one file; `before` occurs there exactly once."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class MariadbFork:
    """The fork on disk and what is true about its commits, first one first."""

    repository: Path
    commits: tuple[str, ...]
    docs_only: str
    broken: str
    slow: str


@dataclass(frozen=True, kw_only=True)
class LongBranch:
    """A branch to be bisected, the good end first."""

    commits: tuple[str, ...]
    slow: str


#: Which commits of the long branch do what. The good end is number 0.
SLOW = 14
BROKEN = (6, 17)
#: The file that each of them touches, from number 1 on; documentation and tools among them.
_TOUCHED = (
    "sql/sql_show.cc",
    "storage/innobase/fil/fil0crypt.cc",
    "README.md",
    "sql/slave.cc",
    "storage/maria/ma_check.c",
    "sql/log.cc",
    "storage/innobase/fts/fts0fts.cc",
    _SELECT,
    "CREDITS",
    "sql/sql_acl.cc",
    "client/mysqlslap.c",
    "storage/myisam/mi_check.c",
    "sql/item_strfunc.cc",
    _SELECT,
    "sql/sql_parse.cc",
    "storage/innobase/srv/srv0start.cc",
    "sql/sql_table.cc",
    _SELECT,
    "sql/rpl_rli.cc",
    "CONTRIBUTING.md",
    "sql/sql_trigger.cc",
    "storage/innobase/dict/dict0load.cc",
    "sql/event_scheduler.cc",
)


_NEUTRAL = Edit(
    path=_START,
    before='ib::info() << "Compressed tables use zlib " ZLIB_VERSION',
    after='ib::info() << "Compressed tables are written by zlib " ZLIB_VERSION',
)
_DOCS = Edit(
    path="README.md",
    before="## MariaDB: The innovative open source database",
    after="## A fork of MariaDB: The innovative open source database",
)
_BROKEN = Edit(
    path=_START,
    before='"Compressed tables are written by zlib " ZLIB_VERSION',
    after='"Compressed tables are written by zlib " << zlib_release',
)
_REPAIR = Edit(path=_START, before="<< zlib_release", after="<< ZLIB_VERSION")
_LAST = Edit(
    path=_START,
    before='"InnoDB: Started in read only mode"',
    after='"InnoDB: Started in read-only mode"',
)
_BEFORE_CHECK = """\
/** Convert a row in the Innobase format to a row in the MySQL format.
Note that the template in prebuilt"""
_BEFORE_STORE = (
    "\t\tif (!row_sel_store_mysql_field(mysql_rec, prebuilt,\n"
    "\t\t\t\t\t       rec, index, offsets,\n"
    "\t\t\t\t\t       field_no, templ)) {\n"
)
_BEFORE_PREFETCH = "\t/* Decide whether to prefetch extra rows.\n"


_DOES_NOT_COMPILE = "#error planted\n"
#: What the slow commit adds beside the check itself: a call for each record that a scan returns.
_CHECK_CALL = Edit(
    path=_SELECT,
    before=_BEFORE_PREFETCH,
    after="\trow_sel_validate_fields(offsets);\n\n" + _BEFORE_PREFETCH,
)
#: The same for three fields: all six of sysbench's table took 10 % of a scan, too easy to find.
_LIGHT_CALL = Edit(
    path=_SELECT,
    before=_BEFORE_PREFETCH,
    after="\tfor (ulint n = 0; n < 3 && n < rec_offs_n_fields(offsets); n++) {\n"
    "\t\trow_sel_validate_field(offsets, n, 0);\n\t}\n\n" + _BEFORE_PREFETCH,
)


def make_mariadb_fork(tar: Path, folder: Path) -> MariadbFork:
    """Return the fork, newly made in `folder` from the release in `tar`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _must(["tar", "--extract", f"--file={tar}", "--strip-components=1", f"--directory={folder}"])
    shutil.copyfile(_HERE / "mariadb.toml", folder / "forkwatch.toml")
    _git(folder, "init", "--quiet", f"--initial-branch={BRANCH}")
    history: list[tuple[str, tuple[Edit, ...]]] = [
        ("Import the release", ()),
        ("Say what zlib is used for", (_NEUTRAL,)),
        ("Say that this is a fork", (_DOCS,)),
        ("Print the zlib that runs, not the one we were built with", (_BROKEN,)),
        ("Repair the build: the name is not declared here", (_REPAIR,)),
        (
            "Validate the fields of every record that is read",
            (
                _check_edit(),
                Edit(
                    path=_SELECT,
                    before=_BEFORE_STORE,
                    after="\t\trow_sel_validate_field(offsets, field_no, 0);\n" + _BEFORE_STORE,
                ),
                _CHECK_CALL,
            ),
        ),
        ("Spell read-only as the manual does", (_LAST,)),
    ]
    commits = [
        _commit(folder, day=day, message=message, edits=edits)
        for day, (message, edits) in enumerate(history, start=1)
    ]
    return MariadbFork(
        repository=folder,
        commits=tuple(commits),
        docs_only=commits[2],
        broken=commits[3],
        slow=commits[5],
    )


def make_long_branch(fork: MariadbFork) -> LongBranch:
    """Return a branch of 24 commits from the release on, made anew.

    Each changes one source file without a meaning; a few touch documentation or a client's program
    alone, two do not compile and are repaired by the next, and one has a part of the slow commit's
    check: once a record.
    """
    _git(fork.repository, "checkout", "--quiet", "--force", "-B", "long", fork.commits[0])
    commits = [fork.commits[0]]
    for number, name in enumerate(_TOUCHED, start=1):
        path = fork.repository / name
        edits: tuple[Edit, ...] = ()
        if number - 1 in BROKEN:
            repaired = _TOUCHED[number - 2]
            edits = (Edit(path=repaired, before=_DOES_NOT_COMPILE, after=""),)
        if number == SLOW:
            edits = (*edits, _check_edit(), _LIGHT_CALL)
            message = "Validate some fields of every record that a scan returns"
        else:
            _append(path, number)
            message = f"Change number {number}: {path.name}"
        commits.append(_commit(fork.repository, day=number, message=message, edits=edits))
    return LongBranch(commits=tuple(commits), slow=commits[SLOW])


def _append(path: Path, number: int) -> None:
    """Add to a file what changes it and does nothing; what does not compile, where planned."""
    assert path.exists(), f"the release has no {path}"
    text = f"\nChange {number}.\n"
    if path.suffix in {".c", ".cc"}:
        text = f'\n__attribute__((used)) static const char change_{number}[]= "{number}";\n'
    if number in BROKEN:
        text += _DOES_NOT_COMPILE
    with path.open("a") as file:
        file.write(text)


def _check_edit() -> Edit:
    """Return what adds the functions that check a record."""
    check = (_HERE / "validate_fields.cc").read_text()
    return Edit(path=_SELECT, before=_BEFORE_CHECK, after=f"{check}\n{_BEFORE_CHECK}")


def _commit(folder: Path, *, day: int, message: str, edits: tuple[Edit, ...]) -> str:
    """Apply the edits, commit everything, and return the commit's hash."""
    for edit in edits:
        path = folder / edit.path
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        assert text.count(edit.before) == 1, f"{edit.path} has changed: {edit.before!r}"
        path.write_text(
            text.replace(edit.before, edit.after), encoding="utf-8", errors="surrogateescape"
        )
    # The release holds files that its own ignore lists name.
    _git(folder, "add", "--all", "--force")
    date = f"2026-04-{day:02d}T10:00:00+0000"
    _git(
        folder,
        "commit",
        "--quiet",
        f"--message={message}",
        environment=(f"GIT_AUTHOR_DATE={date}", f"GIT_COMMITTER_DATE={date}"),
    )
    return _git(folder, "rev-parse", "HEAD").strip()


def _git(folder: Path, *words: str, environment: tuple[str, ...] = ()) -> str:
    settings = {
        "user.name": "Demo Maintainer",
        "user.email": "maintainer@demo.example",
        "safe.directory": "*",
        "core.autocrlf": "false",
        # 600 MB go in once: speed matters, size does not.
        "core.compression": "1",
        "gc.auto": "0",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return _must(["env", *environment, "git", *options, "-C", str(folder), *words])


def _must(words: list[str]) -> str:
    done = shell.run(words, timeout_s=_GIT_TIMEOUT_S)
    assert done.ok, done.stdout + done.stderr
    return done.stdout

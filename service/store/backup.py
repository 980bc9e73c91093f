"""Backups of SQLite databases: one file that is consistent though others write meanwhile.

Files of databases come in, one archive with a manifest goes out, and the other way round. Every
copy is checked before it counts. What the databases are for is not known here, but for the revision
of the schema in the manifest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from service.core.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

MANIFEST_FILE: Final = "manifest.json"
#: Ours has a few hundred bytes.
_MANIFEST_BYTES_MAX: Final = 64 * 1024
#: How long a copy waits for a writer that holds the whole database.
_PATIENCE_SECONDS: Final = 60
_READ_BYTES: Final = 1024 * 1024
#: What SQLite keeps beside a database while it is open, or after a crash.
BESIDE: Final = ("", "-wal", "-shm", "-journal")


class BackupError(ServiceError):
    """A backup cannot be made or restored; the message says what to do."""


class CopyFacts(BaseModel):
    """One database in a backup."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size_bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Manifest(BaseModel):
    """What a backup says of itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["forkwatch.backup"] = "forkwatch.backup"
    version: Literal[1] = 1
    made_at: AwareDatetime
    #: Revision of the schema of the service's data.
    revision: str
    databases: dict[str, CopyFacts]


def write_backup(sources: Mapping[str, Path], file: Path, *, at: datetime) -> Manifest:
    """Copy databases into one new file, in the order given, and return what is in it.

    Args:
        sources: Databases by the name that they have in the backup; the last one has the schema.
        file: Does not exist yet; its owner alone will be able to read it.
        at: Now.

    Raises:
        BackupError: There is no such database, no space, or a copy is not whole.
    """
    _check_places(sources, file)
    with _folder_beside(file) as folder:
        facts = {}
        for name, source in sources.items():
            copy_database(source, folder / name)
            check_copy(folder / name)
            facts[name] = _facts(folder / name)
        manifest = Manifest(
            made_at=at, revision=revision_of(folder / list(sources)[-1]), databases=facts
        )
        (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2))
        archive = folder / "archive"
        with tarfile.open(archive, "w") as tar:
            for name in (MANIFEST_FILE, *sources):
                tar.add(folder / name, arcname=name, recursive=False)
        _sync(archive)
        archive.chmod(0o600)
        archive.replace(file)
    return manifest


@contextmanager
def read_backup(
    file: Path, targets: Mapping[str, Path]
) -> Iterator[tuple[Manifest, dict[str, Path]]]:
    """Give the manifest of a backup and checked copies of its databases, each beside its target.

    Raises:
        BackupError: It is no backup, not whole, or lacks one of the databases.
    """
    copies: dict[str, Path] = {}
    try:
        with _opened(file) as tar:
            manifest = _manifest(tar, file)
            missing = sorted(set(targets) - set(manifest.databases))
            if missing:
                raise BackupError(f"{file} has no {missing[0]}; take another backup")
            for name, target in targets.items():
                copies[name] = _extract(tar, name, beside=target)
                if _facts(copies[name]) != manifest.databases[name]:
                    raise BackupError(f"{file}: {name} is damaged; take another backup")
                check_copy(copies[name])
        yield manifest, copies
    finally:
        for copy in copies.values():
            copy.unlink(missing_ok=True)


def copy_database(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment, though others write to it.

    Raises:
        BackupError: It cannot be read.
    """
    address = f"file:{quote(str(source))}?mode=rw"
    try:
        with (
            closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE_SECONDS)) as live,
            closing(sqlite3.connect(target)) as copy,
        ):
            # All pages at once: in parts, each write of somebody else would begin it anew.
            live.backup(copy)
            # A copy is one file, with nothing beside it.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise BackupError(f"{source} cannot be copied: {error}") from error


def check_copy(copy: Path) -> None:
    """Return quietly if a database is whole.

    Raises:
        BackupError: It is not.
    """
    try:
        with closing(sqlite3.connect(copy)) as database:
            found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(5)")]
    except sqlite3.Error as error:
        found = [str(error)]
    if found != ["ok"]:
        raise BackupError(f"{copy.name} is not whole: {'; '.join(found)}")


def revision_of(copy: Path) -> str:
    """Return the revision of the schema in a database of the service.

    Raises:
        BackupError: It has none.
    """
    try:
        with closing(sqlite3.connect(copy)) as database:
            rows = database.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.Error:
        rows = []
    if len(rows) != 1:
        raise BackupError(
            f"{copy.name} has no tables of forkwatch; `forkwatch db upgrade` makes them"
        )
    return str(rows[0][0])


def put_aside(databases: list[Path], folder: Path) -> None:
    """Move databases, with all that SQLite keeps beside them, into a new folder."""
    folder.mkdir(mode=0o700)
    for database in databases:
        for suffix in BESIDE:
            found = database.with_name(database.name + suffix)
            if found.exists():
                shutil.move(found, folder / found.name)


def _check_places(sources: Mapping[str, Path], file: Path) -> None:
    if file.exists():
        raise BackupError(f"{file} is there already; name a new file")
    if not file.parent.is_dir():
        raise BackupError(f"there is no folder {file.parent}; make it")
    for source in sources.values():
        if not source.is_file():
            raise BackupError(f"there is no database {source}; is this the home of the service?")
    # The copies, and the archive of them.
    needed = 2 * sum(source.stat().st_size for source in sources.values())
    free = shutil.disk_usage(file.parent).free
    if free < needed:
        raise BackupError(
            f"{file.parent} has {free:,} bytes left and the backup takes {needed:,} for a while; "
            "name a file on another disk"
        )


@contextmanager
def _folder_beside(file: Path) -> Iterator[Path]:
    """Give a folder of our own on the disk of a file, gone at the end."""
    try:
        folder = Path(tempfile.mkdtemp(dir=file.parent, prefix=".forkwatch-backup-"))
    except OSError as error:
        raise BackupError(f"{file.parent} cannot be written: {error.strerror}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, "r:") as tar:
            yield tar
    except tarfile.TarError as error:
        raise BackupError(f"{file} is no backup of forkwatch: {error}") from error
    except OSError as error:
        raise BackupError(f"{file} cannot be read: {error.strerror or error}") from error


def _manifest(tar: tarfile.TarFile, file: Path) -> Manifest:
    try:
        member = tar.getmember(MANIFEST_FILE)
        stream = tar.extractfile(member)
        text = stream.read(_MANIFEST_BYTES_MAX) if stream else b""
        return Manifest.model_validate_json(text)
    except (KeyError, ValidationError) as error:
        raise BackupError(f"{file} is no backup of forkwatch: its manifest is missing") from error


def _extract(tar: tarfile.TarFile, name: str, *, beside: Path) -> Path:
    """Copy one member into a new file; nothing of the archive says where."""
    try:
        stream = tar.extractfile(name)
    except KeyError:
        stream = None
    if stream is None:
        raise BackupError(f"the backup has no {name}; take another one")
    handle, found = tempfile.mkstemp(dir=beside.parent, prefix=f".{beside.name}-")
    path = Path(found)
    try:
        with stream, os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(stream, copy, _READ_BYTES)
            copy.flush()
            os.fsync(copy.fileno())
    except BaseException:
        path.unlink()
        raise
    return path


def _facts(path: Path) -> CopyFacts:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return CopyFacts(size_bytes=path.stat().st_size, sha256=digest)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())

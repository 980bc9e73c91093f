"""The folder of a job: its order, a lock, a file per complete start, and at last the document.

The lock is held while someone works on it. A killed runner loses at most the start under way: the
next one goes on from the files, each of which is on the disk when a call returns. What a crash or a
power cut left half-written is set aside and said, never believed and never a reason to fail. Starts
of another host or placement are set aside as well: one run is one host.
"""

from __future__ import annotations

import fcntl
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from results.document import Outcome, Placement, RunDocument, Start
from results.job import DOCUMENT_FILE, LOCK_FILE, ORDER_FILE, JobOrder
from runner.errors import OperatorError
from runner.host.storage import sync_folder, why_not_written, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STARTS: Final = "starts"
CONDITIONS: Final = "conditions.json"
#: Between the name of what must not be used any more and what makes it unique.
ASIDE: Final = ".aside-"

_Kept = TypeVar("_Kept", bound=BaseModel)


class Conditions(BaseModel):
    """What all starts of one job have in common, whoever measured them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Digest of the host's fingerprint.
    fingerprint: str
    placement: Placement


def read_order(folder: Path) -> JobOrder:
    """Return the order in a job's folder.

    Raises:
        OperatorError: There is none, or it is not one this version understands.
    """
    try:
        return JobOrder.model_validate_json((folder / ORDER_FILE).read_text())
    except FileNotFoundError:
        raise OperatorError(f"{folder} has no {ORDER_FILE}") from None
    except ValueError as error:
        raise OperatorError(f"{folder / ORDER_FILE} is not a job order: {error}") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the job's lock; the service sees by it that someone is at work.

    Raises:
        OperatorError: Another runner holds it.
    """
    with (folder / LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatorError(f"another runner works on {folder}") from None
        yield


def read_document(folder: Path) -> RunDocument | None:
    """Return the document of a job that is done, or None."""
    return _read(folder / DOCUMENT_FILE, RunDocument)


def owes_explanation(order: JobOrder, document: RunDocument) -> bool:
    """Whether a pair that was measured is to be explained now, and was not before."""
    measured = document.outcome is Outcome.MEASURED and document.baseline is not None
    return bool(order.explain_minutes) and measured and document.explanation is None


def write_document(folder: Path, document: RunDocument) -> None:
    """Write the document: the job is done.

    Raises:
        OperatorError: The disk is full or broken.
    """
    _write(folder / DOCUMENT_FILE, document)


def read_start(folder: Path, index: int) -> Start | None:
    """Return a start that was measured before, or None."""
    return _read(_start_path(folder, index), Start)


def write_start(folder: Path, start: Start) -> None:
    """Write a complete start.

    Raises:
        OperatorError: The disk is full or broken.
    """
    _write(_start_path(folder, start.index), start)


def agree(folder: Path, now: Conditions) -> None:
    """Set the starts aside that were measured under other conditions than these.

    Raises:
        OperatorError: The disk is full or broken.
    """
    before = _read(folder / CONDITIONS, Conditions)
    if before == now:
        return
    if before is not None and any((folder / STARTS).glob("*.json")):
        _set_aside(folder / STARTS)
    _write(folder / CONDITIONS, now)


def notes(folder: Path) -> tuple[str, ...]:
    """Return what a reader of the results should know: what was set aside, and why."""
    found = []
    for path in sorted(folder.glob(f"{STARTS}{ASIDE}*")):
        count = len(list(path.glob("*.json")))
        found.append(
            f"{count} starts from before an interruption are not used: they were measured on "
            "another host or placement (`forkwatch host fingerprint` says what changed)"
        )
    spoilt = sorted([*folder.glob(f"*.json{ASIDE}*"), *folder.glob(f"{STARTS}/*.json{ASIDE}*")])
    for path in spoilt:
        name = path.relative_to(folder).as_posix().partition(ASIDE)[0]
        found.append(f"a crash had left {name} unreadable; it was made again")
    return tuple(found)


def _start_path(folder: Path, index: int) -> Path:
    return folder / STARTS / f"{index:04}.json"


def _read(path: Path, kind: type[_Kept]) -> _Kept | None:
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        _set_aside(path)
        return None


def _set_aside(path: Path) -> None:
    """Rename what must not be used and may yet be looked at."""
    path.rename(path.with_name(f"{path.name}{ASIDE}{secrets.token_hex(4)}"))
    sync_folder(path.parent)


def _write(path: Path, value: BaseModel) -> None:
    try:
        write_whole(path, value.model_dump_json())
    except OSError as error:
        raise OperatorError(
            f"{why_not_written(path, error)}; make room, and the same command goes on from the "
            "last complete start"
        ) from error

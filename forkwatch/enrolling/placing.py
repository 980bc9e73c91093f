"""Placing: an enrolment's files put below a root, listed there, and taken away again.

Wanted files and a root folder go in; what was done goes out. What lies in the way is never replaced
unless somebody says so, and then it is kept and put back. The list is on the disk before the first
file, so that whatever was written can be taken away.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from forkwatch.enrolling.enrolment import CONFIG, System
from forkwatch.errors import EnrolError
from runner.host.storage import remove, sync_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkwatch.enrolling.enrolment import Enrolment
    from forkwatch.enrolling.wanted import WantedFile

LIST: Final = CONFIG / "enrolment.json"
#: Ends the name of what lay where a file of ours had to go.
KEPT: Final = ".before-forkwatch"


class Standing(StrEnum):
    """How a wanted file stands to what is there."""

    NEW = "new"
    #: It is there as wanted.
    SAME = "same"
    #: An earlier enrolment wrote what is there.
    OURS = "ours"
    #: Somebody else wrote or changed what is there.
    FOREIGN = "foreign"


class Placed(BaseModel):
    """One file that was written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    sha256: str
    #: Whether something else lay there, and is kept beside it.
    kept: bool = False


class Placement(BaseModel):
    """What an enrolment has written, and what it was for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["forkwatch.enrolment"] = "forkwatch.enrolment"
    version: Literal[1] = 1
    system: System
    host_class: str
    unit: str
    user: str
    home: Path
    files: tuple[Placed, ...]
    #: Folders that were made for them, outermost first.
    folders: tuple[Path, ...]


def below(root: Path, path: Path) -> Path:
    """Return where an absolute path lies below a root."""
    return root / path.relative_to("/")


def read(root: Path) -> Placement | None:
    """Return what is enrolled below a root, or None.

    Raises:
        EnrolError: The list is there and not readable.
    """
    path = below(root, LIST)
    try:
        return Placement.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise EnrolError(f"{path} is not readable; remove by hand what it names: {error}") from None


def standing(root: Path, files: Sequence[WantedFile]) -> dict[Path, Standing]:
    """Return how each wanted file stands to what is there.

    Raises:
        EnrolError: The list of an earlier enrolment is not readable.
    """
    earlier = read(root)
    known = {one.path: one.sha256 for one in earlier.files} if earlier else {}
    return {one.path: _standing(below(root, one.path), one, known.get(one.path)) for one in files}


def _standing(path: Path, wanted: WantedFile, known: str | None) -> Standing:
    if not path.exists() and not path.is_symlink():
        return Standing.NEW
    if path.is_symlink() or not path.is_file():
        return Standing.FOREIGN
    there = _hash(path.read_bytes())
    if there == _hash(wanted.text.encode()):
        return Standing.SAME
    return Standing.OURS if there == known else Standing.FOREIGN


def place(
    root: Path, enrolment: Enrolment, files: Sequence[WantedFile], *, overwrite: bool
) -> dict[Path, Standing]:
    """Write every file below `root`; return how each stood to what was there.

    Raises:
        EnrolError: Something of somebody else's is in the way, or the host is another system's.
        OSError: A file could not be written.
    """
    found, earlier = standing(root, files), read(root)
    if earlier is not None and earlier.system is not enrolment.system:
        raise EnrolError(
            f"this host is enrolled for {earlier.system}; `forkwatch host retire --apply` first"
        )
    foreign = [path for path, state in found.items() if state is Standing.FOREIGN]
    if foreign and not overwrite:
        raise EnrolError(
            f"{foreign[0]} is there and not ours ({len(foreign)} in all): --overwrite keeps it as "
            f"{foreign[0].name}{KEPT} until the host is retired"
        )
    known = {one.path: one for one in earlier.files} if earlier else {}
    kept = {path for path, one in known.items() if one.kept}
    for path in foreign:
        if _aside(root, path).exists():
            raise EnrolError(f"{path} was changed; {path.name}{KEPT} is there: move one of them")
    # What lay there as wanted before us is somebody else's, and stays when the host is retired.
    ours = [one for one in files if found[one.path] is not Standing.SAME or one.path in known]
    _write_list(root, enrolment, ours, earlier, kept | set(foreign))
    for one in ours:
        path = below(root, one.path)
        if one.path in foreign:
            path.rename(_aside(root, one.path))
        write_whole(path, one.text)
        path.chmod(one.mode)
    for path in known.keys() - found.keys():
        _take_away(root, known[path])
    return found


def _write_list(
    root: Path,
    enrolment: Enrolment,
    files: Sequence[WantedFile],
    earlier: Placement | None,
    kept: set[Path],
) -> None:
    made = list(earlier.folders) if earlier else []
    for one in (LIST, *(file.path for file in files)):
        missing = [path for path in one.parents if not below(root, path).exists()]
        made += [path for path in reversed(missing) if path not in made]
    written = Placement(
        system=enrolment.system,
        host_class=enrolment.host_class,
        unit=enrolment.unit,
        user=enrolment.user,
        home=enrolment.home,
        files=tuple(
            Placed(path=one.path, sha256=_hash(one.text.encode()), kept=one.path in kept)
            for one in files
        ),
        folders=tuple(made),
    )
    write_whole(below(root, LIST), written.model_dump_json(indent=2) + "\n")


def take_away(root: Path) -> tuple[Sequence[Path], Sequence[Path]]:
    """Remove exactly what was written; return what went, and what stays because it was changed.

    What had lain in the way is put back. Folders go that were made for it and are empty.

    Raises:
        EnrolError: Nothing is enrolled here.
        OSError: A file could not be removed.
    """
    placed = read(root)
    if placed is None:
        raise EnrolError("this host is not enrolled: there is nothing to take away")
    gone: list[Path] = []
    stay: list[Path] = []
    for one in placed.files:
        (gone if _take_away(root, one) else stay).append(one.path)
    remove(below(root, LIST))
    for folder in sorted(placed.folders, key=lambda path: len(path.parts), reverse=True):
        path = below(root, folder)
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    return gone, stay


def _take_away(root: Path, one: Placed) -> bool:
    """Remove a file unless somebody changed it; whether it is away."""
    path = below(root, one.path)
    if path.is_file() and not path.is_symlink() and _hash(path.read_bytes()) == one.sha256:
        remove(path)
    if path.exists() or path.is_symlink():
        return False
    before = _aside(root, one.path)
    if one.kept and before.exists():
        before.rename(path)
        sync_folder(path.parent)
    return True


def _aside(root: Path, path: Path) -> Path:
    """Return where what lies in the way of a file is kept."""
    there = below(root, path)
    return there.with_name(there.name + KEPT)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

"""Tuning: set the knobs as a benchmark wants them, and put back exactly what was there.

The values found are written to a journal, and made last on the disk, before anything is changed.
So a tuning that was killed half-way, was done twice, or had a reboot in between can be undone: what
a place held first is what it gets back. The journal goes away once nothing is left to restore.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict

from runner.errors import HostError
from runner.host.knobs import KNOBS, Knob
from runner.host.storage import remove, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from runner.host.machine import Machine

JOURNAL: Final = "tuning.json"


class Entry(BaseModel):
    """One place with the value it had before we first changed it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    knob: str
    place: str
    earlier: str
    wanted: str
    #: The boot in which the earlier value was seen.
    boot: str


class _Journal(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Step:
    """One place that tuning changes, or would change."""

    knob: str
    place: str
    now: str
    wanted: str
    #: Why it could not be set; empty where it was, or was only planned.
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What became of one recorded place."""

    knob: str
    place: str
    earlier: str
    #: In words, what was done.
    said: str
    #: False where the earlier value is not back and should be; it stays in the journal.
    ok: bool


def plan(machine: Machine, *, knobs: Sequence[Knob] = KNOBS) -> Sequence[Step]:
    """Return what tuning would change, changing nothing."""
    return [
        Step(knob=knob.name, place=place, now=knob.value(machine, place), wanted=wanted)
        for knob in knobs
        for place, wanted in knob.off_target(machine).items()
    ]


def tune(machine: Machine, folder: Path, *, knobs: Sequence[Knob] = KNOBS) -> Sequence[Step]:
    """Set every knob as wanted and return what was changed, and what refused.

    Raises:
        HostError: The journal in `folder` cannot be read, or another tuning is under way.
    """
    with _locked(folder):
        entries = _read(folder)
        steps = plan(machine, knobs=knobs)
        kept = _with_first_values(entries, steps, boot=machine.boot())
        if kept != entries:
            _write(folder, kept)
        by_name = {knob.name: knob for knob in knobs}
        return [_set(machine, by_name[step.knob], step) for step in steps]


def reset(machine: Machine, folder: Path, *, knobs: Sequence[Knob] = KNOBS) -> Sequence[Restored]:
    """Put back every recorded value and return what became of each; empty if none is recorded.

    Raises:
        HostError: The journal in `folder` cannot be read, or another tuning is under way.
    """
    with _locked(folder):
        entries = _read(folder)
        by_name = {knob.name: knob for knob in knobs}
        done: list[Restored] = []
        left: list[Entry] = []
        # Last changed, first restored: the places of one knob may hang on another.
        for entry in reversed(entries):
            done.append(_restore(machine, by_name.get(entry.knob), entry))
            if not done[-1].ok:
                left.insert(0, entry)
        if left:
            _write(folder, left)
        elif entries:
            remove(folder / JOURNAL)
        return done


def recorded(folder: Path) -> Sequence[Entry]:
    """Return what tuning has changed and reset would put back.

    Raises:
        HostError: The journal cannot be read.
    """
    return _read(folder)


def _with_first_values(
    entries: Sequence[Entry], steps: Sequence[Step], *, boot: str
) -> Sequence[Entry]:
    """Return the journal with the steps added; a value seen earlier in this boot stays."""
    known = {entry.place: entry for entry in entries}
    for step in steps:
        entry = known.get(step.place)
        if entry is None or entry.boot != boot:
            # A reboot has put its own value there: that one is now the earlier one.
            known[step.place] = Entry(
                knob=step.knob, place=step.place, earlier=step.now, wanted=step.wanted, boot=boot
            )
    return list(known.values())


def _set(machine: Machine, knob: Knob, step: Step) -> Step:
    try:
        knob.write(machine, step.place, step.wanted)
        found = knob.value(machine, step.place)
        fault = "" if found == step.wanted else f"it still is {found or 'unreadable'}"
    except OSError as error:
        fault = error.strerror or str(error)
    return Step(knob=step.knob, place=step.place, now=step.now, wanted=step.wanted, fault=fault)


def _restore(machine: Machine, knob: Knob | None, entry: Entry) -> Restored:
    said, ok = _put_back(machine, knob, entry)
    return Restored(knob=entry.knob, place=entry.place, earlier=entry.earlier, said=said, ok=ok)


def _put_back(machine: Machine, knob: Knob | None, entry: Entry) -> tuple[str, bool]:
    """Return what was done about one entry, and whether that settles it."""
    if knob is None:
        return "this version knows no such knob", False
    now = knob.value(machine, entry.place)
    settled = _settled(entry, now, rebooted=entry.boot != machine.boot())
    if settled:
        return settled, True
    try:
        knob.write(machine, entry.place, entry.earlier)
    except OSError as error:
        return f"not restored: {error.strerror or error}", False
    found = knob.value(machine, entry.place)
    if found != entry.earlier:
        return f"not restored: it still is {found or 'unreadable'}", False
    touched = "" if now == entry.wanted else f"; somebody had made it {now or 'unreadable'}"
    return f"restored{touched}", True


def _settled(entry: Entry, now: str, *, rebooted: bool) -> str:
    """Return why nothing is left to do about an entry; empty where something is."""
    if now == entry.earlier:
        return "already as it was"
    if rebooted and not now:
        return "gone since the reboot"
    if rebooted and now != entry.wanted:
        return f"the reboot made it {now}; left alone"
    return ""


def _read(folder: Path) -> Sequence[Entry]:
    path = folder / JOURNAL
    try:
        return list(_Journal.model_validate_json(path.read_text()).entries)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise HostError(
            f"{path} cannot be read ({error}); it holds the values from before tuning: "
            "repair it, or move it away and restart the machine"
        ) from error


def _write(folder: Path, entries: Sequence[Entry]) -> None:
    write_whole(folder / JOURNAL, _Journal(entries=tuple(entries)).model_dump_json(indent=2))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{JOURNAL}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError(f"another tuning works with {folder / JOURNAL}; wait for it") from None
        yield

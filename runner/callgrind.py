"""Dumps of callgrind: how many instructions each function took, by itself and with its callees.

A folder or the lines of a dump come in, counts by function go out. Dumps are written where hostile
code runs: a file may be anything, a name is only text, and a number is only a number.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from runner import shell
from runner.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: What `--callgrind-out-file` has to name; a dump for each thread adds a dash and its number.
DUMP: Final = "callgrind.out"
_DUMP_NAME: Final = re.compile(r"callgrind\.out-([0-9]{1,5})")
#: MariaDB's dumps, one for each thread, have 0.9 MB at the most, and there are 14 of them.
_DUMP_BYTES_MAX: Final = 32 * 1024**2
_DUMPS_MAX: Final = 128
NAME_LENGTH_MAX: Final = 200
#: Read of a name before its arguments are cut off; templates have long ones.
_SIGNATURE_LENGTH_MAX: Final = 4000
#: Lines of a dump (valgrind manual, "Callgrind Format Specification"): a cost behind its position,
#: a function, an object, and a call, whose next line is the callee's cost and not the caller's.
_COST: Final = re.compile(r"(?:[+-]?[0-9]+|\*) ([0-9]{1,18})")
_NAMED: Final = re.compile(r"(fn|cfn|ob|cob)=\(([0-9]+)\)(?: (.*))?")
#: What may stand behind the arguments in a demangled name.
_BEHIND: Final = re.compile(r"(?: const| volatile| &{1,2}| \[clone [^\]]{0,100}\])+$")
_ADDRESS: Final = re.compile(r"0x[0-9a-f]+")

#: A function's name and the file name of the object that it is in.
_Function = tuple[str, str]


class NoCountsError(ServerError):
    """callgrind counted nothing: the server was killed, or did nothing of what was asked for."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Instructions of one thread by function."""

    #: Without what a function called.
    own: Mapping[str, int]
    #: With all that it called. Code without a name has none: many functions are one name there.
    with_callees: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Instructions of the thread."""
        return sum(self.own.values())


def read_dumps(folder: Path) -> dict[int, Costs]:
    """Return the costs by thread of what callgrind wrote into a folder of hostile code.

    Raises:
        NoCountsError: There is no dump, or there are no counts in it.
        ServerError: It is no dump of callgrind.
    """
    found: dict[int, Costs] = {}
    names = sorted(entry.name for entry in os.scandir(folder) if _DUMP_NAME.fullmatch(entry.name))
    for name in names[:_DUMPS_MAX]:
        found[int(name.rpartition("-")[2])] = costs(_lines(folder / name))
    if not any(thread.total for thread in found.values()):
        raise NoCountsError("measure", "callgrind left no counts; the server may have been killed")
    return found


def _lines(path: Path) -> Iterator[str]:
    """Give the lines of a file that may be anything: no link, no pipe, no more than so much."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ServerError("measure", f"the dump of callgrind cannot be read: {error}") from error
    with open(descriptor, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ServerError("measure", "the dump of callgrind is no file")
        if os.fstat(descriptor).st_size > _DUMP_BYTES_MAX:
            raise ServerError("measure", "the dump of callgrind is too large to be one")
        yield from file


@dataclass(kw_only=True)
class _Graph:
    """Own costs of functions, and what each spent in its calls of each other."""

    own: dict[_Function, int] = field(default_factory=dict)
    calls: dict[tuple[_Function, _Function], int] = field(default_factory=dict)


def costs(lines: Iterable[str]) -> Costs:
    """Return each function's instructions in one dump."""
    graph = _read(lines)
    own: dict[str, int] = {}
    for function, count in graph.own.items():
        name = _shown(function)
        own[name] = own.get(name, 0) + count
    whole: dict[str, int] = {}
    for function, count in _with_callees(graph).items():
        if not _is_nameless(function):
            whole[function[0]] = whole.get(function[0], 0) + count
    return Costs(own=own, with_callees=whole)


def _read(lines: Iterable[str]) -> _Graph:
    graph = _Graph()
    names: dict[tuple[str, str], str] = {}
    place = callee_place = ""
    function: _Function = ("", "")
    callee: _Function = ("", "")
    is_call = False
    for line in lines:
        named = _NAMED.match(line)
        cost = _COST.fullmatch(line.rstrip())
        if named:
            kind, number, name = named.groups()
            key = (kind[-2:], number)
            if name is not None:
                said = shell.readable(name.strip())[:_SIGNATURE_LENGTH_MAX]
                names[key] = (_plain(said) if "fn" in kind else said)[:NAME_LENGTH_MAX]
            said = names.get(key, "")
            if kind == "ob":
                place = callee_place = Path(said).name
            elif kind == "cob":
                callee_place = Path(said).name
            elif kind == "fn":
                function = (said or "0x0", place)
            else:
                callee = (said or "0x0", callee_place)
        elif line.startswith("calls="):
            is_call = True
        elif cost and function[0]:
            count = int(cost.group(1))
            if is_call:
                edge = (function, callee)
                graph.calls[edge] = graph.calls.get(edge, 0) + count
                # A callee without an object of its own is in the caller's.
                callee_place = place
            else:
                graph.own[function] = graph.own.get(function, 0) + count
            is_call = False
    return graph


def _plain(name: str) -> str:
    """Return a function's name without the recursion level that callgrind puts behind it."""
    return _without_arguments(name.partition("'")[0])


def _without_arguments(name: str) -> str:
    """Return a C++ name without what changes when nothing but a signature does.

    Overloads, and the copies that a compiler makes of one function, become one.
    """
    bare = _BEHIND.sub("", name)
    if not bare.endswith(")"):
        return name
    depth = 0
    for at in range(len(bare) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(bare[at], 0)
        if depth == 0:
            before = bare[:at]
            # `(below main)`, and `operator()` before its arguments were cut off by our limit.
            return name if not before or before.endswith("operator") else before
    return name


def _is_nameless(function: _Function) -> bool:
    return _ADDRESS.fullmatch(function[0]) is not None


def _shown(function: _Function) -> str:
    """Return a function's name; addresses differ from build to build, so they are only a place."""
    name, place = function
    if not _is_nameless(function):
        return name
    return f"(no symbol) in {place or 'an unknown object'}"[:NAME_LENGTH_MAX]


def _with_callees(graph: _Graph) -> dict[_Function, int]:
    """Return what each function spent, calls included, without counting recursion twice.

    What functions that call one another in a circle spent inside the circle is in several of their
    calls. None of them spent more than all own costs of the circle and all calls that leave it.
    """
    functions = sorted({*graph.own, *(function for edge in graph.calls for function in edge)})
    if not functions:
        return {}
    number = {function: index for index, function in enumerate(functions)}
    rows = [number[caller] for caller, _ in graph.calls]
    columns = [number[callee] for _, callee in graph.calls]
    shape = (len(functions), len(functions))
    matrix = coo_array(([1] * len(rows), (rows, columns)), shape=shape)
    _, labels = connected_components(matrix, directed=True, connection="strong")
    circle = {function: int(labels[index]) for function, index in number.items()}
    # Counts of a hostile dump fit no machine word, so they are added here and not in an array.
    alone = {function: graph.own.get(function, 0) for function in functions}
    together = dict.fromkeys(circle.values(), 0)
    for function, count in alone.items():
        together[circle[function]] += count
    for (caller, callee), count in graph.calls.items():
        if caller != callee:
            alone[caller] += count
        if circle[caller] != circle[callee]:
            together[circle[caller]] += count
    return {function: min(count, together[circle[function]]) for function, count in alone.items()}

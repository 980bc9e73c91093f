"""What every change-point peer answers in the same way: whole series, growing prefixes, seconds.

A request comes in as a JSON file, the answer goes out as one: hundreds of series in one process.
Runs inside a peer's own virtual environment, so it knows the standard library only; our side asks
our own detector through the same functions. It does not know what is scored.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: A detector under one setting: values in time order -> first points of new levels.
Detect = Callable[[list[float]], list[int]]

#: Shorter series have nothing to split; several peers fail on them.
POINTS_MIN = 4

#: Changes seen at one length of the growing series, kept when they differ from the last look.
Look = tuple[int, list[int]]


def looks(detect: Detect, values: list[float], *, first: int, until_alarm: bool) -> list[Look]:
    """Look after every commit, as users do: changes found on each prefix from `first` points on.

    Only looks that differ from the one before are kept; the list is empty when no prefix ever has
    a change. `until_alarm` ends at the first change, for series without any true one.
    """
    found: list[Look] = []
    before: list[int] = []
    for length in range(first, len(values) + 1):
        now = detect(values[:length])
        if now != before:
            found.append((length, now))
            before = now
        if now and until_alarm:
            break
    return found


def milliseconds(detect: Detect, series: list[list[float]], *, repeats: int) -> list[float]:
    """Fastest of `repeats` calls on each series, after one call that is not counted."""
    detect(series[0])
    fastest = []
    for values in series:
        times = []
        for _ in range(repeats):
            began = time.perf_counter()
            detect(values)
            times.append(1000.0 * (time.perf_counter() - began))
        fastest.append(min(times))
    return fastest


def answer(request: dict[str, Any], detect: Detect) -> dict[str, Any]:
    """Do what a request asks of one detector."""
    series: list[list[float]] = request["series"]
    began = time.perf_counter()
    kind = request["task"]
    found: list[Any]
    if kind == "changes":
        found = [detect(values) for values in series]
    elif kind == "looks":
        first, until = request["first"], request["until_alarm"]
        found = [looks(detect, values, first=first, until_alarm=until) for values in series]
    elif kind == "milliseconds":
        found = milliseconds(detect, series, repeats=request["repeats"])
    else:
        raise ValueError(f"no such task: {kind}")
    return {"found": found, "seconds": time.perf_counter() - began}


def serve(respond: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer the request whose path is the first argument into the path that is the second."""
    asked, told = (Path(word) for word in sys.argv[1:3])
    told.write_text(json.dumps(respond(json.loads(asked.read_text()))))

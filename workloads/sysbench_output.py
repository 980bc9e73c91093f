"""What sysbench printed somewhere else: text comes in, its summary goes out.

Reads sysbench 0.5, 1.0 and 1.1, with or without a histogram or reports by second. How forkwatch's
own clients are read is the runner's; it asks for more than other people's files have.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import Final

from workloads.errors import CatalogError

#: What only sysbench prints: its banner, or the head of its summary.
_MARK: Final = re.compile(r"^(?:sysbench \d+\.\d+|General statistics:)", re.MULTILINE)
_EVENTS: Final = re.compile(r"^\s*total number of events:\s+(\d{1,15})\s*$", re.MULTILINE)
#: 1.1 has `time elapsed` where the others have `total time`.
_SECONDS: Final = re.compile(r"^\s*(?:total time|time elapsed):\s+([\d.]+)s", re.MULTILINE)
_THREADS: Final = re.compile(r"^Number of threads:\s+(\d{1,6})\s*$", re.MULTILINE)
_REPORT: Final = re.compile(r"^\[\s*(\d{1,9})s ?\] thds: \d+ (?:tps|eps): ([\d.]+)", re.MULTILINE)
_LATENCY: Final = re.compile(r"^\s*(min|avg|max):\s+([\d.]+)(?:ms)?\s*$", re.MULTILINE)
_BUCKET: Final = re.compile(r"^\s*([\d.]+)\s+\|\**\s+(\d{1,15})\s*$", re.MULTILINE)
_FATAL: Final = re.compile(r"^(?:FATAL|ERROR): .*$", re.MULTILINE)
_REASON_LENGTH_MAX: Final = 200


class SysbenchOutputError(CatalogError):
    """This is not the output of a sysbench run that went well."""


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Latency in milliseconds, as far as a histogram tells it."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, kw_only=True)
class SysbenchOutput:
    """The summary of one run."""

    seconds: float
    operations: int
    #: Client threads; None where the output does not say.
    threads: int | None
    #: Empty where reports are missing or not of single seconds.
    per_second_ops_s: tuple[float, ...]
    #: By `min`, `avg` and `max`, in milliseconds; empty where they are not all there.
    latency_ms: dict[str, float]
    #: None without a histogram.
    percentiles_ms: Percentiles | None


def is_sysbench(text: str) -> bool:
    """Return whether a text says that it is of sysbench, whatever came of the run."""
    return _MARK.search(text) is not None


def read_output(text: str) -> SysbenchOutput:
    """Return the summary in what sysbench printed.

    Raises:
        SysbenchOutputError: It has none, or did no operation; quotes the first complaint.
    """
    events, seconds = _EVENTS.search(text), _SECONDS.search(text)
    if events is None or seconds is None:
        complaint = _FATAL.search(text)
        reason = complaint.group(0)[:_REASON_LENGTH_MAX] if complaint else "the run was cut short"
        raise SysbenchOutputError(f"no summary of a run: {reason}")
    operations, took = int(events.group(1)), _number(seconds.group(1))
    if operations == 0 or not took > 0:
        raise SysbenchOutputError("the run did no operation")
    threads = _THREADS.search(text)
    latency = {name: _number(value) for name, value in _LATENCY.findall(text)}
    return SysbenchOutput(
        seconds=took,
        operations=operations,
        threads=int(threads.group(1)) if threads else None,
        per_second_ops_s=_per_second(text),
        latency_ms=latency if len(latency) == 3 else {},  # noqa: PLR2004  all that it prints
        percentiles_ms=_percentiles(text),
    )


def _per_second(text: str) -> tuple[float, ...]:
    """Return the reports where they are of single seconds: others are averages of several."""
    found = [(int(second), _number(rate)) for second, rate in _REPORT.findall(text)]
    steps = {after - before for (before, _), (after, _) in itertools.pairwise(found)}
    return tuple(rate for _, rate in found) if steps == {1} else ()


def _percentiles(text: str) -> Percentiles | None:
    buckets = [(_number(value), int(count)) for value, count in _BUCKET.findall(text)]
    if not sum(count for _, count in buckets):
        return None
    p50, p95, p99 = (_percentile(buckets, share) for share in (0.50, 0.95, 0.99))
    return Percentiles(p50=p50, p95=p95, p99=p99)


def _percentile(buckets: list[tuple[float, int]], share: float) -> float:
    """Return the histogram's value below which this share of the operations lies."""
    total = sum(count for _, count in buckets)
    running = itertools.accumulate(count for _, count in buckets)
    return next(
        value for (value, _), seen in zip(buckets, running, strict=True) if seen >= share * total
    )


def _number(text: str) -> float:
    """Return a number as sysbench prints it.

    Raises:
        SysbenchOutputError: It is none, such as `1.2.3`.
    """
    try:
        number = float(text)
    except ValueError as error:
        raise SysbenchOutputError(f"{text[:40]!r} is no number") from error
    if not math.isfinite(number):
        raise SysbenchOutputError(f"{text[:40]!r} is no number that can be kept")
    return number

"""What db_bench printed: its text in, one measured result or the state of the tree out.

Three forms are understood: RocksDB's before and after mid-2022 (the second also prints seconds and
operations) and LevelDB's. Whoever printed it may be hostile, so numbers are plain and bounded, and
figures that contradict each other are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from results.slice import PER_SECOND_MAX, Latency
from workloads import db_bench_stats

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Printed by us between db_bench's output and its file of operations per second.
SECONDS_MARK: Final = "forkwatch: operations of each second"
#: A slice that ran for less of its time did not measure what was asked (RocksDB pull 9886: 0.05 s
#: of 60). db_bench looks at the clock every 1,000 operations and so never ends early.
TIME_SHARE_MIN: Final = 0.9
#: Every key is in the database, so reads that miss are reads of another one.
FOUND_SHARE_MIN: Final = 0.99

_NUMBER: Final = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)"
_LINE: Final = re.compile(
    r"^(?P<name>[a-z0-9]{1,40}) *: +(?P<micros>[0-9]{1,15}\.[0-9]{3}) micros/op"
    r"(?: (?P<ops_s>[0-9]{1,15}) ops/sec"
    r"(?: (?P<seconds>[0-9]{1,9}\.[0-9]{3}) seconds (?P<operations>[0-9]{1,15}) operations)?)?;"
    r"(?P<rest>[^\n]*)$",
    re.MULTILINE,
)
_COUNT: Final = re.compile(rf"^Count: ([0-9]{{1,15}}) +Average: {_NUMBER} ", re.MULTILINE)
_EXTREMES: Final = re.compile(rf"^Min: {_NUMBER} +Median: {_NUMBER} +Max: {_NUMBER}$", re.MULTILINE)
#: Limits in microseconds, and how many operations took so long.
_BUCKET: Final = re.compile(
    r"^[\[(] *([0-9]{1,19}), *([0-9]{1,20}) [\])] +([0-9]{1,15}) ", re.MULTILINE
)
_FOUND: Final = re.compile(r"\(([0-9]{1,15}) of ([0-9]{1,15}) found\)")
_RATE: Final = re.compile(rf"^ +{_NUMBER} MB/s")
_SECOND: Final = re.compile(r"^[0-9]{1,6},([0-9]{1,12})$", re.MULTILINE)
#: Tails of the latency besides those that every slice has.
_TAILS: Final = {"latency_ms_p999": 0.999, "latency_ms_p9999": 0.9999}
#: Benchmarks of LevelDB whose rate of bytes is what they put.
_PUTS: Final = frozenset({"fillseq", "overwrite"})


class OutputError(Exception):
    """What db_bench printed is no result."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One benchmark's result."""

    seconds: float
    operations: int
    per_second_ops_s: tuple[float, ...]
    latency_ms: Latency
    #: What RocksDB's own statistics say, by names with units (docs/rocksdb.md).
    extra: dict[str, float]


def parse(
    text: str, benchmark: str, *, threads: int, batch: int = 1, asked_s: float = 0.0
) -> Result:
    """Return the result of `benchmark`, the last one where it ran more than once.

    Args:
        text: All that db_bench printed on its standard output.
        benchmark: Name as db_bench prints it.
        threads: How many threads did what is measured.
        batch: Operations in one call, whose time the histogram holds.
        asked_s: How long it was to run; 0 where its work is fixed.

    Raises:
        OutputError: A figure is missing, contradicts another, or nothing was done.
    """
    printed, _, seconds_file = text.partition(SECONDS_MARK)
    lines = list(_LINE.finditer(printed))
    found = [index for index, line in enumerate(lines) if line["name"] == benchmark]
    if not found:
        raise OutputError(f"db_bench printed no result of {benchmark}")
    line = lines[found[-1]]
    end = lines[found[-1] + 1].start() if found[-1] + 1 < len(lines) else len(printed)
    histogram = _histogram(printed[line.end() : end], benchmark)
    operations = int(line["operations"] or histogram.count * batch)
    seconds = _seconds(line, operations, threads)
    _check(line, histogram, operations, seconds, asked_s=asked_s)
    each = tuple(float(value) for value in _SECOND.findall(seconds_file)[:PER_SECOND_MAX])
    return Result(
        seconds=seconds,
        operations=operations,
        per_second_ops_s=each,
        latency_ms=histogram.latency_ms(),
        extra={
            **{name: histogram.percentile_us(share) / 1000 for name, share in _TAILS.items()},
            **db_bench_stats.figures(printed, put_mib=_put_mib(line, seconds)),
        },
    )


@dataclass(frozen=True, kw_only=True)
class _Histogram:
    """How long calls took, in microseconds."""

    count: int
    average: float
    minimum: float
    maximum: float
    #: Lower limit, upper limit, calls.
    buckets: Sequence[tuple[float, float, int]]

    def percentile_us(self, share: float) -> float:
        """Return the time below which `share` of the calls stayed, as db_bench itself does it.

        That is linear inside a bucket, and never outside of what was seen.
        """
        wanted, seen = share * self.count, 0
        for lower, upper, calls in self.buckets:
            if seen + calls >= wanted:
                inside = lower + (upper - lower) * (wanted - seen) / calls
                return min(max(inside, self.minimum), self.maximum)
            seen += calls
        return self.maximum

    def latency_ms(self) -> Latency:
        p50, p95, p99 = (self.percentile_us(share) / 1000 for share in (0.50, 0.95, 0.99))
        return Latency(
            average=self.average / 1000,
            minimum=self.minimum / 1000,
            maximum=self.maximum / 1000,
            p50=p50,
            p95=p95,
            p99=p99,
        )


def _histogram(text: str, benchmark: str) -> _Histogram:
    """Return the histogram in what stands between a result and the next."""
    count, extremes = _COUNT.search(text), _EXTREMES.search(text)
    # db_bench calls no operation at all one operation, and prints no histogram of it.
    if count is None or int(count.group(1)) == 0:
        raise OutputError(f"{benchmark} did no operation, or printed no histogram")
    buckets = [
        (float(lower), float(upper), int(calls))
        for lower, upper, calls in _BUCKET.findall(text)
        if int(calls) > 0
    ]
    total = int(count.group(1))
    if extremes is None or sum(calls for _, _, calls in buckets) != total:
        raise OutputError(f"the histogram of {benchmark} is not whole")
    return _Histogram(
        count=total,
        average=float(count.group(2)),
        minimum=float(extremes.group(1)),
        maximum=float(extremes.group(3)),
        buckets=buckets,
    )


def _seconds(line: re.Match[str], operations: int, threads: int) -> float:
    """Return how long it took, from what this form of the output says about it."""
    if line["seconds"]:
        return float(line["seconds"])
    if line["ops_s"]:
        # Printed in whole numbers. The microseconds would be finer, but they are the time of the
        # readers alone, while both forms' rates are over all that ran, a background writer too.
        return operations / max(1, int(line["ops_s"]))
    # Microseconds are those of the threads, added up.
    return float(line["micros"]) * operations / 1e6 / threads


def _check(
    line: re.Match[str],
    histogram: _Histogram,
    operations: int,
    seconds: float,
    *,
    asked_s: float,
) -> None:
    """Refuse figures that contradict each other, or what was asked."""
    name = line["name"]
    if seconds <= 0 or histogram.count > operations:
        raise OutputError(
            f"{name}: {operations} operations in {seconds} s, and a histogram of {histogram.count}"
        )
    if line["seconds"]:
        # The rate is cut off to a whole number, the seconds are rounded to thousandths.
        expected, printed = operations / seconds, int(line["ops_s"])
        if abs(expected - printed) > 1 + expected * 0.0006 / seconds:
            raise OutputError(
                f"{name}: {operations} operations in {seconds} s are not {printed} a second"
            )
    if seconds < TIME_SHARE_MIN * asked_s:
        raise OutputError(f"{name} ran for {seconds} s of {asked_s:.0f} s")
    hits = _FOUND.search(line["rest"])
    # LevelDB compares with the number of keys instead of the number of reads.
    if hits and line["ops_s"] and int(hits.group(1)) < FOUND_SHARE_MIN * int(hits.group(2)):
        raise OutputError(
            f"{name} found {hits.group(1)} of {hits.group(2)} keys; the database does not hold "
            "the rows of the dataset"
        )


def _put_mib(line: re.Match[str], seconds: float) -> float | None:
    """Return how many MiB were put, where only the line of the result tells."""
    rate = _RATE.match(line["rest"])
    if line["ops_s"] or line["name"] not in _PUTS or rate is None:
        return None
    return float(rate.group(1)) * seconds

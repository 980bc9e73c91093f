"""Real series for the benchmark, read from the folder that `--data` names; none is ours to copy.

The folder's own README says what each file is. Parquet is read inside an environment of its own, so
that the project needs no Arrow. Arrays in natural units and time order come out.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.detection.peers import exchange

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

#: How many people made the labels of the dev fold.
ANNOTATORS: Final = 5
#: Points of a series for the power curves; longer ones are cut into several.
POINTS: Final = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class Labelled:
    """One annotated series of builds."""

    values: NDArray[np.float64]
    #: First points of new levels that at least three of five people saw.
    truth: tuple[int, ...]
    #: What each person saw.
    people: tuple[tuple[int, ...], ...]
    #: Near-duplicates share one.
    family: int


def sap_hana(folder: Path) -> list[Labelled]:
    """Return the series that five people annotated: the dev fold."""
    labels = json.loads((folder / "sap_hana" / "labels.json").read_text())
    medians = defaultdict(list)
    table = _columns(folder / "sap_hana" / "per_build.parquet", "series_id", "idx", "median")
    for series, index, value in zip(*table, strict=True):
        medians[series].append((index, value))
    found = []
    for label in labels:
        if label["n_annotators"] != ANNOTATORS:
            continue
        values = [value for _, value in sorted(medians[label["series_id"]])]
        found.append(
            Labelled(
                values=np.asarray(values[label["start"] : label["end"]], dtype=np.float64),
                truth=tuple(index for index, _ in label["consensus3"]),
                people=tuple(tuple(seen) for seen in label["annotations"].values()),
                family=label["family"],
            )
        )
    return found


def still_series(
    folder: Path, rng: np.random.Generator, *, drawn: int
) -> dict[str, list[NDArray[np.float64]]]:
    """Return series in which nothing was changed, by source: whatever moves in them is noise.

    The last two sources are reruns of one build a few at a time, too short to be series: their
    deviations are drawn with replacement into `drawn` series of independent points.
    """
    seconds = _per_second(folder)
    # The first 100 s are warm-up.
    tens = [_tens(series[POINTS:]) for series in seconds]
    spreads = {
        "sysbench reruns, drawn": repeated_pairs(folder),
        "db_bench reruns, drawn": rocksdb_spread(folder),
    }
    return {
        "PHP, one build every day": [
            part for series in _php_daily(folder) for part in _cut(series)
        ],
        "sysbench, by the second": [part for series in seconds for part in _cut(series)[1:2]],
        "sysbench, means of 10 s": [series for series in tens if series.size >= POINTS // 2],
        **{
            name: list(1000.0 * np.exp(rng.choice(spread, (drawn, POINTS))))
            for name, spread in spreads.items()
        },
    }


def repeated_pairs(folder: Path) -> NDArray[np.float64]:
    """Return the log deviations of sysbench reruns of one build on one machine, weeks apart."""
    with (folder / "sysbench_versions" / "aa_pairs.csv").open(newline="") as lines:
        pairs = [(float(row["qps_a"]), float(row["qps_b"])) for row in csv.DictReader(lines)]
    # The difference of two runs has the noise of both.
    ratios = np.array([np.log(b / a) for a, b in pairs if a > 0 and b > 0]) / np.sqrt(2.0)
    # Which of the two came first means nothing here.
    both: NDArray[np.float64] = np.concatenate([ratios, -ratios])
    return both


def rocksdb_spread(folder: Path) -> NDArray[np.float64]:
    """Return log deviations of db_bench repetitions from the mean of their machine and test.

    Scaled up for the degree of freedom that the mean of a few repetitions takes.
    """
    groups = defaultdict(list)
    path = folder / "sysbench_versions" / "rocksdb_aws_variance.csv"
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if row["ops_sec"] and float(row["ops_sec"]) > 0:
                key = row["machine"], row["file"], row["test"]
                groups[key].append(np.log(float(row["ops_sec"])))
    deviations: list[float] = []
    for logs in groups.values():
        count = len(logs)
        if count >= 3:  # noqa: PLR2004  two repetitions deviate alike, by construction
            deviations += list((np.array(logs) - np.mean(logs)) * np.sqrt(count / (count - 1)))
    return np.array(deviations)


def _php_daily(folder: Path) -> list[NDArray[np.float64]]:
    days = defaultdict(list)
    path = folder / "php_daily" / "php_daily.parquet"
    for run, env, test, php, median in zip(
        *_columns(path, "run", "env", "test", "php", "median"), strict=True
    ):
        if php.startswith("PHP - baseline") and median:
            days[env, test, php].append((run, median))
    return [np.array([value for _, value in sorted(seen)]) for seen in days.values()]


def _per_second(folder: Path) -> list[NDArray[np.float64]]:
    runs = defaultdict(list)
    path = folder / "sysbench_per_second" / "per_second.parquet"
    for run, second, tps in zip(*_columns(path, "run_id", "t", "tps"), strict=True):
        runs[run].append((second, tps))
    series = [np.array([tps for _, tps in sorted(seen)]) for seen in runs.values()]
    return [values for values in series if values.size >= 2 * POINTS and np.all(values > 0)]


def _cut(values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return consecutive stretches of equal length, what is left over dropped."""
    count = values.size // POINTS
    return np.split(values[: count * POINTS], count) if count else []


def _tens(values: NDArray[np.float64]) -> NDArray[np.float64]:
    whole = values[: values.size // 10 * 10]
    means: NDArray[np.float64] = whole.reshape(-1, 10).mean(axis=1)
    return means


def _columns(path: Path, *names: str) -> list[list[Any]]:
    answer = exchange("parquet", {"path": str(path), "columns": list(names)})
    return [answer["columns"][name] for name in names]

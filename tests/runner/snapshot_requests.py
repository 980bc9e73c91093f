"""A store of snapshots for tests: a clock they turn, a maker that counts, requests by key."""

from __future__ import annotations

from pathlib import Path

from runner.eviction import Estimate, stored
from runner.snapshots import Request
from tests.runner.trees_on_disk import plant

MB = 1_000_000


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Maker:
    """Makes a snapshot and counts how often."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, folder: Path):
        self.made += 1
        plant(folder)
        return {"rows": {"sbtest1": 7}}


def request(make, key="k", allocated=20 * MB) -> Request:
    estimate = Estimate(allocated=allocated, because="as the test says")
    return Request(key=key, make=make, estimate=estimate)


def keys(store) -> list[str]:
    return [one.key for one in stored(store.folder)]

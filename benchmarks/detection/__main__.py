"""The detectors beside their peers, in one table: `make bench-detectors`.

Every figure comes from this run, the peers' too: each lives in a virtual environment of its own
below `.forkwatch/bench/`, made on demand from a lock file with hashes. `--data` points at the
folder of real series; rows that need it are skipped without it. At full length it takes about ten
minutes on one core; `--quick` takes one and is for seeing that it works.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks.detection.row import Row, Settings, markdown

#: Groups of rows by name, each a module with `rows(settings)`.
GROUPS: Final = (
    "null_streams",
    "planted_steps",
    "confirming",
    "sap_hana",
    "coverage",
    "suite",
    "bisects",
    "speed",
    "power_curves",
)
NEED_DATA: Final = ("sap_hana", "power_curves")
QUICK_SCALE: Final = 0.04


def main() -> None:
    """Measure the groups asked for and print the table; progress goes to stderr."""
    chosen = _arguments()
    settings = Settings(
        scale=QUICK_SCALE if chosen.quick else chosen.scale,
        seed=chosen.seed,
        data=chosen.data,
        charts=chosen.charts,
    )
    table: list[Row] = []
    skipped = []
    began = time.perf_counter()
    for group in chosen.rows:
        if group in NEED_DATA and settings.data is None:
            skipped.append(group)
            continue
        print(f"{group} ...", file=sys.stderr, flush=True)
        for row in importlib.import_module(f"benchmarks.detection.{group}").rows(settings):
            print(f"  {row.what}\n    {row.ours}", file=sys.stderr, flush=True)
            table.append(row)
    if table:
        print(markdown([row.cells for row in table]))
    if skipped:
        print(f"\nskipped, because they need real series (--data FOLDER): {', '.join(skipped)}")
    print(
        f"\nseed {settings.seed}, scale {settings.scale:g}, {time.perf_counter() - began:.0f} s; "
        "in brackets exact binomial 95 % intervals, of F1 by resampling"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench-detectors", description="The detectors beside their peers, in one table."
    )
    parser.add_argument("--data", type=Path, help="folder of real series; rows need it")
    parser.add_argument("--quick", action="store_true", help="a minute, to see that it works")
    parser.add_argument(
        "--rows", nargs="+", choices=GROUPS, default=list(GROUPS), help="only these groups"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the trials")
    parser.add_argument("--seed", type=int, default=20260901, help="of every generator")
    parser.add_argument("--charts", type=Path, help="folder for the power curves as Vega-Lite")
    chosen = parser.parse_args()
    if chosen.data is not None and not (chosen.data / "sap_hana").is_dir():
        parser.error(f"{chosen.data} has no folder sap_hana: --data wants the folder of series")
    return chosen


if __name__ == "__main__":
    main()

"""Asks MongoDB's signal-processing-algorithms for change points (E-divisive, 100 permutations).

Runs inside its own virtual environment.
"""

from __future__ import annotations

from typing import Any

from signal_processing_algorithms.energy_statistics import (  # type: ignore[import-not-found]
    energy_statistics,
)

from benchmarks.peers import looking


def respond(request: dict[str, Any]) -> dict[str, Any]:
    """Answer with its change points at the defaults, or at the setting asked for."""
    setting = {"pvalue": 0.05, "permutations": 100, **request["setting"]}

    def detect(values: list[float]) -> list[int]:
        if len(values) < looking.POINTS_MIN:
            return []
        return sorted(int(index) for index in energy_statistics.e_divisive(values, **setting))

    return looking.answer(request, detect)


if __name__ == "__main__":
    looking.serve(respond)

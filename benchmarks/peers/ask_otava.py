"""Asks Apache Otava for change points; runs inside Otava's own virtual environment."""

from __future__ import annotations

from typing import Any

from otava.analysis import (  # type: ignore[import-not-found]
    compute_change_points,
)

from benchmarks.peers import looking


def respond(request: dict[str, Any]) -> dict[str, Any]:
    """Answer with Otava's confirmed change points, the weak ones left out."""
    setting = {"window_len": 50, "max_pvalue": 0.001, "min_magnitude": 0.0, **request["setting"]}

    def detect(values: list[float]) -> list[int]:
        if len(values) < looking.POINTS_MIN:
            return []
        found, _ = compute_change_points(values, **setting)
        return [int(change.index) for change in found]

    return looking.answer(request, detect)


if __name__ == "__main__":
    looking.serve(respond)

"""Asks ruptures for change points: exact penalised segmentation (PELT) with a linear kernel.

Runs inside its own virtual environment.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import ruptures  # type: ignore[import-not-found]

from benchmarks.peers import looking


def respond(request: dict[str, Any]) -> dict[str, Any]:
    """Answer with the segmentation of each series, scaled by a robust estimate of its noise."""
    penalty = request["setting"]["penalty"]

    def detect(values: list[float]) -> list[int]:
        if len(values) < looking.POINTS_MIN:
            return []
        points = np.asarray(values)
        # A failed build is a zero in some real series, and has no logarithm.
        logs = np.log(np.maximum(points, points[points > 0.0].min()))
        # The library has no noise estimate of its own: differences do not see the steps.
        spread = np.median(np.abs(np.diff(logs))) / (0.6745 * math.sqrt(2.0))
        if spread <= 0.0:
            # More than half of the neighbours are equal, as in coarse timings.
            spread = np.std(np.diff(logs), ddof=1) / math.sqrt(2.0)
        if spread <= 0.0:
            return []
        kernel = ruptures.KernelCPD(kernel="linear", min_size=2).fit((logs / spread)[:, None])
        return [int(end) for end in kernel.predict(pen=penalty * math.log(len(values)))[:-1]]

    return looking.answer(request, detect)


if __name__ == "__main__":
    looking.serve(respond)

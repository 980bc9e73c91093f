"""Asks git_bayesect to find the first slow commit from noisy measurements.

It knows pass and fail only, so each measurement is first compared with a threshold. The threshold
is an oracle's: the middle of the true old and new level, which nobody has. Runs inside its own
virtual environment.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from git_bayesect import Bisector  # type: ignore[import-not-found]

from benchmarks.peers import looking


def respond(request: dict[str, Any]) -> dict[str, Any]:
    """Answer with [measurements, whether right] for each true culprit asked for."""
    began = time.perf_counter()
    generator = np.random.default_rng(request["seed"])
    found = [one_bisect(generator, culprit, request) for culprit in request["culprits"]]
    return {"found": found, "seconds": time.perf_counter() - began}


def one_bisect(generator: np.random.Generator, culprit: int, request: dict[str, Any]) -> list[int]:
    """Measure until its posterior reaches the probability asked for.

    Its index 0 is the newest commit, ours the oldest; the oldest is known good there too.
    """
    commits = request["commits"]
    prior = [1.0] * commits
    # Index commits - 1 being the culprit would mean that the known good commit is bad.
    prior[commits - 1] = 0.0
    bisector = Bisector(prior)
    measured = 0
    while measured < request["limit"] and max(bisector.distribution) < request["stop"]:
        chosen = int(bisector.select())
        slow = commits - 1 - chosen >= culprit
        value = request["shift"] * slow + generator.standard_normal()
        bisector.record(chosen, bool(value > request["shift"] / 2.0))
        measured += 1
    named = commits - 1 - int(np.argmax(bisector.distribution))
    return [measured, int(named == culprit)]


if __name__ == "__main__":
    looking.serve(respond)

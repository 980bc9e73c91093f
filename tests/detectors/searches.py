"""Bisections for the tests: one with measurements recorded, and one that has run to its end."""

from __future__ import annotations

from detectors.bisection import Bisection

#: Measurements of a step at commit 5 of 8, in logs.
HISTORY = ((0, 6.91), (7, 6.86), (3, 6.905), (5, 6.865), (4, 6.915), (6, 6.872))


def recorded(history=HISTORY, n_commits=8, **options) -> Bisection:
    search = Bisection(n_commits, **options)
    for commit, value in history:
        search.record(commit, value)
    return search


def searched(rng, *, n_commits, culprit, shift, sd=0.02, broken=(), **options) -> Bisection:
    """A whole search; `shift` in standard deviations, culprit 0 for no change at all."""
    search = Bisection(n_commits, **options)
    while not search.done:
        commit = search.select()
        if commit in broken:
            search.skip(commit)
            continue
        after = culprit > 0 and commit >= culprit
        search.record(commit, 6.9 + sd * (shift * after + rng.normal()))
    return search

"""The addresses of pages: names come in, paths go out in which nothing of a name is obeyed."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def commit_path(fork: str, sha: str) -> str:
    """Return the address of a commit's page."""
    return f"/forks/{_segment(fork)}/commits/{_segment(sha)}"


def workload_path(fork: str, workload: str) -> str:
    """Return the address of a workload's page."""
    return f"/forks/{_segment(fork)}/workloads/{_segment(workload)}"


def alert_path(alert: str) -> str:
    """Return the address of an alert's page."""
    return f"/alerts/{_segment(alert)}"


def host_path(name: str) -> str:
    """Return the address of a machine's page."""
    return f"/hosts/{_segment(name)}"


def compare_path(fork: str, baseline: str | None = None, candidate: str | None = None) -> str:
    """Return the address at which two commits are compared; without them, where to choose some."""
    chosen = {"fork": fork, "baseline": baseline, "candidate": candidate}
    return f"/compare?{urlencode({name: value for name, value in chosen.items() if value})}"


def _segment(name: str) -> str:
    return quote(name, safe="")

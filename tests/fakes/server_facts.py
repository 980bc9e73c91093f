"""Loads, servers and exact counters of run documents, by their few numbers that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from results.exact import CaseDifference, ComparedCase, ExactCounters
from results.server_facts import Load, ServerLife
from results.slice import SideName
from tests.fakes.run_documents import AT

if TYPE_CHECKING:
    from results.document import RunDocument

MB = 10**6
BASELINE_PLAN = "1\tSIMPLE\tlineitem\tref\ti_l_partkey\tUsing index condition"
CANDIDATE_PLAN = "1\tSIMPLE\tlineitem\tref\ti_l_partkey\tUsing where"


def a_load(**facts: Any) -> Load:
    """Return a load of 2000 rows in two seconds that the side did itself."""
    usual = {
        "load_s": 4.0,
        "rows_s": 2.0,
        "indexes_s": 0.5,
        "rows": 2000,
        "settle_s": 0.1,
        "startup_s": 0.2,
        "shutdown_s": 0.3,
        "disk_bytes": 120 * MB,
        "loaded_at": AT,
        "own": True,
    }
    return Load(**{**usual, **facts})


def a_life(side: SideName = SideName.CANDIDATE, **facts: Any) -> ServerLife:
    """Return a server that came up in half a second."""
    usual = {
        "leg": 0,
        "startup_s": 0.5,
        "shutdown_s": 0.25,
        "peak_rss_bytes": 300 * MB,
        "disk_bytes": 150 * MB,
    }
    return ServerLife(side=side, **{**usual, **facts})


def with_lives(document: RunDocument, *starts: tuple[ServerLife, ...]) -> RunDocument:
    """Return the document with these servers in its starts."""
    lived = tuple(
        start.model_copy(update={"servers": lives})
        for start, lives in zip(document.starts, starts, strict=True)
    )
    return document.model_copy(update={"starts": lived})


def with_loads(document: RunDocument, **loads: Load) -> RunDocument:
    """Return the document with these loads, by the name of the side."""
    sides = {
        name: getattr(document, name).model_copy(update={"load": load})
        for name, load in loads.items()
    }
    return document.model_copy(update=sides)


def exact_counters(*, gaps: tuple[str, ...] = ()) -> ExactCounters:
    """Return two cases of which the first lost its pushed-down condition."""
    lost = ComparedCase(
        name="q19-index-condition",
        statement="SELECT 1",
        counters={"handler_read_key": 84, "handler_read_next": 36},
        differences=(
            CaseDifference(what="plan", baseline=BASELINE_PLAN, candidate=CANDIDATE_PLAN),
            CaseDifference(what="handler_read_next", baseline="36", candidate="2520"),
        ),
    )
    alike = ComparedCase(name="scan", statement="SELECT 2", counters={"handler_read_rnd_next": 9})
    return ExactCounters(cases=(lost, alike), gaps=gaps, seconds=3.0)

"""What the verbs print at their end, and the exit status it means.

A comparison or a run document comes in; stdout gets the product (tables or JSON), stderr the
explanation. It starts no work.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from detectors.verdict import Decision
from forkwatch.streams import EXIT_FOUND, EXIT_UNSTABLE, err, out
from reports.comparison import group_table
from reports.explanation_text import explanation_renderable
from reports.run_facts import facts_renderables
from reports.sentence import outcome_sentence
from reports.terminal import report_renderable, table_renderable
from results.document import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from forkwatch.comparing import Comparison
    from results.document import RunDocument


def end_run(document: RunDocument) -> NoReturn:
    """Say why a run has no numbers, if it has none, and exit with the status that means."""
    good = {Outcome.MEASURED, Outcome.UNCHANGED, Outcome.BUILT}
    if document.outcome not in good:
        said = outcome_sentence(
            document.outcome, at=document.candidate.commit.sha, failure=document.failure
        )
        err.print(said, markup=False)
    # The product of a single run is the path of its document, so this goes beside it.
    for part in facts_renderables(document):
        err.print(part)
    status = EXIT_UNSTABLE if document.outcome is Outcome.UNSTABLE else EXIT_FOUND
    raise typer.Exit(0 if document.outcome in good else status)


def status_of(comparison: Comparison) -> int:
    """Return the exit status of a comparison: 1 for a regression or failed work."""
    outcome = comparison.document.outcome
    if outcome is Outcome.UNSTABLE:
        return EXIT_UNSTABLE
    if outcome in {Outcome.BUILD_FAILED, Outcome.FAILED}:
        return EXIT_FOUND
    decisions = {verdict.decision for verdict in comparison.verdicts.values()}
    return EXIT_FOUND if Decision.REGRESSION in decisions else 0


def show(comparison: Comparison, path: Path, *, as_json: bool) -> NoReturn:
    """Print a comparison and exit with the status it means."""
    if as_json:
        print(json.dumps(_as_json(comparison, path), indent=2))  # noqa: T201  the product
    else:
        out.print(report_renderable(comparison.rows, sentence=comparison.sentence))
        if _has_group(comparison):
            out.print(table_renderable(group_table(comparison.rows)))
        for part in facts_renderables(comparison.document):
            out.print(part)
        found = comparison.document.explanation
        if found and found.workloads:
            out.print(explanation_renderable(found, folder=path.parent))
        failure = comparison.document.failure
        if failure and failure.log_tail:
            err.print(failure.log_tail, markup=False, highlight=False)
    raise typer.Exit(status_of(comparison))


def _has_group(comparison: Comparison) -> bool:
    """Whether a summary by group says more than the rows: some group has several workloads."""
    groups = [row.group for row in comparison.rows if row.ratio is not None]
    return len(groups) > len(set(groups))


def _as_json(comparison: Comparison, path: Path) -> dict[str, Any]:
    document = comparison.document
    return {
        "sentence": comparison.sentence,
        "outcome": document.outcome,
        "baseline": document.baseline.commit.sha if document.baseline else None,
        "candidate": document.candidate.commit.sha,
        "starts": len(document.starts),
        "verdicts": {
            workload: dataclasses.asdict(verdict)
            for workload, verdict in comparison.verdicts.items()
        },
        "failure": document.failure.model_dump() if document.failure else None,
        "explanation": document.explanation.model_dump() if document.explanation else None,
        "exact": document.exact.model_dump() if document.exact else None,
        "document": str(path),
    }

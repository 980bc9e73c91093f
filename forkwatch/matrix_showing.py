"""What `forkwatch matrix` prints at its end, and the exit status it means.

The pairs of a matrix come in; which differences are significant is decided over all of them, and
stdout gets tables or JSON. It starts no work.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from detectors.multiplicity import adjust
from forkwatch.streams import EXIT_FOUND, EXIT_UNSTABLE, out
from reports import matrix as report
from reports.rows import level_of_runs, rows_of_pair
from results.document import Outcome
from results.slice import SideName
from runner.deciding import ALPHA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkwatch.matrix import Cell, Pair, Question


def significant(pairs: Sequence[Pair]) -> set[tuple[str, str]]:
    """Return (cell, workload) of the differences that are significant.

    A matrix asks many questions at once, so the share of false ones among all that are called
    significant is kept at ALPHA (Benjamini & Hochberg 1995), over every cell and workload.
    """
    tests = [
        ((pair.cell.name, workload), verdict.change.p_value)
        for pair in pairs
        for workload, verdict in pair.verdicts.items()
    ]
    # No p-value means no evidence.
    p_values = [1.0 if math.isnan(p_value) else p_value for _, p_value in tests]
    return {tests[place][0] for place in adjust(p_values).found(ALPHA)}


def report_of(question: Question, pairs: Sequence[Pair]) -> report.Matrix:
    """Return the matrix as its tables are made from it."""
    found = significant(pairs)
    measured = [pair.document for pair in pairs if pair.document and not pair.gap]
    runs = [(document, SideName.BASELINE) for document in measured]
    levels = {name: level_of_runs(runs, name) for name in question.workloads}
    return report.Matrix(
        base=question.base.name,
        cells=tuple(
            report.Cell(
                name=pair.cell.name,
                rows=rows_of_pair(pair.document, pair.verdicts)
                if pair.document and not pair.gap
                else (),
                significant=frozenset(
                    workload for cell, workload in found if cell == pair.cell.name
                ),
                gap=pair.gap,
            )
            for pair in pairs
        ),
        base_levels={name: level for name, level in levels.items() if level is not None},
    )


def show(
    question: Question, pairs: Sequence[Pair], *, as_json: bool, as_markdown: bool
) -> NoReturn:
    """Print a matrix and exit: 1 where a cell failed, 3 where the host was unstable.

    A slower cell is an answer here and not a failure: nobody pushed it.
    """
    found = report_of(question, pairs)
    if as_json:
        print(json.dumps(_finite(as_data(question, pairs, found)), indent=2))  # noqa: T201  the product
    elif as_markdown:
        print(report.matrix_markdown(found))  # noqa: T201  the product
    else:
        out.print(report.matrix_renderable(found))
    raise typer.Exit(_status(pairs))


def _status(pairs: Sequence[Pair]) -> int:
    outcomes = {pair.document.outcome if pair.document else Outcome.FAILED for pair in pairs}
    if outcomes & {Outcome.BUILD_FAILED, Outcome.FAILED}:
        return EXIT_FOUND
    return EXIT_UNSTABLE if Outcome.UNSTABLE in outcomes else 0


def as_data(question: Question, pairs: Sequence[Pair], found: report.Matrix) -> dict[str, Any]:
    """Return the matrix as JSON has it."""
    return {
        "base": _cell_data(question.base),
        "cells": [
            {
                **_cell_data(pair.cell),
                "outcome": pair.document.outcome if pair.document else None,
                "gap": pair.gap,
                "run": pair.document.id if pair.document else None,
                "workloads": {
                    row.workload: {
                        "ratio": row.ratio,
                        "significant": row.workload in cell.significant,
                        "verdict": asdict(row.verdict) if row.verdict else None,
                        "base": asdict(row.baseline) if row.baseline else None,
                        "cell": asdict(row.candidate) if row.candidate else None,
                    }
                    for row in cell.rows
                },
            }
            for pair, cell in zip(pairs, found.cells, strict=True)
        ],
        "groups": [asdict(summary) for summary in report.summaries(found)],
    }


def _finite(value: Any) -> Any:
    """Return data with null for what JSON has no number for, such as an unbounded interval."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell_data(cell: Cell) -> dict[str, str]:
    return {
        "name": cell.name,
        "commit": cell.commit.sha,
        "build": cell.build,
        "config": cell.config,
    }

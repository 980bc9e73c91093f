"""Change points of series that people bring: the work of `forkwatch detect`.

A CSV file comes in, sentences and a table or JSON go out. What a change is belongs to
`detectors.changepoints`; how a file is read to `forkwatch.csv_series`. Whether more is better is
the caller's word, and without it a change is neither good nor bad.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from detectors.changepoints import examine
from detectors.errors import DataError
from forkwatch.change_words import (
    Examined,
    Finding,
    change_sentence,
    changes_table,
    sentences,
    series_table,
)
from forkwatch.csv_series import read_series
from forkwatch.csv_sheet import TEXT_BYTES_MAX, SeriesFileError
from forkwatch.streams import EXIT_FOUND, out
from reports.markup import one_line
from reports.terminal import table_renderable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkwatch.csv_series import Series, SeriesFile

#: What stands for standard input on the command line.
STANDARD_INPUT: Final = "-"


def detect(
    source: str,
    *,
    column: str | None = None,
    more_is_better: bool | None = None,
    as_json: bool = False,
    fail_on_change: bool = False,
    stdin: BinaryIO | None = None,
) -> int:
    """Print the change points of a CSV file and return the exit status.

    Finding changes is this command's work, so they are no failure: 0 either way. With
    `fail_on_change` it is 1 when there is one, or, where it is said what is better, one for the
    worse.

    Args:
        source: Path of the file, `-` for standard input.
        column: Name or number of the column; every column of measurements if absent.
        more_is_better: Direction of the metric; None is unknown.
        as_json: Print JSON instead of sentences and a table.
        fail_on_change: Let the exit status say whether there was a change.
        stdin: What `-` reads.

    Raises:
        SeriesFileError: The file cannot be read, or holds something that is no measurement.
    """
    file = read_series(_content(source, stdin), column=column)
    examined = [
        examine_series(file, series, more_is_better=more_is_better) for series in file.series
    ]
    if as_json:
        document = as_document(source, file, examined)
        print(json.dumps(document, indent=2, allow_nan=False))  # noqa: T201  the product
    else:
        _show(file, examined)
    found = [finding for one in examined for finding in one.findings]
    failing = any(finding.worse is not False for finding in found)
    return EXIT_FOUND if fail_on_change and failing else 0


def examine_series(file: SeriesFile, series: Series, *, more_is_better: bool | None) -> Examined:
    """Find the changes of one series and say where in the file they are."""
    try:
        history = examine(series.values)
    except DataError as error:
        raise SeriesFileError(f"column {series.name!r}: {error}") from error
    logs = np.log(np.asarray(series.values))
    begins = [change.index or 0 for change in history.changes]
    bounds = [0, *begins, len(series.values)]
    levels = [
        float(np.exp(np.nanmedian(logs[start:end]))) for start, end in itertools.pairwise(bounds)
    ]
    findings = []
    for number, change in enumerate(history.changes):
        begin = begins[number]
        label = one_line(file.labels[begin], length_max=40) if file.labels else ""
        finding = Finding(
            change=change,
            line=file.lines[begin],
            label=label,
            old_level=levels[number],
            new_level=levels[number + 1],
            worse=None if more_is_better is None else (change.effect < 0) == more_is_better,
            sentence="",
        )
        told = change_sentence(finding, name=series.name, label_name=file.label_name)
        findings.append(dataclasses.replace(finding, sentence=told))
    return Examined(series=series, history=history, findings=tuple(findings))


def as_document(source: str, file: SeriesFile, examined: Sequence[Examined]) -> dict[str, Any]:
    """Return everything found, for machines; numbers that JSON cannot say are null."""
    return {
        "file": source,
        "label": file.label_name or None,
        "warnings": list(file.warnings),
        "series": [_series_document(one) for one in examined],
    }


def _series_document(one: Examined) -> dict[str, Any]:
    history = one.history
    document = {
        "name": one.series.name,
        "points": len(one.series.values),
        "missing": one.history.n_missing,
        "changes": [
            {
                "index": finding.change.index,
                "line": finding.line,
                "label": finding.label or None,
                "ratio": finding.change.ratio,
                **dataclasses.asdict(finding.change),
                "old_level": finding.old_level,
                "new_level": finding.new_level,
                "worse": finding.worse,
                "sentence": finding.sentence,
            }
            for finding in one.findings
        ],
        "drift": dataclasses.asdict(history.drift) if history.drift else None,
        "noise": dataclasses.asdict(history.noise) if history.noise else None,
        "spikes": history.spikes,
        "warnings": history.warnings,
    }
    plain: dict[str, Any] = _plain(document)
    return plain


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: no arrays, no infinities, no NaN."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(file: SeriesFile, examined: Sequence[Examined]) -> None:
    for one in examined:
        for sentence in sentences(one):
            out.print(sentence, markup=False, highlight=False)
    tables = [series_table(examined)]
    if any(one.findings for one in examined):
        tables.insert(0, changes_table(examined, label_name=file.label_name))
    for table in tables:
        out.print()
        out.print(table_renderable(table))
    notes = [note for one in examined for note in _notes(one)]
    for note in [*notes, *file.warnings]:
        out.print(f"note: {one_line(note)}", markup=False, highlight=False)


def _notes(one: Examined) -> list[str]:
    """Return the warnings on a series and on each of its changes."""
    of_changes = [
        f"{one.series.name}, line {finding.line}: {said}"
        for finding in one.findings
        for said in finding.change.warnings
    ]
    return [f"{one.series.name}: {said}" for said in one.history.warnings] + of_changes


def _content(source: str, stdin: BinaryIO | None) -> bytes:
    """Return the whole input, or just more than is ever read of it."""
    try:
        if source == STANDARD_INPUT:
            return (stdin or sys.stdin.buffer).read(TEXT_BYTES_MAX + 1)
        with Path(source).open("rb") as file:
            return file.read(TEXT_BYTES_MAX + 1)
    except OSError as error:
        raise SeriesFileError(f"{source} cannot be read: {error.strerror}") from error

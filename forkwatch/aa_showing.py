"""What `forkwatch host aa` prints of a check, and the exit status it means.

A check comes in; stdout gets the product, a table or JSON. It starts no work.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from forkwatch.streams import EXIT_FOUND, EXIT_UNSTABLE, out
from reports.numbers import percent, plain
from reports.sentence import outcome_sentence
from results.document import Outcome

if TYPE_CHECKING:
    from runner.aa import AaCheck
    from runner.aa_results import AaResult, Past


def show(found: AaCheck, *, as_json: bool) -> NoReturn:
    """Print a check and exit with the status it means."""
    if as_json:
        print(json.dumps(_as_json(found), indent=2))  # noqa: T201  the product
    else:
        out.print("\n".join(lines(found)), markup=False, highlight=False)
    raise typer.Exit(status_of(found))


def status_of(found: AaCheck) -> int:
    """Return the exit status of a check."""
    outcome = found.document.outcome
    if outcome is Outcome.UNSTABLE or any(one.alarms for one in found.results):
        return EXIT_UNSTABLE
    return 0 if outcome is Outcome.MEASURED else EXIT_FOUND


def lines(found: AaCheck) -> list[str]:
    """Return what a check says: each workload, what is doubtful, and the host as a whole."""
    said = [
        line for one in found.results for line in _workload_lines(one, found.past[one.workload])
    ]
    said += [f"warning: {warning}" for warning in found.warnings]
    return [*said, _sentence(found)]


def _workload_lines(one: AaResult, past: Past) -> list[str]:
    sees = "no loss at all" if one.sees_percent is None else percent(one.sees_percent)
    fit = "fit" if one.fits else "NOT FIT"
    if not one.fits:
        needed = one.starts_needed
        fit += f", about {needed} starts would see it" if needed else ", more starts hardly help"
    spread = "unknown" if one.sd_percent is None else percent(one.sd_percent)
    before = ""
    if past.checks > 1 and past.sd_percent is not None:
        alarms = f", {past.alarms} of them alarmed" if past.alarms else ""
        before = (
            f" ({percent(past.sd_percent)} over {past.checks} checks since "
            f"{past.since:%Y-%m-%d}{alarms})"
        )
    said = [
        (
            f"{one.workload}: this host sees {sees} with {one.starts} starts; "
            f"gate {percent(one.gate_percent)}: {fit}"
        ),
        (
            f"    one copy against the other {_signed(one.effect_percent)} % ({_interval(one)}); "
            f"sd of the log ratio between starts {spread}{before}; {one.verdict}"
        ),
    ]
    if one.alarms:
        said.append(f"    ALARM: two copies of one artifact were called {one.verdict}")
    return said


def _interval(one: AaResult) -> str:
    if one.low_percent is None or one.high_percent is None:
        return "no interval"
    return f"95 %: {_signed(one.low_percent)} to {_signed(one.high_percent)}"


def _signed(value: float) -> str:
    text = plain(value)
    return text if text.startswith("-") or text == "0.0" else f"+{text}"


def _sentence(found: AaCheck) -> str:
    document = found.document
    if document.outcome is not Outcome.MEASURED:
        sha = document.candidate.commit.sha
        return outcome_sentence(document.outcome, at=sha, failure=document.failure)
    fit, total = sum(one.fits for one in found.results), len(found.results)
    if any(one.alarms for one in found.results):
        return "this host cannot be trusted: `forkwatch host check` says what makes it noisy"
    if fit == total:
        return f"this host is fit for the gates of all {total} workloads"
    return (
        f"this host is fit for the gates of {fit} of {total} workloads: raise confirm_starts or "
        "the gate of the others, or make it quieter (`forkwatch host check`)"
    )


def _as_json(found: AaCheck) -> dict[str, Any]:
    return {
        "outcome": found.document.outcome,
        "sentence": _sentence(found),
        "warnings": found.warnings,
        "workloads": [
            {
                **one.model_dump(mode="json"),
                "fits": one.fits,
                "starts_needed": one.starts_needed,
                "past": {
                    **dataclasses.asdict(found.past[one.workload]),
                    "since": found.past[one.workload].since.isoformat(),
                },
            }
            for one in found.results
        ],
        "failure": found.document.failure.model_dump() if found.document.failure else None,
        "document": str(found.folder / "run.json"),
    }

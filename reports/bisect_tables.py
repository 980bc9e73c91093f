"""The tables of a bisect: its commits with their probabilities, and every job it rests on.

A bisect document comes in, tables of text go out, unescaped as all tables are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from bisects.document import CommitState
from reports.markup import one_line
from reports.numbers import NOT_KNOWN, mark, percent, ratio, ratio_of, short, tone
from reports.tables import Column, Line, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisects.document import BisectCommit, BisectDocument, Observation

#: Lines of a table; a comment of a code host has a limit of its own.
LINES_MAX: Final = 60
#: More is never said: the noise may be of a kind that nobody thought of.
PROBABILITY_MAX: Final = 0.999
#: A commit that was never touched is shown from this probability on.
SHOWN_FROM: Final = 0.005
_SUBJECT_MAX: Final = 80
_AUTHOR_MAX: Final = 40

_STATES: Final = {
    CommitState.UNTRIED: "not measured",
    CommitState.MEASURED: "measured",
    CommitState.BROKEN: "cannot be measured",
    CommitState.SAME: "same files as the good end",
}
_COMMIT_COLUMNS: Final = (
    Column(heading="commit", meaning="Hash", numeric=False),
    Column(heading="subject", meaning="First line of its message", numeric=False),
    Column(heading="author", meaning="Who wrote it", numeric=False),
    Column(heading="state", meaning="What is known of it", numeric=False),
    Column(heading="starts", meaning="Starts in which it was measured"),
    Column(heading="ratio", meaning="Throughput over that of the good end"),
    Column(heading="probability", meaning="That it is the first of a new level"),
)
_JOB_COLUMNS: Final = (
    Column(heading="commit", meaning="Hash", numeric=False),
    Column(heading="found", meaning="What the job says of it", numeric=False),
    Column(heading="ratio", meaning="Throughput over that of the good end, mean of the starts"),
    Column(heading="each start", meaning="The same of each start", numeric=False),
    Column(heading="minutes", meaning="Wall time of the job"),
    Column(heading="building", meaning="Minutes of it that went into building"),
    Column(heading="job", meaning="Name of the job", numeric=False),
)


def shown_places(document: BisectDocument) -> list[int]:
    """Return the commits worth a line: the ends, all that was tried, all that may be the culprit.

    Of too many the least probable are left out.
    """
    commits = document.commits
    ends = {0, len(commits) - 1}
    worth = [
        place
        for place, commit in enumerate(commits)
        if place in ends
        or commit.state is not CommitState.UNTRIED
        or (place and commit.posterior >= SHOWN_FROM)
    ]
    if len(worth) > LINES_MAX:
        worth.sort(key=lambda place: (place not in ends, -commits[place].posterior))
    return sorted(worth[:LINES_MAX])


def commits_table(document: BisectDocument) -> Table:
    """Return the commits with what was measured of them and how probable each is."""
    places = shown_places(document)
    left_out = len(document.commits) - len(places)
    more = f", {left_out} more not shown" if left_out else ""
    return Table(
        title=f"Commits{more}",
        columns=_COMMIT_COLUMNS,
        lines=tuple(_commit_line(place, document.commits[place]) for place in places),
    )


def jobs_table(document: BisectDocument) -> Table:
    """Return every job that the bisect rests on, the newest ones of too many."""
    shown = document.observations[-LINES_MAX:]
    left_out = len(document.observations) - len(shown)
    more = f", {left_out} earlier ones not shown" if left_out else ""
    return Table(
        title=f"Jobs{more}",
        columns=_JOB_COLUMNS,
        lines=tuple(_job_line(document, observation) for observation in shown),
    )


def sure(probability: float) -> str:
    """Return a probability in percent, rounded down and never as certainty: `97 %`, `99.9 %`."""
    share = round(100 * min(probability, PROBABILITY_MAX), 6)
    if share < 99:  # noqa: PLR2004  beyond that, the next digit is what one asks for
        return f"{math.floor(share)} %"
    return f"{math.floor(share * 10) / 10:.1f} %"


def belief(probability: float) -> str:
    """Return a probability in percent with one decimal, and never as certainty either."""
    return percent(100 * min(probability, PROBABILITY_MAX))


def author_name(author: str) -> str:
    """Return an author without the mail address that some stores have behind the name."""
    return author.partition(" <")[0]


def _commit_line(place: int, commit: BisectCommit) -> Line:
    value = None if commit.effect is None else ratio_of(commit.effect)
    return Line(
        cells=(
            short(commit.sha),
            one_line(commit.subject, length_max=_SUBJECT_MAX),
            one_line(author_name(commit.author), length_max=_AUTHOR_MAX),
            "good end, beside every other" if place == 0 else _STATES[commit.state],
            str(commit.starts) if commit.starts else NOT_KNOWN,
            f"{mark(value)} {ratio(value)}".strip(),
            # What the good end has is that nothing changed, which is no commit's.
            NOT_KNOWN if place == 0 else belief(commit.posterior),
        ),
        tone=tone(value),
    )


def _job_line(document: BisectDocument, observation: Observation) -> Line:
    values = observation.log_ratios
    mean = ratio_of(math.fsum(values) / len(values)) if values else None
    return Line(
        cells=(
            short(document.commits[observation.commit].sha),
            _STATES[observation.state],
            ratio(mean),
            _each(values),
            f"{observation.seconds / 60:.1f}",
            f"{observation.build_seconds / 60:.1f}",
            observation.job,
        ),
        tone=tone(mean),
    )


def _each(values: Sequence[float]) -> str:
    """Return the ratios of single starts, the first ones of too many."""
    few = [ratio(ratio_of(value)) for value in values[:6]]
    return " ".join([*few, "…"] if len(values) > len(few) else few) or NOT_KNOWN

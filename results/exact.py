"""Exact counters of a pair: fixed queries that both sides were asked, and how their work differed.

An optional part of the run document, made where a suite names cases. A difference is a yes or a no
without noise, and still no verdict: between two releases many differences are meant. Everything
here was said by servers under test: text, bounded, never markup.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from results.values import Name, NonNegative, Part, Text

CASES_MAX: Final = 50
COUNTERS_MAX: Final = 200
#: Every counter may differ, and plan and answer besides.
DIFFERENCES_MAX: Final = COUNTERS_MAX + 2


class CaseDifference(Part):
    """One thing in which candidate and baseline differ for a case."""

    #: A counter's name, `plan` or `answer`.
    what: Name
    #: A number, an answer, or EXPLAIN as the server printed it.
    baseline: Text
    candidate: Text


class ComparedCase(Part):
    """One query that both sides answered."""

    name: Name
    statement: Text
    #: What the baseline counted, of the counters that both have and that repeat.
    counters: dict[Name, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict, max_length=COUNTERS_MAX
    )
    differences: tuple[CaseDifference, ...] = Field(default=(), max_length=DIFFERENCES_MAX)


class ExactCounters(Part):
    """What came of all cases that a suite names."""

    cases: tuple[ComparedCase, ...] = Field(default=(), max_length=CASES_MAX)
    #: What could not be compared, and why.
    gaps: tuple[Text, ...] = Field(default=(), max_length=CASES_MAX + 2)
    seconds: NonNegative = 0

    @property
    def different(self) -> tuple[ComparedCase, ...]:
        """The cases in which the sides differ."""
        return tuple(case for case in self.cases if case.differences)

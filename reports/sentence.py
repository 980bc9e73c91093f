"""The one sentence a person can repeat; pages, alerts, comments and the terminal all say it.

Verdicts come in, plain text goes out, unescaped. Loudest first: regressions, improvements, what
could not be decided, what stayed as it was.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from detectors.verdict import Decision
from reports.numbers import detectable_percent, loss_percent, percent, percent_within, plain, short
from results.document import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from detectors.verdict import Verdict
    from results.document import Failure

#: More names than this are counted, not listed: a sentence with twelve numbers repeats badly.
NAMED_MAX: Final = 3

Judged = tuple[str, "Verdict"]

_LOUDEST_FIRST: Final = (
    Decision.REGRESSION,
    Decision.IMPROVEMENT,
    Decision.INCONCLUSIVE,
    Decision.NO_CHANGE,
)


def sentence(verdicts: Mapping[str, Verdict], *, at: str, confirmed: bool = True) -> str:
    """Return one sentence for the verdicts of a commit, by workload.

    For example "scan is 9.1 % slower (95 %: 8.2 to 10.0) at 3f2c1ab0; point-query unchanged within
    1.2 %".

    Args:
        verdicts: By workload.
        at: The commit; shortened to the digits that people use.
        confirmed: False while a suspicion waits for its paired job: then it only `looks` slower.
    """
    by_decision: dict[Decision, list[Judged]] = {decision: [] for decision in Decision}
    # By name, whatever the order they come in: a page reads them from the store, a comment from the
    # run, and both have to say the same.
    for workload, verdict in sorted(verdicts.items(), key=lambda item: item[0]):
        by_decision[verdict.decision].append((workload, verdict))
    where = f" at {short(at)}"
    parts: list[str] = []
    for decision in _LOUDEST_FIRST:
        judged = by_decision[decision]
        if judged:
            # The commit is named once, in the first clause.
            first = "" if parts else where
            parts.append(_clause(decision, judged, where=first, confirmed=confirmed))
    return "; ".join(parts) or f"no workload was judged{where}"


def outcome_sentence(outcome: Outcome, *, at: str, failure: Failure | None = None) -> str:
    """Return one sentence for a run that was not judged, such as "3f2c1ab0 does not build"."""
    why = f" ({failure.stage}: {_first_line(failure.message)})" if failure else ""
    words = {
        Outcome.MEASURED: "was measured; nothing is judged yet",
        Outcome.BUILD_FAILED: f"does not build{why}",
        Outcome.UNCHANGED: "installs the same files as the commit before; not measured again",
        Outcome.FAILED: f"could not be measured{why}",
        Outcome.BUILT: "is built; nothing of it was measured",
        Outcome.UNSTABLE: "was measured on an unstable host; its numbers are kept and not judged"
        f"{why}",
    }
    return f"{short(at)} {words[outcome]}"


def _clause(decision: Decision, judged: Sequence[Judged], *, where: str, confirmed: bool) -> str:
    """Return the clause for all workloads of one decision."""
    if decision is Decision.NO_CHANGE:
        return _unchanged(judged, where=where)
    if decision is Decision.INCONCLUSIVE:
        return _undecided(judged, where=where)
    return _moved(judged, where=where, confirmed=confirmed)


def _moved(judged: Sequence[Judged], *, where: str, confirmed: bool) -> str:
    """Return the clause for regressions or improvements, the largest first."""
    largest = sorted(judged, key=lambda item: -abs(item[1].change.effect))
    verb = "is" if confirmed else "looks"
    named = ", ".join(f"{name} {verb} {_amount(verdict)}" for name, verdict in largest[:NAMED_MAX])
    more = len(judged) - NAMED_MAX
    return f"{named} and {more} more{where}" if more > 0 else f"{named}{where}"


def _undecided(judged: Sequence[Judged], *, where: str) -> str:
    """Return the clause for inconclusive verdicts with the loss that would have been seen.

    Several share the bound of the noisiest. What a decision would take is in the verdict's reason,
    which tables and pages show.
    """
    names = [name for name, _ in judged]
    _, noisiest = max(judged, key=lambda item: item[1].change.detectable_effect)
    verb = "is" if len(names) == 1 else "are"
    found = f", {_amount(noisiest)}" if len(names) == 1 else ""
    if not math.isfinite(noisiest.change.detectable_effect):
        return f"{_counted(names)} {verb} inconclusive{where}{found}: {noisiest.reason}"
    seen = percent(detectable_percent(noisiest.change.detectable_effect))
    return (
        f"{_counted(names)} {verb} inconclusive{where}{found}: "
        f"only a loss above {seen} would have shown"
    )


def _unchanged(judged: Sequence[Judged], *, where: str) -> str:
    """Return the clause for equivalence, with the widest end of the intervals as the bound."""
    bound = max(
        abs(loss_percent(end))
        for _, verdict in judged
        for end in (verdict.change.interval.low, verdict.change.interval.high)
    )
    return (
        f"{_counted([name for name, _ in judged])} unchanged within {percent_within(bound)}{where}"
    )


def _amount(verdict: Verdict) -> str:
    """Return size and interval, such as "9.1 % slower (95 %: 8.2 to 10.0)"."""
    change = verdict.change
    falling = change.effect < 0
    word = {
        (True, 1): "slower",
        (False, 1): "faster",
        (True, -1): "lower",
        (False, -1): "higher",
    }[falling, verdict.direction]
    # The interval is in the direction of the word; a negative end means "the other way".
    sign = 1 if falling else -1
    ends = sorted(sign * loss_percent(end) for end in (change.interval.low, change.interval.high))
    size = percent(sign * loss_percent(change.effect))
    if not all(math.isfinite(end) for end in ends):
        return f"{size} {word} (no interval yet)"
    confidence = f"{change.interval.confidence * 100:g} %"
    return f"{size} {word} ({confidence}: {plain(ends[0])} to {plain(ends[1])})"


def _counted(names: Sequence[str]) -> str:
    """Return the names as a list, or only their number where there are many."""
    if len(names) > NAMED_MAX:
        return f"{len(names)} workloads"
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _first_line(text: str) -> str:
    """Return the first line of a message, short enough for a sentence."""
    line = text.strip().splitlines()[0].strip() if text.strip() else "no reason given"
    return line if len(line) <= 120 else f"{line[:119]}…"  # noqa: PLR2004  one line of a page

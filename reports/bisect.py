"""The words of a bisect: one sentence, and the whole of it in Markdown.

A bisect document comes in, text goes out. The sentence is plain and unescaped, as those of
`reports.sentence` are; in Markdown everything that is not our own wording passes through
`reports.markup`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from bisects.document import BisectEnd, CommitState
from bisects.levels import off_levels
from reports.bisect_chart import bisect_chart
from reports.bisect_tables import commits_table, jobs_table, sure
from reports.markdown import table_markdown
from reports.markup import markdown, markdown_block, one_line
from reports.numbers import loss_percent, percent, plain, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisects.document import BisectDocument

__all__ = [
    "again_command",
    "bisect_chart",
    "bisect_markdown",
    "bisect_sentence",
    "notes",
    "sure",
]

#: Commits that a sentence names with their subjects; more are told by their hashes.
SUBJECTS_MAX: Final = 2
#: Commits that a sentence names at all.
NAMED_MAX: Final = 20
#: Reasons that are listed.
FAILURES_MAX: Final = 20
_USUAL_STOP: Final = 0.95


def bisect_sentence(document: BisectDocument) -> str:
    """Return where a bisect stands, as one plain sentence.

    For example: scan is 9.1 % slower (95 %: 8.2 to 10.0) since 3f2c1abc "Check the record format"
    by Ann (97 %).
    """
    match document.end:
        case None:
            return _under_way(document)
        case BisectEnd.CULPRIT | BisectEnd.INDISTINGUISHABLE:
            return _found(document)
        case BisectEnd.NOT_REPRODUCED:
            return _not_reproduced(document)
        case BisectEnd.NOTHING_TO_MEASURE:
            good = short(document.question.good)
            return f"no answer: no commit after {good} can be built and measured."
        case BisectEnd.LIMIT:
            why = "the change is too small for this noise"
        case BisectEnd.BUDGET:
            why = f"the budget of {document.question.budget_minutes:g} minutes is used up"
        case BisectEnd.CANCELLED:
            why = "it was cancelled"
    return f"no answer, {why} after {_starts(document)}: {_guess(document)}."


def bisect_markdown(document: BisectDocument, *, commit_url: str | None = None) -> str:
    """Return a whole bisect in Markdown.

    Args:
        document: The bisect.
        commit_url: Address of the fork's commits, to which a slash and a hash are added.
    """
    jobs = len(document.observations)
    minutes = sum(observation.seconds for observation in document.observations) / 60
    counted = f"{jobs} jobs, {_starts(document)}, {minutes:.0f} minutes"
    parts = [
        f"**{markdown(bisect_sentence(document), length_max=4000)}**",
        _links(document, commit_url),
        *(markdown(note, length_max=1000) for note in notes(document)),
        table_markdown(commits_table(document)),
        f"Nothing changed at all: {percent(100 * document.nothing)}.",
        _failures(document),
        f"<details><summary>Everything measured: {counted}</summary>",
        table_markdown(jobs_table(document)),
        "</details>",
        "To do it again in a checkout:",
        markdown_block(again_command(document)),
    ]
    return "\n\n".join(part for part in parts if part)


def again_command(document: BisectDocument) -> str:
    """Return the command that asks the same on the reader's own machine."""
    asked = document.question
    words = ["forkwatch", "bisect", asked.good, asked.bad, "--workload", asked.workload]
    words += ["--suite", asked.suite, "--budget", f"{asked.budget_minutes:g}m"]
    if asked.stop != _USUAL_STOP:
        words += ["--stop", f"{asked.stop:g}"]
    if asked.seed:
        words += ["--seed", str(asked.seed)]
    return shlex.join(words)


def notes(document: BisectDocument) -> list[str]:
    """Return what a reader should know besides: commits that one step does not explain."""
    found = off_levels(document)
    if not found:
        return []
    named = "; ".join(
        f"{short(document.commits[one.commit].sha)} is {_amount_of(one.off)} than that"
        for one in found[:3]
    )
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""  # noqa: PLR2004  as shown above
    asked = document.question
    good, bad = short(asked.good), short(document.commits[found[0].commit].sha)
    if document.culprits and found[0].commit > document.culprits[0]:
        good, bad = short(document.commits[document.culprits[0]].sha), short(asked.bad)
    return [
        (
            f"One step does not explain all of it: {named}{more}. There may be another step, or a "
            f"fix, between {good} and {bad}: bisect that range too."
        )
    ]


def _what(document: BisectDocument) -> str:
    """Return what became of the workload: "scan is 9.1 % slower (95 %: 8.2 to 10.0)"."""
    name = one_line(document.question.workload)
    if document.effect is None:
        return f"{name} changed"
    low, high = document.effect_low, document.effect_high
    if low is None or high is None:
        return f"{name} is {_amount_of(document.effect)} (no interval yet)"
    # The interval is in the direction of the word; a negative end means "the other way".
    sign = 1 if document.effect < 0 else -1
    ends = sorted(sign * loss_percent(end) for end in (low, high))
    interval = f"95 %: {plain(ends[0])} to {plain(ends[1])}"
    return f"{name} is {_amount_of(document.effect)} ({interval})"


def _amount_of(effect: float) -> str:
    slower = effect < 0
    size = percent((1 if slower else -1) * loss_percent(effect))
    return f"{size} {'slower' if slower else 'faster'}"


def _under_way(document: BisectDocument) -> str:
    likeliest = document.likeliest
    best = _name(document, likeliest) if likeliest else "that nothing changed"
    left = document.minutes_left or 0.0
    return (
        f"bisecting {one_line(document.question.workload)}: most probable is {best} "
        f"({sure(document.probability)}); {document.entropy_bits:.1f} bits are unknown, "
        f"about {left:.0f} min to go."
    )


def _not_reproduced(document: BisectDocument) -> str:
    good, bad = short(document.question.good), short(document.question.bad)
    if document.commits[-1].state is CommitState.SAME:
        return f"not reproduced: {bad} installs the same files as {good}."
    return (
        f"not reproduced: {one_line(document.question.workload)} is the same at {good} and {bad} "
        f"({sure(document.probability)}, {_starts(document)})."
    )


def _found(document: BisectDocument) -> str:
    """Return which commit it was, or which ones it may have been and why no more is known."""
    believed = f"({sure(document.probability)})"
    if not any(document.culprits):
        return f"most probably nothing changed {believed}."
    alike = ""
    if len(document.culprits) > 1:
        count = sum(commit.state is CommitState.BROKEN for commit in document.commits)
        broken = "a commit" if count == 1 else f"{count} commits"
        alike = f", which cannot be told apart because {broken} cannot be measured"
    return f"{_what(document)} since {_one_of(document)}{alike} {believed}."


def _guess(document: BisectDocument) -> str:
    """Return what is most probable so far."""
    believed = f"({sure(document.probability)})"
    if not any(document.culprits):
        return f"most probably nothing changed {believed}"
    workload = one_line(document.question.workload)
    return f"most probably {workload} changed at {_one_of(document)} {believed}"


def _one_of(document: BisectDocument) -> str:
    """Return the culprits as alternatives, "nothing changed" among them where that is one."""
    places = [place for place in document.culprits if place]
    if len(places) <= SUBJECTS_MAX:
        names = [_name(document, place) for place in places]
    else:
        names = [short(document.commits[place].sha) for place in places[:NAMED_MAX]]
    if len(places) > NAMED_MAX:
        names.append(f"{len(places) - NAMED_MAX} more")
    listed = names[0] if len(places) == 1 else f"one of {len(places)} commits: {_either(names)}"
    return f"{listed}, or nothing changed" if 0 in document.culprits else listed


def _either(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _name(document: BisectDocument, place: int) -> str:
    commit = document.commits[place]
    subject = one_line(commit.subject, length_max=80)
    author = one_line(commit.author, length_max=40)
    by = f" by {author}" if author else ""
    return f'{short(commit.sha)} "{subject}"{by}'


def _starts(document: BisectDocument) -> str:
    count = document.measured_starts
    return f"{count} start" if count == 1 else f"{count} starts"


def _links(document: BisectDocument, commit_url: str | None) -> str:
    """Return links to the culprits, few enough to be followed."""
    places = [place for place in document.culprits if place]
    if commit_url is None or not 0 < len(places) <= FAILURES_MAX:
        return ""
    hashes = [document.commits[place].sha for place in places]
    links = ", ".join(f"[{short(sha)}]({commit_url.rstrip('/')}/{sha})" for sha in hashes)
    return f"Culprit: {links}" if len(hashes) == 1 else f"Culprit is one of: {links}"


def _failures(document: BisectDocument) -> str:
    """Return the commits that could not be measured, with the reason of each."""
    broken = [commit for commit in document.commits if commit.state is CommitState.BROKEN]
    if not broken:
        return ""
    lines = [
        f"- {short(commit.sha)} {markdown(commit.subject, length_max=80)}: "
        f"{markdown(commit.failure or 'no reason given', length_max=300)}"
        for commit in broken[:FAILURES_MAX]
    ]
    if len(broken) > FAILURES_MAX:
        lines.append(f"- and {len(broken) - FAILURES_MAX} more")
    return "\n".join(["Could not be measured:", "", *lines])

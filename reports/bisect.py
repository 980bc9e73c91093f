"""The words of a bisect: one sentence, and the whole of it in Markdown.

A bisect document comes in, text goes out. The sentence is plain and unescaped, as those of
`reports.sentence` are; in Markdown everything that is not our own wording passes through
`reports.markup`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from bisects.document import BisectEnd, CommitState
from reports.bisect_chart import bisect_chart
from reports.bisect_evidence import evidence_markdown
from reports.bisect_steps import amount, notes
from reports.bisect_tables import author_name, belief, commits_table, jobs_table, sure
from reports.markdown import table_markdown
from reports.markup import markdown, markdown_block, one_line
from reports.numbers import loss_percent, plain, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisects.document import BisectDocument
    from reports.bisect_evidence import Evidence

__all__ = [
    "again_command",
    "bisect_chart",
    "bisect_markdown",
    "bisect_sentence",
    "explain_command",
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


def bisect_markdown(
    document: BisectDocument, *, commit_url: str | None = None, evidence: Evidence | None = None
) -> str:
    """Return a whole bisect in Markdown.

    Args:
        document: The bisect.
        commit_url: Address of the fork's commits, to which a slash and a hash are added.
        evidence: What was counted at the culprit, if anything was.
    """
    parts = [
        f"**{markdown(bisect_sentence(document), length_max=4000)}**",
        _links(document, commit_url),
        *(markdown(note, length_max=1000) for note in notes(document)),
        table_markdown(commits_table(document)),
        f"Nothing changed at all: {belief(document.nothing)}.",
        _failures(document),
        _measured(document),
        _inside(document),
        evidence_markdown(evidence) if evidence else "",
        "To do it again in a checkout:",
        markdown_block(again_command(document)),
        *_why(document, evidence),
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


def explain_command(document: BisectDocument) -> str:
    """Return the command that tells what the culprit does more of; empty where none is named."""
    if document.culprit is None:
        return ""
    found, place = document.culprit
    sha, asked = short(found.commits[place].sha), found.question
    words = ["forkwatch", "explain", f"{sha}~1", sha, "--workload", asked.workload]
    return shlex.join([*words, "--suite", asked.suite, "--profile"])


def _what(document: BisectDocument) -> str:
    """Return what became of the workload: "scan is 9.1 % slower (95 %: 8.2 to 10.0)"."""
    name = one_line(document.question.workload)
    if document.effect is None:
        return f"{name} changed"
    low, high = document.effect_low, document.effect_high
    if low is None or high is None:
        return f"{name} is {amount(document.effect)} (no interval yet)"
    # The interval is in the direction of the word; a negative end means "the other way".
    sign = 1 if document.effect < 0 else -1
    ends = sorted(sign * loss_percent(end) for end in (low, high))
    interval = f"95 %: {plain(ends[0])} to {plain(ends[1])}"
    return f"{name} is {amount(document.effect)} ({interval})"


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
        broken = _broken(document)
        alike = f", which cannot be told apart because {broken} cannot be measured"
    found = f"{_what(document)} since {_one_of(document)}{alike} {believed}"
    return f"{found}{_within(document)}."


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
    author = one_line(author_name(commit.author), length_max=40)
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
    if document.culprit is not None:
        inner, place = document.culprit
        # It may have come by way of a merge.
        hashes = list(dict.fromkeys([*hashes, inner.commits[place].sha]))
    links = [f"[{short(sha)}]({commit_url.rstrip('/')}/{sha})" for sha in hashes]
    if len(places) == 1:
        return f"Culprit: {', by way of '.join(reversed(links))}"
    return f"Culprit is one of: {', '.join(links)}"


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


def _within(document: BisectDocument) -> str:
    """Return which of the commits that a merge brought it was, as the end of a sentence."""
    inner = document.merged
    if inner is None:
        return ""
    believed = f"({sure(inner.probability)})"
    count = len(inner.commits) - 2
    brought = "the one commit" if count == 1 else f"the {count} commits"
    if inner.end is BisectEnd.NOT_REPRODUCED:
        return f"; beside its first parent the merge shows no change {believed}"
    if inner.end not in {BisectEnd.CULPRIT, BisectEnd.INDISTINGUISHABLE} or not any(inner.culprits):
        return f"; which of {brought} that it merged it was is not known yet"
    if inner.culprits == (count + 1,):
        return f"; none of {brought} that it merged shows it: it came with merging {believed}"
    return f"; of what it merged, it is {_one_of(inner)} {believed}{_within(inner)}"


def _measured(document: BisectDocument) -> str:
    """Return everything that was measured, folded away."""
    jobs = len(document.observations)
    minutes = sum(observation.seconds for observation in document.observations) / 60
    counted = f"{jobs} jobs, {_starts(document)}, {minutes:.0f} minutes"
    summary = f"<details><summary>Everything measured: {counted}</summary>"
    return f"{summary}\n\n{table_markdown(jobs_table(document))}\n\n</details>"


def _inside(document: BisectDocument) -> str:
    """Return the search among what the culprit merged, if there was one."""
    inner = document.merged
    if inner is None:
        return ""
    parent = short(inner.question.good)
    parts = [
        f"**What it merged, beside its first parent {parent}:**",
        *(markdown(note, length_max=1000) for note in notes(inner)),
        table_markdown(commits_table(inner)),
        _failures(inner),
        _measured(inner),
        _inside(inner),
    ]
    return "\n\n".join(part for part in parts if part)


def _why(document: BisectDocument, evidence: Evidence | None) -> list[str]:
    """Return how to see what the culprit does more of, where nobody has looked yet."""
    command = explain_command(document)
    if not command or (evidence is not None and evidence.explanation is not None):
        return []
    return ["To see which functions need more:", markdown_block(command)]


def _broken(document: BisectDocument) -> str:
    """Return the commits that cannot be measured: by its name if it is one, else how many."""
    found = [commit for commit in document.commits if commit.state is CommitState.BROKEN]
    return short(found[0].sha) if len(found) == 1 else f"{len(found)} commits"

"""What is said on Slack: one message for each alert, and the news in its thread.

A confirmed regression and how it stands come in, blocks with a fallback text go out, within Slack's
limits. Where it is posted, and what a button does, was decided elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from detectors.verdict import Decision
from reports.facts import compared, host_state, reproduction, rows_that, visible_loss
from reports.issue import issue_title
from reports.markup import markdown, one_line
from reports.numbers import short
from reports.sentence import sentence
from reports.slack_table import left_out, narrow_table
from reports.slack_text import (
    HEADER_LENGTH_MAX,
    TEXT_LENGTH_MAX,
    VALUE_LENGTH_MAX,
    bullets,
    from_markdown,
    header,
    link,
    mrkdwn,
    paragraph,
    person,
    plain,
    preformatted,
    rich_text,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reports.rows import Row
    from reports.slack_text import Part
    from results.document import RunDocument

#: What the ids of our buttons begin with.
ACTION_PREFIX: Final = "forkwatch-"
#: Of the sentence; three workloads with their intervals take half of it.
_SENTENCE_LENGTH_MAX: Final = 600
#: Of one fact; a subject of a commit is cut at 200 by itself.
_FACT_LENGTH_MAX: Final = 500
#: Of all facts; the rest of a text object is for the commands and the link.
_FACTS_LENGTH_MAX: Final = 2_200


@dataclass(frozen=True, kw_only=True)
class Button:
    """A button below an alert."""

    label: str
    #: `primary`, `danger` or nothing.
    style: str = ""
    #: Asked before it counts: a thumb slips, and these are not for everybody to take back.
    question: str = ""


#: By what they do, in the order in which they are shown.
BUTTONS: Final[Mapping[str, Button]] = {
    "acknowledge": Button(label="Acknowledge", style="primary"),
    "accept": Button(
        label="Accept as intended",
        question="Take this loss as intended? The alert is closed, and later commits are compared "
        "with the new level.",
    ),
    "bisect": Button(label="Bisect"),
    "mute": Button(label="Mute", question="No news about this alert for a week?"),
    "false-alarm": Button(
        label="False alarm",
        style="danger",
        question="Is nothing slower? The alert is closed and counted as a mistake of forkwatch.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class SlackMessage:
    """A message before it is sent."""

    #: For notifications, and for clients without blocks; escaped.
    text: str
    blocks: tuple[Part, ...]

    @property
    def digest(self) -> str:
        """The same for messages that say the same."""
        said = json.dumps([self.text, self.blocks], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How an alert stands at the moment."""

    #: In Markdown: what became of it, such as "Acknowledged"; empty while nothing has.
    said: str = ""
    resolved: bool = False
    #: A bisect has named the commit, so that the range it was in is no news any more.
    searched: bool = False
    #: What its buttons do; the names are those of `BUTTONS`.
    actions: tuple[str, ...] = ()


def alert_message(
    rows: Sequence[Row],
    *,
    document: RunDocument,
    good: str,
    alert: str,
    page: str | None = None,
    standing: Standing | None = None,
) -> SlackMessage:
    """Return the message of an alert.

    Args:
        rows: Of the paired run that confirmed the regression.
        document: That run.
        good: Last commit known to be as fast as before; the culprit lies in `(good, bad]`.
        alert: Its id, which the buttons hand back.
        page: Address of the alert's page.
        standing: What became of it so far.
    """
    standing = standing or Standing()
    title = _title(rows, document=document, resolved=standing.resolved)
    verdicts = {row.workload: row.verdict for row in rows if row.verdict is not None}
    said = one_line(
        sentence(verdicts, at=document.candidate.commit.sha), length_max=_SENTENCE_LENGTH_MAX
    )
    outcome = from_markdown(standing.said, length_max=_SENTENCE_LENGTH_MAX)
    # What is over is told in the past, and less loudly.
    found = plain(f"What was found: {said}") if standing.resolved else plain(said, bold=True)
    parts = [paragraph(found), preformatted(narrow_table(rows))]
    more = left_out(rows)
    if more:
        parts.append(paragraph(plain(f"{more}.")))
    blocks = [
        header(title),
        *([rich_text(paragraph(*outcome))] if outcome else []),
        rich_text(*parts),
        rich_text(
            *_facts(rows, document=document, good="" if standing.searched else good, page=page)
        ),
        *_buttons(standing.actions, alert),
    ]
    news = words_of(outcome) if standing.resolved and outcome else said
    return SlackMessage(text=mrkdwn(f"{title}. {news}"), blocks=tuple(blocks))


def news_message(text: str) -> SlackMessage:
    """Return news for an alert's thread; `text` is Markdown of ours."""
    pieces = from_markdown(text)
    return SlackMessage(
        text=mrkdwn(words_of(pieces)), blocks=(rich_text(paragraph(*_never_empty(pieces))),)
    )


def deed_message(deed: str, *, user: str, note: str = "") -> SlackMessage:
    """Return who did what about an alert, such as "Acknowledged by Ada", for its thread."""
    why = f": {one_line(note, length_max=_FACT_LENGTH_MAX)}" if note.strip() else "."
    pieces = [plain(f"{deed} by "), person(user), plain(why)]
    # The id is Slack's own, looked at where it came in; as a mention it is shown by name.
    fallback = f"{mrkdwn(deed)} by <@{user}>{mrkdwn(why)}"
    return SlackMessage(text=fallback, blocks=(rich_text(paragraph(*pieces)),))


def answer_message(text: str) -> SlackMessage:
    """Return an answer for one person; `text` is plain, and in part not ours."""
    words = one_line(text, length_max=TEXT_LENGTH_MAX)
    return SlackMessage(text=mrkdwn(words), blocks=(rich_text(paragraph(plain(words))),))


def _title(rows: Sequence[Row], *, document: RunDocument, resolved: bool) -> str:
    slower = rows_that(rows, Decision.REGRESSION)
    effects = {row.workload: row.verdict.change.effect for row in slower if row.verdict}
    bad = document.candidate.commit.sha
    title = issue_title(effects, fork=document.fork, bad=bad)
    return one_line(f"{'Resolved: ' * resolved}{title}", length_max=HEADER_LENGTH_MAX)


def _facts(
    rows: Sequence[Row], *, document: RunDocument, good: str, page: str | None
) -> list[Part]:
    """Return the facts around the numbers, and how to see them for oneself.

    Without a good end the range is left out.
    """
    listed = [visible_loss(rows)]
    if good:
        listed.append(f"Culprit: {_culprit(document, good=good)}")
    for text in (compared(document), host_state(document.host, document.placement)):
        listed += [line.removeprefix("- ") for line in text.splitlines()]
    _, command, _ = reproduction(document).split("```")
    parts = [
        bullets(_fitting(listed)),
        paragraph(plain("To see it yourself, in a checkout of the fork:")),
        preformatted(command.strip()),
    ]
    return [*parts, paragraph(link(page, "Page of this alert"))] if page else parts


def _fitting(facts: Sequence[str]) -> list[list[Part]]:
    """Return as many facts as fit, as pieces; what is left out is counted."""
    shown: list[list[Part]] = []
    room = _FACTS_LENGTH_MAX
    for fact in facts:
        item = from_markdown(fact, length_max=_FACT_LENGTH_MAX)
        room -= len(words_of(item))
        if room < 0:
            break
        shown.append(item)
    lacking = len(facts) - len(shown)
    return [*shown, [plain(f"and {lacking} more that do not fit here")]] if lacking else shown


def _culprit(document: RunDocument, *, good: str) -> str:
    bad = document.candidate.commit
    if bad.parents[:1] == (good,):
        return f"`{short(bad.sha)}` {markdown(bad.subject)}"
    return f"one of `({short(good)}, {short(bad.sha)}]`, without the first and with the last commit"


def _buttons(actions: Sequence[str], alert: str) -> list[Part]:
    assert len(alert) <= VALUE_LENGTH_MAX, "ids of alerts are short"
    wanted = [name for name in BUTTONS if name in actions]
    if not wanted:
        return []
    elements = [_button(name, BUTTONS[name], alert) for name in wanted]
    return [{"type": "actions", "block_id": "forkwatch", "elements": elements}]


def _button(name: str, button: Button, alert: str) -> Part:
    made: dict[str, Any] = {
        "type": "button",
        "action_id": f"{ACTION_PREFIX}{name}",
        "text": {"type": "plain_text", "text": button.label, "emoji": False},
        "value": alert,
    }
    if button.style:
        made["style"] = button.style
    if button.question:
        made["confirm"] = {
            "title": {"type": "plain_text", "text": button.label, "emoji": False},
            "text": {"type": "plain_text", "text": button.question, "emoji": False},
            "confirm": {"type": "plain_text", "text": "Yes", "emoji": False},
            "deny": {"type": "plain_text", "text": "No", "emoji": False},
        }
    return made


def _never_empty(pieces: Sequence[Part]) -> list[Part]:
    """Return the pieces, or a dash where there are none: Slack refuses an empty paragraph."""
    return list(pieces) or [plain("\N{EN DASH}")]

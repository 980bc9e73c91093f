"""The weekly digest for Slack: one message, made for a narrow window and within Slack's limits.

A digest's document comes in as it is stored, blocks with a fallback text go out. Where there is
nothing to say it is one line. Where it is posted was decided elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from reports.markup import one_line
from reports.numbers import NOT_KNOWN
from reports.slack import SlackMessage
from reports.slack_text import (
    HEADER_LENGTH_MAX,
    bullets,
    header,
    link,
    mrkdwn,
    paragraph,
    plain,
    rich_text,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reports.slack_text import Part

#: Items of one section: a chat is read on a phone, and the page has all of them.
ITEMS_MAX: Final = 5
#: Of what an item says first, and of all of it, some ten lines of a phone: five of them are below
#: what Slack takes in a block.
_TEXT_LENGTH_MAX: Final = 300
_ITEM_LENGTH_MAX: Final = 540
_TITLE_LENGTH_MAX: Final = 160
#: Of all sections; Slack takes some 13,000 characters in the blocks of a message.
_WORDS_MAX: Final = 9_000
_HEADLINE_LENGTH_MAX: Final = 600
_GOES_ON: Final = ", and more"


def digest_message(document: Mapping[str, Any], *, base_url: str) -> SlackMessage:
    """Return the message of a week.

    Args:
        document: Of `digest_text.digest_document`.
        base_url: Address of the pages, without a slash at its end.
    """
    headline = one_line(document["headline"], length_max=_HEADLINE_LENGTH_MAX)
    if document["quiet"]:
        line = paragraph(plain(headline))
        return SlackMessage(text=mrkdwn(headline), blocks=(rich_text(line),))
    facts = document["facts"]
    page = f"{base_url}/digests/{quote(facts['week'], safe='')}"
    name, counts = _halves(headline, facts)
    begin = [paragraph(plain(counts, bold=True)), paragraph(plain(one_line(document["span"])))]
    return SlackMessage(
        text=mrkdwn(headline),
        blocks=(
            header(name),
            rich_text(*begin),
            *_sections(document["sections"], base_url=base_url),
            rich_text(paragraph(link(page, "Page of this week"))),
        ),
    )


def _halves(headline: str, facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return fork and week, and what the headline counts: a title that is cut says too little."""
    begin = f"week {facts['week']}"
    place = headline.find(begin)
    name, _, counts = headline[place:].partition(": ")
    title = one_line(f"{headline[:place]}{name}", length_max=HEADER_LENGTH_MAX)
    return title, counts or headline


def _sections(sections: Sequence[Mapping[str, Any]], *, base_url: str) -> list[Part]:
    """Return a block for each section, as long as there is room; what is left out is said."""
    blocks: list[Part] = []
    room = _WORDS_MAX
    for number, section in enumerate(sections):
        items = [_item(item, base_url=base_url) for item in section["items"][:ITEMS_MAX]]
        more = len(section["items"]) - len(items)
        if more:
            items.append([plain(f"and {more} more on the page of this week")])
        room -= sum(len(words_of(item)) for item in items)
        if room < 0:
            left = len(sections) - number
            said = f"{left} more {'section is' if left == 1 else 'sections are'} on the page"
            return [*blocks, rich_text(paragraph(plain(f"{said} of this week.")))]
        title = one_line(section["title"], length_max=_TITLE_LENGTH_MAX)
        blocks.append(rich_text(paragraph(plain(title, bold=True)), bullets(items)))
    return blocks


def _item(item: Mapping[str, Any], *, base_url: str) -> list[Part]:
    """Return an item in pieces; what somebody has to act on can be opened."""
    # Slack refuses a piece without words.
    text = one_line(item["text"], length_max=_TEXT_LENGTH_MAX) or NOT_KNOWN
    opened = _address(item, base_url)
    pieces = [link(opened, text) if opened else plain(text)]
    if item["detail"]:
        detail = _whole_parts(item["detail"], length_max=_ITEM_LENGTH_MAX - len(text))
        pieces.append(plain(f": {detail}"))
    return pieces


def _whole_parts(text: str, *, length_max: int) -> str:
    """Return a list whole where it fits, else as many of its parts as do, and that it goes on."""
    line = one_line(text, length_max=len(text) + 1)
    if len(line) <= length_max:
        return line
    kept = line[: length_max - len(_GOES_ON)]
    end = max(kept.rfind(", "), kept.rfind("; "))
    if end <= 0:
        return one_line(line, length_max=length_max)
    return f"{kept[:end]}{_GOES_ON}"


def _address(item: Mapping[str, Any], base_url: str) -> str:
    """Return the page of what an item is about; only alerts and bisects want somebody to look."""
    for kind in ("alert", "bisect"):
        if item.get(kind):
            return f"{base_url}/{kind}s/{quote(item[kind], safe='')}"
    return ""

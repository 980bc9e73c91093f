"""Text for Slack that cannot be hijacked: rich text in plain pieces, and an escaped fallback.

Untrusted words and Markdown of ours come in, parts of Slack's blocks go out as dictionaries. Rich
text is never searched for marks, mentions or links; a message's fallback text is, and is escaped.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, Final

from reports.markup import lines, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: By Slack's reference of blocks, in characters: of a header, a text object, a button, its value.
HEADER_LENGTH_MAX: Final = 150
TEXT_LENGTH_MAX: Final = 3000
BUTTON_LENGTH_MAX: Final = 75
VALUE_LENGTH_MAX: Final = 2000
#: Blocks of one message.
BLOCKS_MAX: Final = 50
#: Slack takes more and shows a notification of a few lines.
FALLBACK_LENGTH_MAX: Final = 1000
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_CUT: Final = " … (cut: too long for Slack)"

Part = dict[str, Any]

#: Breaks a word for Slack's own linking of names, channels and addresses.
_BREAK: Final = "\N{ZERO WIDTH SPACE}"
_LINKED: Final = re.compile(r"(@|#|://|\bwww(?=\.))", re.IGNORECASE)
#: Inline Markdown as `reports` writes it. An escaped mark comes first, so that what `markup` made
#: inert stays so.
_INLINE: Final = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|`(?P<code>[^`\n]+)`"
    r"|\[(?P<label>[^\]\[\n]+)\]\((?P<url>https?://[^\s()<>]+)\)"
    r"|<(?P<bare>https?://[^\s<>]+)>"
    r"|\*\*(?P<bold>[^*\n]+)\*\*"
)


def mrkdwn(text: str, *, length_max: int = FALLBACK_LENGTH_MAX) -> str:
    """Return text on one line for a fallback: no mention, link or channel comes of it.

    Marks for bold and the like are left: Slack has no escape for them, and they only change looks.
    """
    line = _LINKED.sub(rf"\1{_BREAK}", one_line(text, length_max=length_max))
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain(words: str, *, bold: bool = False, code: bool = False) -> Part:
    """Return words as a piece of rich text."""
    piece: Part = {"type": "text", "text": words}
    style = {name: True for name, on in (("bold", bold), ("code", code)) if on}
    return {**piece, "style": style} if style else piece


def link(url: str, words: str) -> Part:
    """Return a link to an address of ours."""
    return {"type": "link", "url": url, "text": words}


def person(user: str) -> Part:
    """Return a person by their id, shown by name."""
    return {"type": "user", "user_id": user}


def paragraph(*pieces: Part) -> Part:
    """Return pieces as a paragraph of rich text."""
    return {"type": "rich_text_section", "elements": list(pieces)}


def bullets(items: Sequence[Sequence[Part]]) -> Part:
    """Return a list of items, each made of pieces."""
    return {
        "type": "rich_text_list",
        "style": "bullet",
        "elements": [paragraph(*item) for item in items],
    }


def preformatted(text: str) -> Part:
    """Return lines that keep their columns."""
    return {"type": "rich_text_preformatted", "elements": [plain(text)]}


def rich_text(*parts: Part) -> Part:
    """Return paragraphs, lists and preformatted lines as one block."""
    return {"type": "rich_text", "elements": list(parts)}


def header(text: str) -> Part:
    """Return a block with a title."""
    words = one_line(text, length_max=HEADER_LENGTH_MAX)
    return {"type": "header", "text": {"type": "plain_text", "text": words, "emoji": False}}


def words_of(pieces: Sequence[Part]) -> str:
    """Return the words of pieces of rich text, people by their ids."""
    return "".join(str(piece.get("text", piece.get("user_id", ""))) for piece in pieces)


def from_markdown(text: str, *, length_max: int = TEXT_LENGTH_MAX) -> list[Part]:
    """Return inline Markdown of ours as pieces of rich text; a cut is said."""
    pieces: list[Part] = []
    room = length_max - len(_CUT)
    for piece in _pieces(lines(text)):
        words = piece["text"]
        if len(words) > room:
            pieces += [*_joined({**piece, "text": words[:room]}), plain(_CUT)]
            return _merged(pieces)
        pieces += _joined(piece)
        room -= len(words)
    return _merged(pieces)


def _pieces(text: str) -> Iterator[Part]:
    end = 0
    for found in _INLINE.finditer(text):
        yield plain(html.unescape(text[end : found.start()]))
        yield _piece(found)
        end = found.end()
    yield plain(html.unescape(text[end:]))


def _piece(found: re.Match[str]) -> Part:
    groups = found.groupdict()
    if groups["code"] is not None:
        return plain(groups["code"], code=True)
    if groups["url"] is not None:
        return link(groups["url"], _words(groups["label"]))
    if groups["bare"] is not None:
        return link(groups["bare"], groups["bare"])
    if groups["bold"] is not None:
        return plain(_words(groups["bold"]), bold=True)
    return plain(groups["escaped"])


def _joined(piece: Part) -> list[Part]:
    """Return a piece, or nothing where it has no words: Slack refuses an empty one."""
    return [piece] if piece["text"] else []


def _merged(pieces: Sequence[Part]) -> list[Part]:
    """Return the pieces with neighbours of the same look as one."""
    merged: list[Part] = []
    for piece in pieces:
        before = merged[-1] if merged else {}
        same = before.get("type") == piece["type"] == "text"
        if same and before.get("style") == piece.get("style"):
            merged[-1] = {**before, "text": before["text"] + piece["text"]}
        else:
            merged.append(piece)
    return merged


def _words(text: str) -> str:
    """Return the words of escaped Markdown."""
    return html.unescape(_ESCAPED.sub(r"\1", text))

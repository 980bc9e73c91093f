"""A message of Slack's as plain text, near to what its readers see.

Blocks come in, lines go out: titles, paragraphs, lists, tables in columns, buttons in brackets.
Links show where they lead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def drawn(message: Mapping[str, Any]) -> str:
    """Return a message as text."""
    parts = [_block(block) for block in message.get("blocks", [])]
    if not parts and message.get("text"):
        parts = [str(message["text"])]
    parts += [f"[picture: {file['title']}]" for file in message.get("files", [])]
    return "\n\n".join(part for part in parts if part)


def _block(block: Mapping[str, Any]) -> str:
    match block["type"]:
        case "header":
            return f"*{block['text']['text']}*"
        case "rich_text":
            return "\n".join(_part(part) for part in block["elements"])
        case "actions":
            return " ".join(f"[{button['text']['text']}]" for button in block["elements"])
        case "section" | "context":
            texts = [block["text"]] if "text" in block else block.get("elements", [])
            return "\n".join(str(text.get("text", "")) for text in texts)
        case "image":
            return f"[picture: {block.get('alt_text', '')}]"
        case "divider":
            return "---"
    raise AssertionError(f"nobody has drawn {block['type']} yet")


def _part(part: Mapping[str, Any]) -> str:
    match part["type"]:
        case "rich_text_section":
            return _pieces(part)
        case "rich_text_list":
            return "\n".join(f"\N{BULLET} {_pieces(item)}" for item in part["elements"])
        case "rich_text_preformatted":
            lines = _pieces(part).splitlines()
            return "\n".join(["", *(f"    {line}".rstrip() for line in lines), ""])
    raise AssertionError(f"nobody has drawn {part['type']} yet")


def _pieces(part: Mapping[str, Any]) -> str:
    return "".join(_piece(piece) for piece in part["elements"])


def _piece(piece: Mapping[str, Any]) -> str:
    match piece["type"]:
        case "link":
            return f"{piece['text']} <{piece['url']}>"
        case "user":
            return f"<@{piece['user_id']}>"
        case "text":
            style = piece.get("style", {})
            mark = "*" * bool(style.get("bold")) or "`" * bool(style.get("code"))
            return f"{mark}{piece['text']}{mark}"
    raise AssertionError(f"nobody has drawn {piece['type']} yet")

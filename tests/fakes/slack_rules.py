"""What Slack refuses: its documented limits, and the blocks that its own library would not build.

A method and its body come in, Slack's word for the fault or nothing goes out. Each rule has a test
that breaks it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

BLOCKS_MAX: Final = 50
#: Of `text`; Slack cuts what is longer, and we want to hear of it.
TEXT_LENGTH_MAX: Final = 4_000
OBJECT_LENGTH_MAX: Final = 3_000
HEADER_LENGTH_MAX: Final = 150
BUTTON_LENGTH_MAX: Final = 75
VALUE_LENGTH_MAX: Final = 2_000
#: Of a dialog that asks again: title, text, and both answers.
CONFIRM_LENGTHS: Final = {"title": 100, "text": 300, "confirm": 30, "deny": 30}
#: Of the words of all blocks; Slack names no number for `msg_blocks_too_long`, people found this.
MESSAGE_LENGTH_MAX: Final = 13_000
#: Keys of each kind of block and piece, by Slack's reference.
KEYS: Final[dict[str, set[str]]] = {
    "header": {"type", "block_id", "text"},
    "rich_text": {"type", "block_id", "elements"},
    "actions": {"type", "block_id", "elements"},
    "rich_text_section": {"type", "elements"},
    "rich_text_preformatted": {"type", "elements", "border"},
    "rich_text_list": {"type", "elements", "style", "indent", "offset", "border"},
    "text": {"type", "text", "style"},
    "link": {"type", "url", "text", "style", "unsafe"},
    "user": {"type", "user_id", "style"},
    "button": {"type", "text", "action_id", "value", "url", "style", "confirm"},
    "plain_text": {"type", "text", "emoji"},
}
_BODY_KEYS: Final = {
    "chat.postMessage": {"thread_ts", "metadata", "unfurl_links", "unfurl_media", "link_names"},
    "chat.update": {"ts", "metadata", "link_names"},
    "chat.postEphemeral": {"user", "thread_ts", "link_names"},
}
_ALWAYS: Final = {"channel", "text", "blocks"}
_EVENT: Final = re.compile(r"[A-Za-z0-9_]{1,256}")


def fault_of(method: str, body: dict[str, Any]) -> str:  # noqa: PLR0911  one for each rule
    """Return Slack's word for what is wrong with a message, or nothing."""
    if set(body) - _ALWAYS - _BODY_KEYS[method]:
        return "invalid_arguments"
    if not body.get("text"):
        return "no_text"
    if len(body["text"]) > TEXT_LENGTH_MAX:
        return "msg_too_long"
    blocks = body.get("blocks", [])
    if not isinstance(blocks, list) or len(blocks) > BLOCKS_MAX:
        return "invalid_blocks"
    if any(_fault_of_part(block) for block in blocks) or _refused_by_library(blocks):
        return "invalid_blocks"
    if sum(map(_length, blocks)) > MESSAGE_LENGTH_MAX:
        return "msg_blocks_too_long"
    metadata = body.get("metadata")
    if metadata is not None and not _is_metadata(metadata):
        return "invalid_metadata_format"
    return ""


def _is_metadata(metadata: Any) -> bool:
    return (
        isinstance(metadata, dict)
        and set(metadata) == {"event_type", "event_payload"}
        and bool(_EVENT.fullmatch(str(metadata["event_type"])))
        and isinstance(metadata["event_payload"], dict)
    )


def _refused_by_library(blocks: list[Any]) -> bool:
    """Whether Slack's own models know such blocks, and would build them."""
    try:
        parsed = Block.parse_all(blocks)
        for block in parsed:
            if block is None:
                return True
            block.to_dict()
    except (SlackObjectFormationError, TypeError):
        return True
    return False


def _fault_of_part(part: Any) -> bool:
    """Whether a block, or anything in it, is not as Slack's reference has it."""
    if not isinstance(part, dict) or part.get("type") not in KEYS:
        return True
    if set(part) - KEYS[part["type"]]:
        return True
    return _too_long(part) or _empty(part) or any(map(_fault_of_part, _inner(part)))


def _inner(part: dict[str, Any]) -> list[Any]:
    inner = list(part.get("elements", []))
    if isinstance(part.get("text"), dict):
        inner.append(part["text"])
    inner += [value for value in part.get("confirm", {}).values() if isinstance(value, dict)]
    return inner


def _empty(part: dict[str, Any]) -> bool:
    if part["type"] in {"text", "plain_text", "link"} and "text" in part:
        return not part["text"]
    return part["type"] in {"rich_text", "rich_text_section", "actions"} and not part["elements"]


def _too_long(part: dict[str, Any]) -> bool:
    kind = part["type"]
    if kind == "header":
        return len(part["text"]["text"]) > HEADER_LENGTH_MAX
    if kind == "button":
        return (
            len(part["text"]["text"]) > BUTTON_LENGTH_MAX
            or len(part.get("value", "")) > VALUE_LENGTH_MAX
            or any(
                len(part.get("confirm", {}).get(name, {}).get("text", "")) > most
                for name, most in CONFIRM_LENGTHS.items()
            )
        )
    # Slack names no number for rich text; that of its other text objects is asked of it here.
    return kind == "rich_text" and _length(part) > OBJECT_LENGTH_MAX


def _length(part: Any) -> int:
    if not isinstance(part, dict):
        return 0
    own = part["text"] if isinstance(part.get("text"), str) else ""
    return len(own) + sum(map(_length, _inner(part)))

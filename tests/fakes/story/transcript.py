"""The transcript of the story: scenes come in, a page of Markdown goes out.

GitHub's texts are quoted as they are, so that a forge shows them as its readers saw them; Slack's
are drawn as plain text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tests.fakes.story.heard import Heard

#: Stands for the lines of an edited message that are what they were.
_AS_BEFORE: Final = "[...]"
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HEAD: Final = """\
# A week with forkwatch

This page is what people saw in a week of a fork: every check, comment, issue and Slack message, \
in order.
`make story` writes it, and a test compares it with what the code says today.

What is real: git, the whole service with its durable flows and its database, its HTTP doors, \
every decision and every text.
What is not: GitHub and Slack are doubles that take and give only what the real ones do, the \
clock jumps from scene to scene, and the runner measures nothing.
It reads from a script how fast each commit is and adds noise between runs, starts and slices, \
drawn from a fixed seed; the service knows neither the script nor the seed.
The people are `U0ADA`, whose buttons count, and `U0EVE`, whose buttons do not.
Checks of commits on the branch are switched off here, because quiet ones would fill the page.
Marks that GitHub does not show are left out, and so are the lines of an edited Slack message \
that stay as they were; a text that was written over within one scene is shown as it was in the end.
"""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Something that happened, and who heard of it."""

    title: str
    #: When it began.
    at: datetime
    #: What happened, in Markdown.
    told: str
    #: What the service wrote down about a commit, a line each.
    log: Sequence[str] = ()
    heard: Sequence[Heard] = ()


def transcript(scenes: Sequence[Scene]) -> str:
    """Return the page."""
    parts = [_HEAD.rstrip()]
    for number, scene in enumerate(scenes, start=1):
        parts += _scene(number, scene)
    return "\n\n".join(parts) + "\n"


def _scene(number: int, scene: Scene) -> Iterator[str]:
    yield f"## {number}. {scene.title}"
    yield f"*{_moment(scene.at)}.* {scene.told}"
    if scene.log:
        yield "\n".join(["The service notes:", "", *(f"- {line}" for line in scene.log)])
    shown = [one for one in scene.heard if _is_news(one)]
    for place, one in enumerate(shown):
        # A check whose title has the sentence has the rest of the comment.
        said_below = any(later.now.text.endswith(one.now.text) for later in shown[place + 1 :])
        yield from _heard(one, said_below=said_below)
    if not shown:
        yield "**Nobody hears of it**: no word on GitHub, none on Slack."


def _is_news(one: Heard) -> bool:
    # That an issue is open is said by its being opened.
    return one.now.key[0] != "state" or one.before is not None


def _heard(one: Heard, *, said_below: bool) -> Iterator[str]:
    now, where = one.now, "GitHub" if one.now.on_github else "Slack"
    edited = ", edited" if one.before is not None and now.text else ""
    yield f"**{where}: {now.place}{edited}**"
    if now.on_github:
        title = [f"**{now.title}**"] if now.title else []
        body = "The rest is that of the comment below." if said_below and now.text else now.text
        text = "\n\n".join([*title, body]).strip()
        if text:
            yield _quoted(text)
    else:
        text = now.text if one.before is None else _edited(now.text, one.before.text)
        yield f"```text\n{text}\n```"


def _edited(now: str, before: str) -> str:
    """Return the lines of a text that were not there before; what stays is left out, and said."""
    known = {*before.splitlines(), ""}
    shown: list[str] = []
    for line in now.splitlines():
        new = _AS_BEFORE if line in known else line
        if new != _AS_BEFORE or shown[-1:] != [_AS_BEFORE]:
            shown.append(new)
    return "\n".join(shown)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _moment(at: datetime) -> str:
    # Not by `strftime`, whose names follow the locale.
    return f"{_DAYS[at.weekday()]}, {at:%H:%M}"

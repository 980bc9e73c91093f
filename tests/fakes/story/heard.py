"""What people see on GitHub and Slack that they did not see before.

The doubles come in; what is new or different since the last look goes out, place by place, each in
the order in which it came. What was written and written over in between is not seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.fakes.slack_api import CHANNEL
from tests.fakes.story.slack_drawn import drawn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.fakes.github_api.world import World
    from tests.fakes.slack_api import SlackDouble

#: The line by which a text of ours is found again, which no reader sees.
_MARKER: Final = re.compile(r"\A<!-- forkwatch [^\n]* -->\n")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Something that a reader sees now."""

    #: What tells it from everything else.
    key: tuple[str, ...]
    #: Where it is, in words.
    place: str
    #: On one line; empty where it has no title.
    title: str = ""
    #: Markdown on GitHub, plain text on Slack.
    text: str
    on_github: bool


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A look at one thing that is new, or is not what it was."""

    now: Seen
    #: What it was at the last look; None where it was not there.
    before: Seen | None


class Ears:
    """Remembers what was there at the last look."""

    def __init__(self, world: World, slack: SlackDouble) -> None:
        self._world, self._slack = world, slack
        self._known: Mapping[tuple[str, ...], Seen] = {}

    def news(self) -> list[Heard]:
        """Return what is new or different since the last look."""
        found = {one.key: one for one in self._everything()}
        known, self._known = self._known, found
        return [
            Heard(now=one, before=known.get(key))
            for key, one in found.items()
            if known.get(key) != one
        ]

    def _everything(self) -> Iterator[Seen]:
        """Give all there is to see: the reason for closing an issue comes before its being so."""
        yield from map(_check, self._world.check_runs)
        ours = [issue for issue in self._world.issues if "pull_request" not in issue]
        yield from map(_issue, ours)
        for number, comment in self._world.comments:
            yield _comment(number, comment)
        yield from map(_state, ours)
        for message in self._slack.messages[CHANNEL]:
            yield _message(message, first=self._slack.messages[CHANNEL][0])
        for place, whisper in enumerate(self._slack.whispers):
            key, who = ("whisper", str(place)), f"to <@{whisper['user']}> alone"
            yield Seen(key=key, place=who, text=drawn(whisper), on_github=False)


def _check(run: Mapping[str, Any]) -> Seen:
    output = run["output"]
    mark = run["conclusion"] or run["status"]
    return Seen(
        key=("check", str(run["id"])),
        place=f"check `{run['name']}` on `{run['head_sha'][:8]}`, {mark}",
        title=output["title"] or "",
        text=output["summary"] or "",
        on_github=True,
    )


def _issue(issue: Mapping[str, Any]) -> Seen:
    labels = ", ".join(f"`{label['name']}`" for label in issue["labels"])
    return Seen(
        key=("issue", str(issue["number"])),
        place=f"issue #{issue['number']}, labelled {labels}",
        title=issue["title"],
        text=_shown(issue["body"]),
        on_github=True,
    )


def _state(issue: Mapping[str, Any]) -> Seen:
    why = f" as {issue['state_reason']}" if issue["state"] == "closed" else ""
    return Seen(
        key=("state", str(issue["number"])),
        place=f"issue #{issue['number']} is {issue['state']}{why}",
        text="",
        on_github=True,
    )


def _comment(number: int, comment: Mapping[str, Any]) -> Seen:
    return Seen(
        key=("comment", str(comment["id"])),
        place=f"comment on #{number} by {comment['user']['login']}",
        text=_shown(comment["body"]),
        on_github=True,
    )


def _message(message: Mapping[str, Any], *, first: Mapping[str, Any]) -> Seen:
    thread, ours = message.get("thread_ts", message["ts"]), first["ts"]
    which = "the" if thread == ours else "another"
    reply = thread != message["ts"]
    return Seen(
        key=("message", message["ts"]),
        place=f"in {which} thread" if reply else f"{which} message in the channel",
        text=drawn(message),
        on_github=False,
    )


def _shown(body: str) -> str:
    return _MARKER.sub("", body)

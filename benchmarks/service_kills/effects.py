"""What a service leaves behind: rows, words on GitHub and Slack, files; and how two of them differ.

A home folder and the doubles come in, a count of sentences goes out. Times, random secrets and
numbers that a database gives out are left out, so that two lives that did the same leave the same.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, LargeBinary, select

from results.job import DOCUMENT_FILE
from service.store.database import Database
from service.store.schema import METADATA

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Column

    from tests.fakes.github_api.world import World
    from tests.fakes.slack_api import SlackDouble

#: Random, or a memory of when somebody asked.
_VOLATILE: Final = frozenset({"credential_hash", "token_hash", "guid", "digest", "secret_hash"})
#: What a digest says holds durations up to the moment in which it was written.
_DATED: Final = frozenset({"digests.document", "digests.text"})
#: A time of Slack, or one as the service words it.
_TIME: Final = re.compile(
    r"\b\d{10}\.\d{6}\b|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?"
)
_LENGTH_MAX: Final = 160


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What one service left and the other did not."""

    #: Should be there and is not.
    lost: tuple[str, ...]
    #: Is there and should not be, or is there too often.
    double: tuple[str, ...]


def difference(wanted: Counter[str], found: Counter[str]) -> Difference:
    """Return how what was found differs from what was wanted."""
    return Difference(
        lost=tuple(sorted((wanted - found).elements())),
        double=tuple(sorted((found - wanted).elements())),
    )


def effects(home: Path, world: World, slack: SlackDouble) -> Counter[str]:
    """Return everything that a service left behind, as counted sentences."""
    found = [*_rows(home), *_github(world), *_slack(slack), *_files(home)]
    return Counter(sentence.replace(str(home), "HOME") for sentence in found)


def _rows(home: Path) -> list[str]:
    database = Database(f"sqlite:///{home / 'service.sqlite'}")
    found = []
    with database.reading() as session:
        for table in METADATA.sorted_tables:
            columns = [column for column in table.columns if _lasts(column)]
            for row in session.execute(select(*columns)):
                values = dict(zip((column.name for column in columns), row, strict=True))
                found.append(_sentence(f"row of {table.name}", values))
    database.close()
    return found


def _lasts(column: Column[Any]) -> bool:
    """Whether a column is the same in two services that did the same."""
    if isinstance(column.type, LargeBinary) or column.name in _VOLATILE:
        return False
    if f"{column.table.name}.{column.name}" in _DATED:
        return False
    given_out = column.primary_key and isinstance(column.type, Integer)
    return not given_out


def _github(world: World) -> list[str]:
    found = []
    for issue in world.issues:
        kept = {name: issue[name] for name in ("number", "state", "title", "body")}
        kept["labels"] = sorted(label["name"] for label in issue["labels"])
        found.append(_sentence("issue", kept))
    found += [
        _sentence("comment", {"on": number, "body": comment["body"]})
        for number, comment in world.comments
    ]
    last: dict[tuple[str, str], tuple[str, str | None]] = {}
    for sha, status in world.statuses:
        said = (str(status["state"]), status["description"])
        place = (sha, str(status["context"]))
        if last.get(place) == said:
            # A life that comes late may leave out what is over by then; nothing is said again.
            found.append(_sentence("status said again", {"of": place, "said": said}))
        last[place] = said
    for place, said in last.items():
        found.append(_sentence("status", {"of": place, "said": said}))
    for reaction in sorted(world.reactions):
        found.append(_sentence("reaction", {"is": reaction}))
    return found


def _slack(slack: SlackDouble) -> list[str]:
    found = []
    for channel, messages in slack.messages.items():
        for message in messages:
            kept = {
                "channel": channel,
                "in a thread": "thread_ts" in message,
                "text": message.get("text", ""),
                "blocks": message.get("blocks"),
                "files": len(message.get("files") or ()),
            }
            found.append(_sentence("message", kept))
    found += [_sentence("whisper", {"text": whisper.get("text")}) for whisper in slack.whispers]
    return found


def _files(home: Path) -> list[str]:
    places = ("alerts", "digests")
    paths = [path for place in places for path in (home / place).rglob("*") if path.is_file()]
    found = [f"file {path.relative_to(home)}" for path in paths]
    found += [
        f"runner of {path.parent.name}" for path in (home / "jobs").glob(f"*/*{DOCUMENT_FILE}")
    ]
    return found


def _sentence(kind: str, values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, default=str)
    return f"{kind} {_TIME.sub('TIME', text)}"


def shortened(sentence: str) -> str:
    """Return a sentence in one line of a report."""
    return sentence if len(sentence) <= _LENGTH_MAX else f"{sentence[:_LENGTH_MAX]} ..."

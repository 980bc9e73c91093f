"""The story of docs/story.md, told anew: nobody hears what is not sure, and nothing twice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from service.core.model import AlertState
from tests.fakes.story.scenes import CULPRIT, FIX, MORNING, PROPOSED, tell
from tests.fakes.story.transcript import transcript

if TYPE_CHECKING:
    from tests.fakes.story.heard import Heard
    from tests.fakes.story.scenes import Told
    from tests.fakes.story.transcript import Scene

PAGE = Path(__file__).parents[2] / "docs" / "story.md"
CHANGES = {"regression", "improvement"}
#: "update-index is 7.1 % slower (95 %: 5.9 to 8.2)"
_SAID = re.compile(
    r"(?P<workload>[\w()-]+) is (?P<size>[\d.]+) % (?P<way>slower|faster) "
    r"\(95 %: (?P<low>-?[\d.]+) to (?P<high>-?[\d.]+)\)"
)
_UNCHANGED = re.compile(r"(?P<names>[^;]+) unchanged within (?P<bound>[\d.]+) %")
#: A line of the verdict table: workload, ratio, interval, verdict.
_ROW = re.compile(
    r"^\| (?P<workload>[\w()\\-]+) \| [▼▲]? ?(?P<ratio>[\d.]+) "
    r"\| (?P<low>[\d.]+) to (?P<high>[\d.]+) \| (?P<verdict>[a-z-]+) \|",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return tell(tmp_path_factory.mktemp("story"))


def scene(told: Told, title: str) -> Scene:
    return next(one for one in told.scenes if one.title == title)


def places(one: Scene) -> list[str]:
    """Return where something is new, and where something was edited."""
    return [f"{'edited: ' * (heard.before is not None)}{heard.now.place}" for heard in one.heard]


def the(one: Scene, place: str) -> Heard:
    (found,) = [heard for heard in one.heard if heard.now.place.startswith(place)]
    return found


def test_the_story_in_the_docs_is_what_happens(told: Told) -> None:
    assert transcript(told.scenes) == PAGE.read_text(encoding="utf-8"), (
        "texts or decisions have changed; look at the difference, then run: make story"
    )


@pytest.mark.parametrize(
    "title",
    [
        "The service is started",
        "Three quiet commits",
        "A noisy one",
        "A hot night",
        "Two commits on top",
    ],
)
def test_what_is_no_news_is_told_to_nobody(told: Told, title: str) -> None:
    assert places(scene(told, title)) == []


def test_the_noisy_commit_was_suspected_and_cleared(told: Told) -> None:
    suspected, finished = scene(told, "A noisy one").log

    assert "suspicious" in suspected
    assert finished.partition(" ")[2].startswith("no-change: ")


def test_a_loss_is_told_once_in_every_place(told: Told) -> None:
    sha = told.hashes[MORNING.subject][:8]

    assert places(scene(told, "Slower, and sure of it")) == [
        "issue #1, labelled `forkwatch`, `forkwatch: scan`",
        "issue #1 is open",
        "the message in the channel",
        "in the thread",
    ]
    opened = the(scene(told, "Slower, and sure of it"), "issue #1, ").now
    assert re.fullmatch(rf"mariadb-fork: scan \d\.\d % slower at {sha}", opened.title)


def test_a_button_counts_for_those_who_may(told: Told) -> None:
    heard = scene(told, "Somebody looks after it")

    assert places(heard) == [
        "edited: the message in the channel",
        "in the thread",
        "to <@U0EVE> alone",
    ]
    assert the(heard, "in the thread").now.text == "Acknowledged by <@U0ADA>."


def test_the_culprit_is_named_in_every_place(told: Told) -> None:
    one = scene(told, "The culprit")

    assert places(one) == [
        "comment on #1 by forkwatch[bot]",
        "edited: the message in the channel",
        "in the thread",
    ]
    # Underscores of a subject are escaped in Markdown alone.
    named = [heard.now.text.replace("\\", "") for heard in one.heard]
    assert all(f'{told.hashes[CULPRIT][:8]} "{CULPRIT}"' in text for text in named)


def test_a_fix_closes_it_everywhere(told: Told) -> None:
    one = scene(told, "Fixed")
    sha = told.hashes[FIX.subject][:8]

    assert places(one) == [
        "comment on #1 by forkwatch[bot]",
        "edited: issue #1 is closed as completed",
        "edited: the message in the channel",
        "in the thread",
    ]
    for place in ("comment on #1", "in the thread"):
        assert the(one, place).now.text.startswith(f"As fast as before again since `{sha}`")
    message = the(one, "the message").now.text
    assert message.startswith("*Resolved: mariadb-fork: scan ")
    assert "[Acknowledge]" not in message
    assert told.alert.state is AlertState.FIXED


def test_a_better_head_edits_the_one_comment(told: Told) -> None:
    slower = scene(told, "A pull request that is slower")
    better = scene(told, "The same pull request, done better")

    assert [place.partition(" on ")[0] for place in places(slower)] == [
        "check `forkwatch / commit`",
        "comment",
    ]
    assert [place.partition(" on ")[0] for place in places(better)] == [
        "check `forkwatch / commit`",
        "edited: comment",
    ]
    assert [the(one, "check").now.place.rpartition(", ")[2] for one in (slower, better)] == [
        "failure",
        "success",
    ]


@pytest.mark.parametrize(
    ("title", "place"),
    [
        ("A pull request that is slower", "comment"),
        ("A pull request that is slower", "check"),
        ("The same pull request, done better", "comment"),
        ("Slower, and sure of it", "issue #1, "),
    ],
)
def test_no_table_contradicts_its_sentence(told: Told, title: str, place: str) -> None:
    text = the(scene(told, title), place).now.text
    sentence = text.partition("\n")[0].strip("*")
    rows = {row["workload"]: row for row in _ROW.finditer(text.partition("<details>")[0])}
    moved = {said["workload"]: said for said in _SAID.finditer(sentence)}

    assert len(rows) == 6
    changed = {name for name, row in rows.items() if row["verdict"] in CHANGES}
    assert set(moved) == changed
    for name, said in moved.items():
        sign = 1 if said["way"] == "slower" else -1
        size, low, high = (
            100 * sign * (1 - float(rows[name][printed])) for printed in ("ratio", "low", "high")
        )
        # The sentence has tenths of a percent, and so has the table.
        assert float(said["size"]) == pytest.approx(size, abs=0.1001), name
        assert [float(said["low"]), float(said["high"])] == pytest.approx(
            sorted([low, high]), abs=0.1001
        )
    for calm in _UNCHANGED.finditer(sentence):
        bound = float(calm["bound"])
        for name, row in rows.items():
            if row["verdict"] == "no-change":
                ends = (float(row["low"]), float(row["high"]))
                assert all(abs(1 - end) <= bound / 100 + 0.0006 for end in ends), name


def test_the_pull_request_is_blamed_for_its_own_loss_alone(told: Told) -> None:
    text = the(scene(told, "A pull request that is slower"), "comment").now.text
    regressions = {row["workload"] for row in _ROW.finditer(text) if row["verdict"] == "regression"}

    assert regressions == set(PROPOSED.factors)


def test_the_digest_tells_of_loss_fix_and_of_nothing_else(told: Told) -> None:
    message, picture = scene(told, "The week in one text").heard

    assert told.digest.startswith("# mariadb-fork, week 2026-W45: 1 commit slower, 1 commit faster")
    assert "## Open alerts" not in told.digest
    for sha in (told.hashes[MORNING.subject], told.hashes[FIX.subject]):
        assert sha[:8] in told.digest
        assert sha[:8] in message.now.text
    assert picture.now.text.startswith("[picture: ")

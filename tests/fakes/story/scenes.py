"""The story: what people do in a week, and the transcript of what they hear.

A folder and a seed come in, scenes go out. Everything between is the service's own doing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from service.core.model import EventKind
from tests.fakes.story.fork import Deed
from tests.fakes.story.heard import Ears
from tests.fakes.story.stage import EVE, a_stage
from tests.fakes.story.transcript import Scene

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from service.core.model import Alert
    from tests.fakes.story.stage import Stage

#: Of all noise. With another one the numbers are others, and a quiet commit may be suspected: by
#: the plan's own arithmetic one in ten is.
SEED: Final = 8

ADA, BOB, CAROL, DAN = "Ada Moreau", "Bob Lindqvist", "Carol Nwosu", "Dan Petrov"
PAST: Final = (
    Deed(subject="Import 10.11.19", author=ADA, files=("sql/mysqld.cc", "storage/innobase/ha.cc")),
    Deed(subject="Name the thread of the dump", author=BOB, files=("sql/threadpool.cc",)),
    Deed(subject="Free the cursor on every path", author=CAROL, files=("sql/sql_cursor.cc",)),
    Deed(subject="Count pages in 64 bits", author=DAN, files=("storage/innobase/buf/buf0lru.cc",)),
    Deed(subject="Check the length of a key", author=BOB, files=("sql/key.cc",)),
    Deed(subject="Drop a lock that nobody takes", author=ADA, files=("sql/table_cache.cc",)),
    Deed(subject="Log slow queries in UTC", author=CAROL, files=("sql/log.cc",)),
    Deed(subject="Read options once", author=DAN, files=("sql/sys_vars.cc",)),
)
QUIET: Final = (
    Deed(subject="Warn about a full tmpdir", author=BOB, files=("sql/mysqld.cc",)),
    Deed(subject="Say what the manual means", author=CAROL, files=("Docs/myisam.txt",)),
    Deed(subject="Parse hints in views", author=DAN, files=("sql/opt_hints.cc",)),
)
NOISY: Final = Deed(
    subject="Sort the errors by number",
    author=CAROL,
    files=("sql/share/errmsg-utf8.txt",),
    luck={"update-index": 0.9},
)
_HOT: Final = "canary cpu before the job was -9.4 % off this host's usual level"
CULPRIT: Final = "Check the record format in row_search_mvcc"
NIGHT: Final = (
    Deed(
        subject="Show temporary tables in the status",
        author=BOB,
        files=("sql/sql_show.cc",),
        trouble=_HOT,
    ),
    Deed(
        subject=CULPRIT,
        author=DAN,
        files=("storage/innobase/row/row0sel.cc", "storage/innobase/include/rem0rec.h"),
        factors={"scan": 0.91},
        trouble=_HOT,
    ),
    Deed(
        subject="End the purge coordinator in order",
        author=ADA,
        files=("storage/innobase/srv/srv0srv.cc",),
        trouble=_HOT,
    ),
    Deed(
        subject="Quote names in SHOW CREATE SERVER",
        author=CAROL,
        files=("sql/sql_servers.cc",),
        trouble=_HOT,
    ),
)
MORNING: Final = Deed(
    subject="Retry the name lookup", author=BOB, files=("sql/hostname.cc", "sql/net_serv.cc")
)
PROPOSED: Final = Deed(
    subject="Write the redo log in smaller pieces",
    author=BOB,
    files=("storage/innobase/log/log0log.cc",),
    factors={"update-index": 0.93, "update-nonindex": 0.945},
)
PROPOSED_AGAIN: Final = Deed(
    subject="Write the redo log in pieces of a page",
    author=BOB,
    files=("storage/innobase/log/log0log.cc",),
)
MEANWHILE: Final = (
    Deed(subject="Spell the option as documented", author=CAROL, files=("sql/sys_vars.cc",)),
    Deed(subject="Close the relay log first", author=ADA, files=("sql/rpl_rli.cc",)),
)
FIX: Final = Deed(
    subject="Check the record format once for each page",
    author=DAN,
    files=("storage/innobase/row/row0sel.cc",),
    factors={"scan": 1.103},
)


@dataclass(frozen=True, kw_only=True)
class Told:
    """The story as it went."""

    scenes: Sequence[Scene]
    #: Hashes of commits by their subjects.
    hashes: dict[str, str]
    #: The alert as it was in the end.
    alert: Alert
    #: The weekly digest in Markdown.
    digest: str


@dataclass(kw_only=True)
class Play:
    """The story while it goes."""

    stage: Stage
    ears: Ears
    scenes: list[Scene] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)
    digest: str = ""

    def at(self, day: int, hour: int, minute: int = 0) -> datetime:
        """Let it be that time of November, and return it."""
        moment = datetime(2026, 11, day, hour, minute, tzinfo=UTC)
        self.stage.wait_until(moment)
        return moment

    def push(self, *deeds: Deed) -> None:
        """Push commits to the branch."""
        self._keep(deeds, self.stage.push(deeds))

    def _keep(self, deeds: Sequence[Deed], hashes: Sequence[str]) -> None:
        self.hashes |= {deed.subject: sha for deed, sha in zip(deeds, hashes, strict=True)}

    def named(self, deed: Deed) -> str:
        """Return a commit as the transcript names it."""
        return f"`{self.hashes[deed.subject][:8]}` {deed.subject}"

    def log(self, deed: Deed, *kinds: EventKind) -> list[str]:
        """Return what the service wrote down about a commit, of these kinds."""
        sha = self.hashes[deed.subject]
        found = self.stage.events(sha)
        return [f"`{sha[:8]}` {one.message}" for one in found if one.kind in kinds]

    def ends(self, title: str, at: datetime, told: str, log: Collection[str] = ()) -> None:
        """Write a scene down with all that is heard by now."""
        heard = self.ears.news()
        scene = Scene(title=title, at=at, told=told, log=tuple(log), heard=heard)
        self.scenes.append(scene)


def tell(folder: Path, *, seed: int = SEED) -> Told:
    """Let the story happen below a folder, and return it."""
    with a_stage(folder, past=PAST, seed=seed) as stage:
        play = Play(stage=stage, ears=Ears(stage.github.world, stage.slack))
        _begins(play)
        _quiet(play)
        _noisy(play)
        _night(play)
        _slower(play)
        alert = stage.alert(play.hashes[MORNING.subject])
        _acknowledged(play, alert)
        _bisected(play, alert)
        _proposed(play)
        _meanwhile(play)
        _fixed(play)
        _digest(play)
        return Told(
            scenes=play.scenes,
            hashes=play.hashes,
            alert=stage.alert(play.hashes[MORNING.subject]),
            digest=play.digest,
        )


def _begins(play: Play) -> None:
    count = len(play.stage.runners.measured)
    play.ends(
        "The service is started",
        datetime(2026, 11, 2, 8, 0, tzinfo=UTC),
        f"It finds a branch with {count} commits, and measures them one by one: a baseline.",
    )


def _quiet(play: Play) -> None:
    at = play.at(3, 9, 10)
    play.push(*QUIET)
    play.ends(
        "Three quiet commits",
        at,
        "Three commits are pushed. Two are measured; one touches the manual alone, installs the "
        "same files as before, and is not measured again.",
        [line for deed in QUIET for line in play.log(deed, EventKind.FINISHED)],
    )


def _noisy(play: Play) -> None:
    at = play.at(3, 15, 40)
    play.push(NOISY)
    play.ends(
        "A noisy one",
        at,
        f"{play.named(NOISY)} is pushed, and has bad luck: nothing in it is slower, but its own "
        "run says so. A second, paired run is ordered, which costs machine time and no person's.",
        play.log(NOISY, EventKind.SUSPICIOUS, EventKind.FINISHED),
    )


def _night(play: Play) -> None:
    at = play.at(4, 22, 10)
    play.push(*NIGHT)
    play.ends(
        "A hot night",
        at,
        "Four commits come while the host is not itself. The canary tells; their numbers are kept "
        "and not judged. One of the four makes scans slower by 9 %.",
        [line for deed in NIGHT for line in play.log(deed, EventKind.FINISHED)],
    )


def _slower(play: Play) -> None:
    at = play.at(5, 7, 30)
    play.push(MORNING)
    play.ends(
        "Slower, and sure of it",
        at,
        f"The host is quiet again. {play.named(MORNING)} is the first commit measured since; it is "
        "suspected, measured again beside the last commit that was judged, and confirmed.",
        play.log(MORNING, EventKind.SUSPICIOUS, EventKind.CONFIRM_JUDGED, EventKind.FINISHED),
    )


def _acknowledged(play: Play, alert: Alert) -> None:
    at = play.at(5, 9, 5)
    play.stage.press("false-alarm", alert, user=EVE)
    play.stage.press("acknowledge", alert)
    play.ends(
        "Somebody looks after it",
        at,
        "`U0EVE` presses *False alarm* and is told, alone, that this does not count. `U0ADA` "
        "presses *Acknowledge*.",
    )


def _bisected(play: Play, alert: Alert) -> None:
    at = play.at(5, 9, 20)
    runners = play.stage.runners
    runners.hold = True
    play.stage.press("bisect", alert, settled=False)
    play.stage.settle(while_held=True)
    play.ends("Which of the five?", at, "`U0ADA` presses *Bisect*. The first measurement begins.")
    before, at = len(runners.measured), play.stage.clock.now()
    runners.release()
    play.stage.settle()
    play.ends(
        "The culprit",
        at,
        f"{len(runners.measured) - before} paired measurements later the search is over.",
    )


def _proposed(play: Play) -> None:
    at = play.at(5, 13, 0)
    number, head = play.stage.open_pull(PROPOSED)
    play.ends(
        "A pull request that is slower",
        at,
        f"{BOB} opens pull request #{number}, `{head[:8]}` {PROPOSED.subject}. Its head is "
        "measured beside its merge base. The merge base is as slow at scans as the branch is, so "
        "that is not held against it.",
    )
    at = play.at(5, 16, 20)
    parent = play.hashes[MORNING.subject]
    again = play.stage.push_pull(number, PROPOSED_AGAIN, before=head, parent=parent)
    play.ends(
        "The same pull request, done better",
        at,
        f"{BOB} pushes `{again[:8]}` {PROPOSED_AGAIN.subject} in its place. The comment that is "
        "there is brought up to date; there is no second one.",
    )


def _meanwhile(play: Play) -> None:
    at = play.at(6, 9, 30)
    play.push(*MEANWHILE)
    play.ends(
        "Two commits on top",
        at,
        "Scans are still slow, and everybody who should know does. Later commits are compared with "
        "the level that the alert is about. As yet that level rests on one run, so nothing can be "
        "said of scans for a while: no all-clear, and no second alarm.",
        [line for deed in MEANWHILE for line in play.log(deed, EventKind.FINISHED)],
    )


def _fixed(play: Play) -> None:
    at = play.at(6, 15, 0)
    play.push(FIX)
    play.ends(
        "Fixed",
        at,
        f"{DAN} pushes {play.named(FIX)}.",
        play.log(FIX, EventKind.SUSPICIOUS, EventKind.FINISHED),
    )


def _digest(play: Play) -> None:
    at = play.at(9, 7, 0)
    play.digest = play.stage.digest()
    play.ends("The week in one text", at, "The weekly digest is written and sent.")

"""A culprit that is a merge is followed into what it merged, in real repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer

from bisects.document import BisectEnd
from bisects.levels import noise_of
from forkwatch import bisect_jobs
from forkwatch.bisect_range import commit_address, merged_range
from forkwatch.bisect_verb import bisect
from forkwatch.bisecting import into_merges, merged_question, run, search_of
from forkwatch.errors import DoorError
from reports.bisect import bisect_sentence
from results.job import DOCUMENT_FILE
from tests.forkwatch.bisect_jobs import PlantedStep, ask
from tests.runner.tiny_fork import TinyFork

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from bisects.document import BisectDocument
    from forkwatch.bisect_question import Asked


class MergedFork(TinyFork):
    """Six commits, a side branch from the second of them, its merge, and one commit more."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.main = [self.first]
        self.main += [self.commit(f"main {n}", {"main.c": f"{n}\n"}) for n in range(1, 6)]
        self.git("checkout", "--quiet", "-b", "side", self.main[1])
        self.side = [self.commit(f"side {n}", {f"side{n}.c": f"{n}\n"}) for n in range(1, 5)]
        self.git("checkout", "--quiet", "main")
        self.merge = self.merged("side")
        self.last = self.commit("after it", {"main.c": "after\n"})

    def git(self, *words: str) -> str:
        return self._git(*words).strip()

    def merged(self, *branches: str) -> str:
        self.git("merge", "--quiet", "--no-ff", "--message", f"Merge {branches}", *branches)
        return self.git("rev-parse", "HEAD")

    def asked(self, good: str, **chosen: Any) -> Asked:
        return ask(self, good, "main", **chosen)


@pytest.fixture
def fork(tmp_path: Path) -> MergedFork:
    return MergedFork(tmp_path / "fork")


def followed(
    asked: Asked, slow: Collection[str], *, broken: Collection[str] = ()
) -> tuple[BisectDocument, list[str]]:
    """Search to the end, into merges."""
    measure = PlantedStep(slow, broken=broken)

    def searched(one: Asked, before: BisectDocument | None) -> BisectDocument:
        noise = noise_of(before) if before else (0.0, 0)
        return run(one, search_of(one, {}, noise=noise), measure=measure, tell=lambda now: None)

    return into_merges(asked, searched(asked, None), searched)


def test_the_range_of_a_merge_is_what_it_brought_between_its_parent_and_itself(fork) -> None:
    found = merged_range(fork.folder, fork.merge)

    assert found is not None
    assert [one.sha for one in found.commits] == [fork.main[5], *fork.side, fork.merge]
    assert [one.files for one in found.commits[:3]] == [(), ("side1.c",), ("side2.c",)]
    # Beside the last of them the merge brings what the main line had meanwhile.
    assert found.commits[-1].files == ("main.c",)
    assert found.parents[-1] == (fork.side[-1],)
    assert len(found.trees) == len(found.parents) == len(found.commits)
    assert merged_range(fork.folder, fork.last) is None


def test_the_commit_that_a_merge_brought_is_named_beside_the_merge(fork) -> None:
    slow = [*fork.side[2:], fork.merge, fork.last]

    found, commands = followed(fork.asked(fork.first), slow)

    assert commands == []
    assert found.commits[found.culprits[0]].sha == fork.merge
    inner = found.merged
    assert inner is not None
    assert (inner.question.good, inner.question.bad) == (fork.main[5], fork.merge)
    assert inner.culprits == (3,)
    assert found.culprit == (inner, 3)
    assert inner.commits[3].sha == fork.side[2]
    said = bisect_sentence(found)
    assert "Merge" in said
    assert "of what it merged, it is " in said
    assert '"side 3"' in said
    # The noise is known by then, which saves starts.
    assert inner.measured_starts < found.measured_starts


def test_what_came_with_merging_is_the_merges_own(fork) -> None:
    found, _ = followed(fork.asked(fork.first), [fork.merge, fork.last])

    assert found.merged is not None
    assert found.merged.commits[found.merged.culprits[0]].sha == fork.merge
    assert found.merged.merged is None
    assert "it came with merging" in bisect_sentence(found)


def test_a_merge_within_a_merge_is_followed_too(fork) -> None:
    fork.git("checkout", "--quiet", "-b", "deep", fork.side[0])
    deep = [fork.commit(f"deep {n}", {f"deep{n}.c": f"{n}\n"}) for n in range(2)]
    fork.git("checkout", "--quiet", "-b", "topic", fork.side[1])
    brought = fork.merged("deep")
    topic = fork.commit("topic", {"topic.c": "1\n"})
    fork.git("checkout", "--quiet", "main")
    merge = fork.merged("topic")

    found, _ = followed(fork.asked(fork.last), [deep[1], brought, topic, merge])

    assert found.merged is not None
    assert found.merged.merged is not None
    assert [one.commits[one.culprits[0]].sha for one in (found, found.merged)] == [merge, brought]
    innermost, place = found.culprit
    assert innermost.commits[place].sha == deep[1]


def test_several_merged_at_once_are_left_to_whoever_asks(fork) -> None:
    for name in ("one", "two"):
        fork.git("checkout", "--quiet", "-b", name, fork.last)
        fork.commit(name, {f"{name}.c": "1\n"})
    fork.git("checkout", "--quiet", "main")
    octopus = fork.merged("one", "two")

    found, commands = followed(fork.asked(fork.last), [octopus])

    assert found.merged is None
    assert len(commands) == 2
    assert merged_range(fork.folder, octopus) is None


def test_a_budget_that_is_spent_leaves_the_command(fork) -> None:
    slow = [*fork.side[2:], fork.merge, fork.last]
    whole, _ = followed(fork.asked(fork.first), slow)
    spent = whole.minutes_spent
    asked = fork.asked(fork.first, budget_minutes=spent + 0.5)

    found, commands = followed(asked, slow)

    assert found.end is BisectEnd.CULPRIT
    assert found.merged is None
    assert commands == [
        f"forkwatch bisect {fork.main[1][:8]} {fork.side[-1][:8]} --workload 'scan'"
    ]
    roomy = fork.asked(fork.first, budget_minutes=spent + 2.0)
    inner = merged_question(roomy, whole.model_copy(update={"question": roomy.question}))
    assert inner is not None
    assert inner.question.budget_minutes == pytest.approx(2.0)


def test_a_first_parent_that_does_not_build_costs_no_answer(fork) -> None:
    def searched(one: Asked, before: BisectDocument) -> BisectDocument:
        raise DoorError("the good end does not build here")

    asked = fork.asked(fork.first)
    slow = [*fork.side[2:], fork.merge, fork.last]
    outer = run(asked, search_of(asked, {}), measure=PlantedStep(slow), tell=lambda now: None)

    found, commands = into_merges(asked, outer, searched)

    assert found == outer
    assert len(commands) == 1


@pytest.mark.parametrize("into", [True, False])
def test_the_verb_names_both_unless_it_is_told_to_leave_merges_alone(
    fork, tmp_path, monkeypatch, capsys, into
) -> None:
    planted = PlantedStep([*fork.side[2:], fork.merge, fork.last])

    def kept_on_disk(home, settings, progress):
        def measure(order):
            document = planted(order)
            (home.folder("jobs", order.job) / DOCUMENT_FILE).write_text(document.model_dump_json())
            return document

        return measure

    monkeypatch.setattr(bisect_jobs, "measure_here", kept_on_disk)
    app = typer.Typer()
    app.command()(bisect)
    words = [fork.first, "main", "--workload", "scan", "--repository", str(fork.folder)]
    words += ["--home", str(tmp_path / "home"), *([] if into else ["--no-into-merges"])]

    status = app(words, standalone_mode=False)

    streams = capsys.readouterr()
    assert status == 0
    assert "7 commits after" in streams.err, "the range is told before anything is built"
    assert f"why: forkwatch explain '{(fork.side[2] if into else fork.merge)[:8]}~1'" in streams.out
    if into:
        assert "It is a merge, and what it merged is searched now." in streams.err
        assert "of what it merged, it is" in streams.out
        assert "What the merge brought, beside its first parent:" in streams.out
    else:
        assert "of what it merged" not in streams.out
        assert "what it merged is searched by: forkwatch bisect" in streams.err


def test_commits_have_an_address_where_they_came_from_a_forge(fork) -> None:
    assert commit_address(fork.folder) is None
    fork.git("remote", "add", "origin", "/srv/git/fork.git")
    addresses = {
        "https://github.com/ada/fork.git": "https://github.com/ada/fork/commit",
        "https://ada:secret@forge.example/a/b/": "https://forge.example/a/b/commit",
        "https://forge.example:8443/a/b": "https://forge.example:8443/a/b/commit",
        "git@github.com:ada/fork.git": "https://github.com/ada/fork/commit",
        "ssh://git@forge.example:2222/a/b.git": "https://forge.example/a/b/commit",
        "/srv/git/fork.git": None,
        "https://forge.example/a(b)": None,
    }
    for origin, address in addresses.items():
        fork.git("remote", "set-url", "origin", origin)

        assert commit_address(fork.folder) == address, origin

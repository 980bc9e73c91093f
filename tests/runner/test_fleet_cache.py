from __future__ import annotations

import json
import shutil

import pytest

from runner import manifest
from runner.fleet_cache.cache import Bounds
from runner.fleet_cache.errors import AwayError
from runner.fleet_cache.notes import Kind, Note
from runner.manifest import DATA
from tests.fakes.memory_place import MemoryPlace
from tests.runner.fleets import DIGEST, IDENTITY, SYSTEMS, Machine
from tests.runner.snapshot_requests import Clock
from tests.runner.trees_on_disk import contents


@pytest.fixture
def place():
    return MemoryPlace()


@pytest.fixture
def machine(tmp_path, place):
    """Give machines, each with its own home."""
    count = iter(range(100))

    def machine(**chosen):
        return Machine(tmp_path / f"machine-{next(count)}", place, **chosen)

    return machine


def data_of(store):
    return store.folder / DIGEST / DATA


def files_of(store):
    """Return everything about a dataset but its owners, who are each machine's own."""
    return {name: facts[:-2] for name, facts in contents(data_of(store)).items()}


def said(place):
    """Return what the one note says."""
    (name,) = place.names(".note")
    return json.loads(place.objects[name].partition(b"\n")[0])


def test_what_one_machine_has_loaded_the_others_fetch(machine):
    one, other = machine(), machine()

    first, second = one.load(), other.load()

    assert (one.made.made, other.made.made) == (1, 0)
    assert files_of(second) == files_of(first)
    assert one.cache.warnings == other.cache.warnings == ()
    mine, theirs = (manifest.read(store.folder / DIGEST) for store in (second, first))
    assert mine.created_at == theirs.created_at
    assert mine.checksums == theirs.checksums
    assert mine.facts == {"rows": {"sbtest1": 7}}


def test_what_a_load_took_on_another_machine_is_not_told_here(machine, place):
    one, other = machine(), machine()
    plain = one.made
    one.made = lambda folder: {**plain(folder), "measured": {"load_s": 3.0}}

    one.load()
    store = other.load()

    assert "measured" not in manifest.read(store.folder / DIGEST).facts
    assert "measured" not in said(place)["facts"]["facts"]


def test_what_one_machine_has_built_the_others_fetch(machine):
    one, other = machine(), machine()

    first, second = one.build(), other.build()

    assert (one.builds, other.builds) == (1, 0)
    assert second.facts == first.facts.model_copy(update={"cached": True})
    assert second.folder == other.home.root / "artifacts" / IDENTITY
    assert {path.name for path in second.folder.rglob("*")} == {
        path.name for path in first.folder.rglob("*")
    }
    # It is at home now and asked for no more.
    again = Machine(other.home.root, MemoryPlace())
    assert again.build().facts.cached
    assert again.builds == 0


def test_a_machine_of_another_kind_makes_its_own(machine):
    machine().build()
    other = machine(systems={**SYSTEMS, Kind.ARTIFACT: "bbbbbbbb"})

    other.build()

    assert other.builds == 1


def test_what_is_there_is_not_written_again(machine, place):
    machine().build()
    before = dict(place.objects)
    late = machine(systems=SYSTEMS)
    # Both began before either had ended.
    late.cache.fetch = lambda *_, **__: None

    late.build("something else")

    assert late.builds == 1
    assert place.objects == before


def garble(place, name):
    content = place.objects[name]
    middle = len(content) // 2
    place.objects[name] = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def cut_off(place, name):
    place.objects[name] = place.objects[name][:-7]


def lose(place, name):
    del place.objects[name]


def exchange(place, name):
    place.objects[name] = b"the bytes of something else"


def swell(place, name):
    place.objects[name] += b"x" * 5_000_000


@pytest.mark.parametrize("damage", [garble, cut_off, lose, exchange, swell])
@pytest.mark.parametrize("what", ["parts/", ".note"])
def test_what_is_damaged_is_not_used_and_made_again(machine, place, damage, what):
    machine().load()
    damage(place, place.names(what)[0])
    other, third = machine(), machine()

    store = other.load()

    assert other.made.made == 1
    assert not [path for path in store.folder.iterdir() if "partial" in path.name]
    if (damage, what) == (lose, ".note"):
        # As if nobody had brought it.
        assert other.cache.warnings == ()
    else:
        (warning,) = other.cache.warnings
        assert "the dataset in the fleet's cache was damaged and is not used" in warning
    # And it is right again for whoever comes next.
    third.load()
    assert third.made.made == 0
    assert third.cache.warnings == ()


def test_a_damaged_artifact_is_built_again(machine, place):
    machine().build()
    garble(place, place.names("parts/")[0])
    other = machine()

    installed = other.build()

    assert other.builds == 1
    assert not installed.facts.cached
    assert "the artifact in the fleet's cache was damaged" in other.cache.warnings[0]


def test_a_note_in_the_place_of_another_is_noticed(machine, place):
    wanted = "3d" * 16
    machine().load()
    (name,) = place.names(".note")
    place.objects[name.replace(DIGEST, wanted)] = place.objects[name]
    other = machine()

    other.load(wanted)

    assert other.made.made == 1
    assert f"its note is of the dataset {DIGEST}" in other.cache.warnings[0]


def rewritten(place, **changes):
    """Change what a note says, as somebody may who can write to the place."""
    (name,) = place.names(".note")
    place.objects[name] = Note.model_validate({**said(place), **changes}).sealed()


def test_facts_of_another_artifact_are_noticed(machine, place):
    machine().build()
    facts = said(place)["facts"]

    for wrong in (
        {"id": "another"},
        {"content_hash": "another"},
        {"installed_bytes": 7},
        {"tree": "no hash"},
    ):
        rewritten(place, facts={**facts, **wrong})
        other = machine(writes=False)
        other.build()
        assert other.builds == 1, wrong
        assert "damaged" in other.cache.warnings[0]


def test_a_place_that_is_away_is_asked_once(machine, place):
    place.answers = 0
    one = machine()

    one.build()
    one.load()

    assert (one.builds, one.made.made) == (1, 1)
    (warning,) = one.cache.warnings
    assert warning == "the fleet's cache was away, so all was made here: nobody answers"
    assert len(place.asked) == 1


def test_a_place_that_cannot_be_opened_is_away(machine):
    def closed():
        raise AwayError("there is no folder /mnt/fleet; make it, or mount it")

    one = machine()
    one.cache._open_place = closed

    one.load()

    assert one.made.made == 1
    assert "there is no folder /mnt/fleet" in one.cache.warnings[0]


@pytest.mark.parametrize("answers", [1, 2, 3])
def test_a_place_that_goes_away_half_way_does_no_harm(machine, place, answers):
    place.answers = answers
    one = machine()
    one.load()
    assert one.made.made == 1
    assert len(one.cache.warnings) == 1

    # A half of a pack is none.
    place.answers = None
    other = machine()
    other.load()
    assert other.made.made == 1
    assert other.cache.warnings == ()
    # Nor does it go half fetched.
    place.answers = len(place.asked) + 1
    third = machine()
    store = third.load()
    assert third.made.made == 1
    assert files_of(store).keys() == files_of(other.load()).keys()


def test_a_place_that_crawls_is_given_up(machine, place):
    clock = Clock()
    machine().load()

    def crawl():
        clock.now += 100

    place.before = crawl
    other = machine(seconds=clock, bounds=Bounds(seconds=50))

    other.load()

    assert other.made.made == 1
    assert "it took more than 50 s (FORKWATCH_CACHE_SECONDS)" in other.cache.warnings[0]
    # Nor is it waited for where something is to be brought.
    late = machine(seconds=clock, bounds=Bounds(seconds=50))
    late.load("4c" * 16)
    assert "it took more than 50 s" in late.cache.warnings[0]


def test_what_is_too_large_is_neither_brought_nor_fetched(machine, place):
    small = Bounds(pack_bytes=1000)
    one = machine(bounds=small)
    one.load()
    assert place.objects == {}
    assert "FORKWATCH_CACHE_PACK_SIZE" in one.cache.warnings[0]

    machine().load()
    other = machine(bounds=small)
    other.load()
    assert other.made.made == 1
    assert "was not fetched" in other.cache.warnings[0]


def test_a_note_that_says_less_than_is_there_is_noticed(machine, place):
    machine().load()
    rewritten(place, unpacked=1000)
    other = machine(writes=False)

    other.load()

    assert other.made.made == 1
    assert "at most 1000 bytes" in other.cache.warnings[0]


def test_a_machine_may_only_read(machine, place):
    reader = machine(writes=False)
    reader.load()
    assert place.objects == {}

    machine().load()
    another = machine(writes=False)
    another.load()
    assert another.made.made == 0


def test_a_job_of_strangers_writes_nothing_that_trusted_jobs_read(machine, place):
    stranger = machine(trusted=False)

    stranger.build()
    stranger.load()

    assert place.objects
    assert {name.split("/")[1] for name in place.objects} == {"outside"}
    trusted = machine()
    place.asked.clear()
    trusted.build()
    trusted.load()
    assert (trusted.builds, trusted.made.made) == (1, 1)
    assert {name.split("/")[1] for name in place.asked} == {"trusted"}


def test_a_job_of_strangers_repairs_nothing_that_trusted_jobs_read(machine, place):
    machine().load()
    name = place.names("trusted/parts/")[0]
    garble(place, name)
    damaged = place.objects[name]
    stranger = machine(trusted=False)

    stranger.load()

    assert stranger.made.made == 1
    assert place.objects[name] == damaged
    assert place.names("outside/datasets/")


def test_what_strangers_share_is_never_what_a_trusted_job_finds(machine):
    machine(trusted=False).build("stranger")
    other = machine(trusted=False)

    # Another job of strangers takes it, and keeps it apart.
    installed = other.build()
    assert other.builds == 0
    assert "artifacts-outside" in installed.folder.parts
    assert Machine(other.home.root, MemoryPlace(), trusted=False).build().facts.cached
    # A trusted job on the same machine builds for itself.
    trusted = Machine(other.home.root, MemoryPlace())
    assert trusted.build().folder.parent.name == "artifacts"
    assert trusted.builds == 1


def test_a_job_of_strangers_uses_what_is_trusted(machine):
    machine().build()
    machine().load()
    stranger = machine(trusted=False)

    installed = stranger.build()
    stranger.load()

    assert (stranger.builds, stranger.made.made) == (0, 0)
    assert installed.folder.parent.name == "artifacts"


def test_a_snapshot_that_broke_here_is_fetched_again(machine):
    machine().load()
    other = machine()
    store = other.load()
    shutil.rmtree(data_of(store) / "sbtest")

    with store.hold(other.asked()) as snapshot:
        assert "was damaged and made again" in snapshot.warnings[0]
        assert (snapshot.data / "sbtest" / "table.ibd").exists()

    assert other.made.made == 0

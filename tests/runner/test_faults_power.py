"""What a power cut leaves on the disk: files half-written, empty, or not there after all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
from contextlib import contextmanager

import pytest

from results.atomic import write_atomically
from results.document import Outcome, Placement
from runner import checkout, job_folder, shell
from runner.build import Builder
from runner.host import clock_steps
from runner.host.history import History
from runner.host.storage import write_whole
from runner.job_folder import Conditions
from runner.settings import Home, RunnerSettings
from tests.fakes.run_documents import a_run
from tests.runner.faulty_fork import Bed
from tests.runner.tiny_fork import PLAN
from workloads.plan import BuildVariant

#: EXT4_IOC_SHUTDOWN of fs/ext4/ext4.h, and its flag for "as at a power cut": nothing that is in
#: memory, not even the journal's, reaches the device any more.
SHUTDOWN, NO_FLUSH = 0x8004587D, 2


@contextmanager
def device(folder, size: str = "200M"):
    """Give a function that cuts the power of a disk mounted at `folder`, and mounts it again."""
    if os.geteuid() != 0 or not shell.run(["mkfs.ext4", "-V"], timeout_s=30).ok:
        pytest.skip("a disk whose power can be cut needs root and e2fsprogs")
    folder.mkdir(parents=True)
    image = folder.with_name("ext4.img")
    assert shell.run(["truncate", f"--size={size}", str(image)], timeout_s=30).ok
    assert shell.run(["mkfs.ext4", "-q", "-F", str(image)], timeout_s=60).ok
    # The usual commit interval is five seconds: far longer than a test waits.
    mount = ["mount", "-o", "loop,commit=60", str(image), str(folder)]
    if not shell.run(mount, timeout_s=30).ok:
        pytest.skip("mounting an image needs a loop device")

    def cut() -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", NO_FLUSH))
        finally:
            os.close(descriptor)
        assert shell.run(["umount", str(folder)], timeout_s=30).ok
        assert shell.run(mount, timeout_s=30).ok

    try:
        yield cut
    finally:
        with contextlib.suppress(OSError):
            shell.run(["umount", "--lazy", str(folder)], timeout_s=30)


def a_start():
    return a_run().with_samples("scan", [[2.0, 2.1]]).build().starts[0]


def test_what_was_written_is_there_after_a_power_cut(tmp_path):
    with device(tmp_path / "disk") as cut:
        job = tmp_path / "disk" / "jobs" / "one"
        job.mkdir(parents=True)
        os.sync()
        job_folder.write_start(job, a_start())
        job_folder.write_document(job, a_run().with_samples("scan", [[2.0]]).build())
        write_whole(tmp_path / "disk" / "host" / "profile.json", "{}")

        cut()

        assert job_folder.read_start(job, 0) == a_start()
        assert job_folder.read_document(job) is not None
        assert (tmp_path / "disk" / "host" / "profile.json").read_text() == "{}"


def test_without_the_folder_on_the_disk_it_would_not_be(tmp_path):
    """Shows that the disk of these tests forgets, and why `write_whole` is used."""
    with device(tmp_path / "disk") as cut:
        path = tmp_path / "disk" / "0000.json"
        write_atomically(path, "{}")
        (tmp_path / "disk" / "plain").write_text("never asked to last")

        cut()

        assert not path.exists()
        assert not (tmp_path / "disk" / "plain").exists()


def test_an_artifact_is_whole_or_absent_after_a_power_cut(tiny_fork, tmp_path):
    with device(tmp_path / "disk") as cut:
        home = Home(tmp_path / "disk" / "home")
        variant = BuildVariant(server="sbin/mariadbd")
        settings = RunnerSettings(home=home.root, disk_reserve=1_000_000)
        builder = Builder(home=home, settings=settings, repository=tiny_fork.folder)
        commit = checkout.resolve(tiny_fork.folder, tiny_fork.first)
        os.sync()
        built = builder.build(commit, "rel", variant)
        size = (built.folder / "sbin" / "mariadbd").stat().st_size
        # Somebody else waits for a file of their own: names reach the device, content need not.
        write_whole(home.root / "other", "{}")

        cut()
        again = builder.build(commit, "rel", variant)

        assert (again.folder / "sbin" / "mariadbd").stat().st_size == size
        assert again.facts.content_hash == built.facts.content_hash


@pytest.fixture
def bed(tiny_fork, home, settings, progress):
    return Bed(tiny_fork, home, settings, progress)


# What file systems leave of a file that was being written: nothing in it, zeros, or a part.
@pytest.mark.parametrize("spoil", ["empty", "zeros", "half"])
def test_a_spoilt_start_or_document_is_made_again_and_said(bed, spoil):
    order = bed.order(bed.fork.first, plan=PLAN, starts=3, job=f"spoilt-{spoil}")
    complete = bed.do(order)
    folder = bed.home.root / "jobs" / order.job
    for path in (folder / "run.json", folder / "starts" / "0001.json"):
        whole = path.read_bytes()
        left = {"empty": b"", "zeros": bytes(len(whole)), "half": whole[: len(whole) // 2]}
        path.write_bytes(left[spoil])
    # As a killed writer leaves it.
    (folder / "starts" / ".0002.json-abcd").write_text('{"index":')
    bed.progress.pieces = 0

    resumed = bed.do(order)

    assert resumed.outcome is Outcome.MEASURED
    # All of its slices: on a busy machine one may be disturbed and tried again.
    again = len(resumed.starts[1].slices)
    assert bed.progress.pieces == again, "only the spoilt start was measured again"
    assert [resumed.starts[index] == complete.starts[index] for index in range(3)] == [
        True,
        False,
        True,
    ]
    said = "\n".join(resumed.warnings)
    assert "a crash had left starts/0001.json unreadable" in said
    assert "a crash had left run.json unreadable" in said


@pytest.mark.parametrize("spoil", ["manifest", "program"])
def test_an_artifact_that_a_power_cut_emptied_is_built_again(tiny_fork, own_home, spoil):
    builder = Builder(
        home=own_home, settings=RunnerSettings(home=own_home.root), repository=tiny_fork.folder
    )
    commit = checkout.resolve(tiny_fork.folder, tiny_fork.first)
    variant = BuildVariant(server="sbin/mariadbd")
    built = builder.build(commit, "rel", variant)
    emptied = (
        built.folder / {"manifest": "forkwatch-artifact.json", "program": "sbin/mariadbd"}[spoil]
    )
    emptied.write_bytes(b"")

    again = builder.build(commit, "rel", variant)

    assert not again.facts.cached
    assert again.facts.content_hash == built.facts.content_hash
    assert (again.folder / "sbin" / "mariadbd").stat().st_size > 0


def test_starts_of_another_host_are_set_aside(tmp_path):
    here = Conditions(fingerprint="f1", placement=Placement(mode="disjoint", server_cpus=(0,)))
    job_folder.agree(tmp_path, here)
    job_folder.write_start(tmp_path, a_start())

    job_folder.agree(tmp_path, here)
    assert job_folder.read_start(tmp_path, 0) == a_start()
    assert job_folder.notes(tmp_path) == ()

    job_folder.agree(tmp_path, here.model_copy(update={"fingerprint": "f2"}))
    assert job_folder.read_start(tmp_path, 0) is None
    [note] = job_folder.notes(tmp_path)
    assert note.startswith("1 starts from before an interruption are not used")
    # It holds for the new host from now on.
    job_folder.agree(tmp_path, here.model_copy(update={"fingerprint": "f2"}))
    assert len(job_folder.notes(tmp_path)) == 1


def test_a_history_that_a_crash_cut_off_goes_on(tmp_path):
    past = History(tmp_path / "past.jsonl", Conditions)
    line = Conditions(fingerprint="f1", placement=Placement(mode="disjoint"))
    past.append([line, line])
    with (tmp_path / "past.jsonl").open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 10)
    with (tmp_path / "past.jsonl").open("ab") as file:
        file.write(b"\n\0\0\xff\n")

    past.append([line])

    assert past.read() == [line, line]


def test_a_clock_that_is_set_is_noticed_and_one_that_runs_is_not():
    before = clock_steps.distance_s()

    assert clock_steps.step(before, clock_steps.distance_s()) == ""
    assert (
        clock_steps.step(before, before + 3600)
        == "the clock of this machine was set by +3600.000 s"
    )
    assert clock_steps.step(before, before - 0.2) == "the clock of this machine was set by -0.200 s"


def test_a_checkout_that_was_killed_does_not_stand_in_the_way(tiny_fork, own_home):
    """Git locks a worktree while it makes it, and nobody unlocks it when git is killed."""
    folder = own_home.folder("worktrees") / "w"
    commit = checkout.resolve(tiny_fork.folder, tiny_fork.first)
    added = checkout.git(
        tiny_fork.folder, "worktree", "add", "--detach", "--lock", str(folder), commit.sha
    )
    assert added.ok, added.stderr
    shutil.rmtree(folder)

    with checkout.worktree(tiny_fork.folder, commit, folder):
        assert (folder / "CMakeLists.txt").exists()

    assert not folder.exists()
    assert len(checkout.git(tiny_fork.folder, "worktree", "list").stdout.splitlines()) == 1

"""A disk that fills up: while a start is measured, and when something is written down."""

from __future__ import annotations

import pytest

from results.document import Outcome
from runner.errors import HostError
from runner.host import canary
from runner.settings import Home, RunnerSettings
from tests.runner.conftest import SilentProgress
from tests.runner.faulty_fork import Bed
from tests.runner.processes import servers, until
from tests.runner.tiny_fork import PLAN
from tests.runner.trees_on_disk import fill, small_disk


class Nth(SilentProgress):
    """Does something at the n-th event of a kind."""

    def __init__(self, kind: str, number: int, act) -> None:
        super().__init__()
        self._kind, self._left, self._act = kind, number, act

    def _tell(self, kind: str) -> None:
        if kind == self._kind:
            self._left -= 1
            if self._left == 0:
                self._act()

    def piece(self, start: int, piece: object) -> None:
        super().piece(start, piece)
        self._tell("slice")

    def start(self, start, *, of: int) -> None:
        super().start(start, of=of)
        self._tell("start")


def test_a_disk_that_fills_up_during_a_start_is_named(tiny_fork, tmp_path):
    with small_disk(tmp_path / "disk", "400m") as disk:
        home = Home(disk / "home")
        settings = RunnerSettings(home=home.root, watch_host=False, disk_reserve=20_000_000)
        progress = Nth("slice", 1, lambda: fill(disk, leave=5_000_000))
        bed = Bed(tiny_fork, home, settings, progress)
        order = bed.order(tiny_fork.first, workloads=["update-index"])

        document = bed.do(order)

        assert document.outcome is Outcome.FAILED
        assert "were left free on the disk; make room there" in document.failure.message
        until(lambda: servers(home.root) == [])
        assert not (home.root / "jobs" / order.job / "data").exists()
        # With room again the next job is none the worse.
        (disk / "ballast").unlink()
        again = bed.order(tiny_fork.first, job="again", plan=PLAN)
        assert bed.do(again).outcome is Outcome.MEASURED


@pytest.mark.parametrize(
    ("kind", "number", "lost"), [("slice", 1, "starts/0000.json"), ("start", 2, "run.json")]
)
def test_what_cannot_be_written_is_told_and_nothing_is_lost(
    tiny_fork, home, tmp_path, kind, number, lost
):
    settings = RunnerSettings(home=home.root, watch_host=False, disk_reserve=1_000_000)
    # The job's own files lie on a disk of their own here, and its data on another.
    with (
        small_disk(home.root / "jobs" / "told", "1m") as folder,
        small_disk(folder / "data", "200m"),
    ):
        bed = Bed(tiny_fork, home, settings, Nth(kind, number, lambda: fill(folder, leave=0)))
        order = bed.order(tiny_fork.first, plan=PLAN, starts=2, job="told")

        said = bed.refused(order)

        assert f"{lost} could not be written: No space left on device, 0 MB are free" in said
        assert "the same command goes on from the last complete start" in said
        until(lambda: servers(home.root) == [])
        (folder / "ballast").unlink()
        bed.progress.starts.clear()
        document = bed.do(order)
        assert document.outcome is Outcome.MEASURED
        assert len(document.starts) == 2
        # What was complete was not measured again.
        kept = sum(len(start.slices) for start in document.starts)
        assert bed.progress.pieces == kept if kind == "start" else bed.progress.pieces > kept
    (home.root / "jobs" / "told").rmdir()


def test_a_host_whose_history_cannot_be_written_says_so(tmp_path):
    look = canary.Look(
        taken_at="2026-11-21T12:00Z", moment="alone", fingerprint="f", cpu=1, values={}
    )
    with small_disk(tmp_path / "disk", "1m") as disk:
        fill(disk, leave=0)

        with pytest.raises(HostError, match="could not be written: No space left on device"):
            canary.history(disk / "host").append([look])

"""What a build fails with that was not the commit's fault: killed, no memory, no space."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from results.document import Cause, Outcome
from results.slice import SideName
from runner import build_failures, checkout
from runner.build import Builder
from runner.build_systems import Step
from runner.cgroup import Cgroup
from runner.errors import BuildError, InterruptedBuildError, StageError
from runner.job import run_job
from runner.limits import limits
from runner.settings import RunnerSettings
from runner.shell import Completed
from runner.sides import Sides
from workloads.plan import BuildVariant, parse_plan

BUILD = Step(stage="build", argv=("ninja",))
VARIANT = BuildVariant(server="sbin/mariadbd")


def failed(tmp_path, said: str = "", **chosen: object) -> BuildError:
    log = tmp_path / "build.log"
    log.write_text(said)
    facts: dict[str, Any] = {"returncode": 1, "stdout": "", "stderr": "", **chosen}
    return build_failures.of_step(BUILD, Completed(**facts), VARIANT, log)


@pytest.mark.parametrize(
    "said",
    [
        "c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n",
        "g++: internal compiler error: Killed (program cc1plus)\n",
        "clang++: error: unable to execute command: Killed\n",
        "collect2: fatal error: ld terminated with signal 9 [Killed]\n",
        "make[2]: *** [Makefile:7: row.o] Killed\n",
        "make: *** [Makefile:7: row.o] Terminated\n",
        "sh: line 1: 4711 Killed                  cc -c row.c\n",
        "Killed\n",
        "ninja: build stopped: interrupted by user.\n",
        "cc1plus: out of memory allocating 65536 bytes after a total of 1048576 bytes\n",
        "virtual memory exhausted: Cannot allocate memory\n",
        "LLVM ERROR: out of memory\n",
        "mold: fatal: mmap failed: Cannot allocate memory\n",
        "/usr/bin/ld: final link failed: No space left on device\n",
    ],
)
def test_what_a_log_says_of_the_machine_is_not_the_commits_fault(tmp_path, said: str) -> None:
    # Other compilers go on for a while behind it.
    error = failed(tmp_path, f"[1/9] cc -c row.c\n{said}" + 2000 * "row.h:1: warning: unused\n")

    assert isinstance(error, InterruptedBuildError)
    assert error.cause is Cause.HOST
    assert len(error.log_tail) <= 12_000


@pytest.mark.parametrize(
    "said",
    [
        "row.c:7:1: error: 'Killed' was not declared in this scope\n",
        "row.c: In function 'Terminated':\nrow.c:9: error: expected ';'\n",
        "FAILED: row.o\nninja: build stopped: subcommand failed.\n",
        "make: *** [Makefile:7: row.o] Error 1\n",
        "cc: internal compiler error: Segmentation fault signal terminated program cc1\n",
        "",
    ],
)
def test_what_a_compiler_refuses_is_the_commits_fault(tmp_path, said: str) -> None:
    error = failed(tmp_path, said)

    assert not isinstance(error, InterruptedBuildError)
    assert error.cause is Cause.COMMIT
    assert str(error) == "build failed with status 1"


@pytest.mark.parametrize(
    ("status", "by_host"),
    [(-9, True), (-15, True), (137, True), (143, True), (129, True), (139, False), (2, False)],
)
def test_a_signal_from_outside_is_told_from_a_crash(tmp_path, status: int, by_host: bool) -> None:  # noqa: FBT001  a row of a table
    error = failed(tmp_path, returncode=status)

    assert isinstance(error, InterruptedBuildError) == by_host
    assert ("was killed from outside (SIG" in str(error)) == by_host


def test_memory_that_the_kernel_refused_is_the_machines_matter(tmp_path) -> None:
    (tmp_path / "memory.events").write_text("low 0\noom_kill 1\n")
    reason = Cgroup(tmp_path, limits()).reason()

    error = failed(tmp_path, returncode=137, stopped_by=reason)

    assert error.cause is Cause.HOST
    assert "it used up its memory; if it needs more, raise FORKWATCH_SANDBOX_MEMORY" in str(error)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("it used 301 MiB of memory, the limit is 300 MiB", Cause.HOST),
        ("it used 301 MiB of files in memory, the limit is 300 MiB", Cause.HOST),
        ("it left the machine less than 128 MiB of memory", Cause.HOST),
        ("less than 1024 MiB were left free on the disk; make room there", Cause.HOST),
        ("it filled the folder ccache, which may have 20 MiB", Cause.HOST),
        ("it used 4096 processes and threads, the limit is 4096", Cause.COMMIT),
        ("it used 9000 files in memory, the limit is 3000", Cause.COMMIT),
        ("it used 9000 MiB on disk, the limit is 60 MiB", Cause.COMMIT),
        ("it filled its /tmp; if it needs more, raise FORKWATCH_SANDBOX_TMP_SIZE", Cause.COMMIT),
        ("it wrote too much output", Cause.COMMIT),
    ],
)
def test_limits_of_its_own_are_the_commits_and_what_the_machine_lacks_is_not(
    tmp_path, reason: str, cause: Cause
) -> None:
    error = failed(tmp_path, returncode=-9, stopped_by=reason)

    assert error.cause is cause
    assert str(error) == f"build was ended: {reason}"


def test_a_build_that_took_too_long_is_not_tried_again(tmp_path) -> None:
    error = failed(tmp_path, "Killed\n", returncode=-9, timed_out=True)

    assert error.cause is Cause.COMMIT
    assert "was not done within" in str(error)


def test_a_full_disk_around_a_build_is_the_machines() -> None:
    full = build_failures.without_room(OSError(errno.ENOSPC, "No space left on device"))
    checked_out = StageError("checkout", "git worktree add failed", "No space left on device")
    at_checkout = build_failures.without_room(checked_out)

    assert full is not None
    assert "make room on the runner's disk" in str(full)
    assert at_checkout is not None
    assert (at_checkout.stage, at_checkout.cause) == ("checkout", Cause.HOST)
    assert build_failures.without_room(OSError(errno.EACCES, "no")) is None
    assert build_failures.without_room(BuildError("build", "no", "No space left on device")) is None
    assert build_failures.without_room(StageError("checkout", "no submodule")) is None


def killing(tiny_fork):
    """Return a commit whose compiler is killed, as the kernel kills one that is out of memory."""
    compiler = "add_custom_target(hog ALL COMMAND sh -c 'kill -9 $$$$')\n"
    lists = (tiny_fork.folder / "CMakeLists.txt").read_text()
    return tiny_fork.commit("killed", {"CMakeLists.txt": lists + compiler})


def test_a_killed_compiler_does_not_make_a_document_of_a_broken_commit(
    tmp_path, tiny_fork, own_home, settings, progress
) -> None:
    order = tiny_fork.order(killing(tiny_fork), baseline=tiny_fork.first)

    document = run_job(order, tmp_path, home=own_home, settings=settings, progress=progress)

    assert document.outcome is Outcome.FAILED
    assert document.failure is not None
    assert (document.failure.stage, document.failure.cause) == ("build", Cause.HOST)
    assert document.failure.message.startswith("candidate: build had a program killed")
    assert "Killed" in document.failure.log_tail
    assert document.candidate.artifact is None


def test_a_compile_error_is_the_commits_in_the_document(
    tmp_path, tiny_fork, own_home, settings, progress
) -> None:
    broken = tiny_fork.commit("broken", {"launcher.c": "int main(void) { return Killed; }\n"})
    order = tiny_fork.order(broken)

    document = run_job(order, tmp_path, home=own_home, settings=settings, progress=progress)

    assert document.outcome is Outcome.BUILD_FAILED
    assert document.failure is not None
    assert document.failure.cause is Cause.COMMIT


def test_a_baseline_whose_build_was_killed_is_told_from_one_that_does_not_build(
    tiny_fork, own_home, settings
) -> None:
    order = tiny_fork.order(tiny_fork.first, baseline=killing(tiny_fork))
    plan = parse_plan(order.plan)
    builder = Builder.of_job(order, home=own_home, settings=settings, cache=None)
    sides = Sides(order, plan, plan.suite("commit"), builder)

    with pytest.raises(InterruptedBuildError) as caught:
        sides.build(SideName.BASELINE)

    assert caught.value.side == "baseline"


def test_a_disk_that_others_filled_is_the_machines(tiny_fork, own_home) -> None:
    settings = RunnerSettings(home=own_home.root, disk_reserve=10**15)
    builder = Builder(home=own_home, settings=settings, repository=tiny_fork.folder)
    lists = (tiny_fork.folder / "CMakeLists.txt").read_text()
    waits = "execute_process(COMMAND sleep 60)\n"
    sha = tiny_fork.commit("waits", {"CMakeLists.txt": lists + waits})

    with pytest.raises(InterruptedBuildError, match="left free on the disk; make room there"):
        builder.build(checkout.resolve(tiny_fork.folder, sha), "rel", VARIANT)

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import psutil
import pytest

from runner import cgroup, sandbox, shell, watchdog
from runner.limits import MIB, limits
from runner.sandbox import Bind, Sandbox
from tests.runner.processes import until


@pytest.fixture
def run_inside(tmp_path):
    (tmp_path / "seen").mkdir()
    (tmp_path / "written").mkdir()
    sandbox.hand_over(tmp_path / "written")
    binds = (
        Bind(host=tmp_path / "seen", inside="seen"),
        Bind(host=tmp_path / "written", inside="written", writable=True),
    )

    def run(script: str, **options):
        command = Sandbox(binds=binds, environment={"GIVEN": "yes"}).command(
            ["sh", "-c", script], **options
        )
        return shell.run(command, timeout_s=120)

    return run


def test_the_sandbox_works_on_this_machine():
    assert sandbox.works() == ""


def test_home_and_other_folders_of_the_host_are_not_there(run_inside, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("do not read")

    assert not run_inside(f"cat {secret}").ok
    assert not run_inside("ls /root || ls /home").ok
    assert run_inside("echo $HOME").stdout == "/tmp\n"


def test_only_writable_binds_can_be_written(run_inside, tmp_path):
    assert not run_inside("echo x > /forkwatch/seen/file").ok
    assert not run_inside("echo x > /usr/file").ok
    assert run_inside("echo x > /forkwatch/written/file").ok
    assert (tmp_path / "written" / "file").read_text() == "x\n"


def test_nothing_of_the_host_belongs_to_code_inside(run_inside):
    assert not run_inside("chmod 600 /dev/null").ok
    assert not run_inside("chown 0:0 /forkwatch/written").ok
    assert run_inside("grep CapEff /proc/self/status").stdout.split() == ["CapEff:", "0" * 16]
    assert Path("/dev/null").stat().st_mode & 0o777 == 0o666


def test_there_is_no_network(run_inside):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"

        assert shell.run([sys.executable, "-c", connect], timeout_s=120).ok
        assert not run_inside(f'/usr/bin/python3 -c "{connect}"').ok


def test_the_environment_is_only_what_was_given(run_inside):
    names = {line.partition("=")[0] for line in run_inside("env").stdout.splitlines()}

    assert "GIVEN" in names
    assert "FORKWATCH_HOME" not in names
    assert names <= {
        "GIVEN",
        "PATH",
        "HOME",
        "LC_ALL",
        "TZ",
        "SOURCE_DATE_EPOCH",
        "FORKWATCH_RUNNER",
        "PWD",
        "_",
    }


def test_it_runs_as_an_ordinary_user_on_the_given_processor(run_inside):
    last = psutil.cpu_count() - 1

    assert run_inside("id -u").stdout == f"{sandbox.USER_ID}\n"
    assert run_inside("grep Cpus_allowed_list /proc/self/status", cpus=[last]).stdout.split() == [
        "Cpus_allowed_list:",
        str(last),
    ]


def test_code_is_filtered_and_only_what_is_our_own_may_go_without():
    # 2 is a filter (proc(5)); the rest of the sandbox stands in either case.
    found = {
        filtered: Sandbox(binds=(), filtered=filtered).run(
            ["grep", "-E", "^(Seccomp|NoNewPrivs|CapEff):", "/proc/self/status"], timeout_s=20
        )
        for filtered in (True, False)
    }

    words = {filtered: done.stdout.split() for filtered, done in found.items()}
    assert words[True] == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]
    assert words[False] == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "0"]


def test_nothing_is_written_into_memory_that_nobody_counts(run_inside):
    for folder in ("/", "/dev", "/forkwatch", "/etc"):
        assert not run_inside(f"touch {folder}/planted").ok
    assert run_inside("touch /tmp/x /var/tmp/x /run/x /dev/shm/x").ok


def test_no_descriptor_of_the_runner_is_open_inside(run_inside):
    assert run_inside("ls /proc/self/fd").stdout.split() == ["0", "1", "2", "3"]


def test_the_kernel_ends_what_is_inside_first_when_memory_is_short(run_inside):
    assert run_inside("cat /proc/self/oom_score_adj").stdout == "1000\n"


def test_nothing_is_typed_into_the_terminal_of_the_runner():
    # TIOCSTI on a terminal that we were started from: it would type into the runner's shell.
    inject = "import fcntl; fcntl.ioctl(0, 0x5412, b'x')"
    words = Sandbox(binds=()).command(["/usr/bin/python3", "-c", inject])

    assert _on_a_terminal(words) != 0
    assert _on_a_terminal([sys.executable, "-c", inject]) == 0


def _on_a_terminal(words: list[str]) -> int:
    """Return the status of a program whose controlling terminal is its standard input."""
    program = f"import os, pty, sys; sys.exit(pty.spawn({words!r}) >> 8)"
    return shell.run([sys.executable, "-c", program], timeout_s=120).returncode


@pytest.fixture
def watched(tmp_path):
    """A sandbox with small limits and one writable folder."""
    folder = tmp_path / "written"
    folder.mkdir()
    sandbox.hand_over(folder)
    return Sandbox(
        binds=(Bind(host=folder, inside="written", writable=True),),
        limits=limits(
            memory=100 * MIB,
            # More than bombs in tests beside this one may have: the kernel counts by user.
            processes=200,
            disk_bytes=20 * MIB,
            tmp_bytes=8 * MIB,
            log_bytes=MIB,
            disk_reserve=MIB,
        ),
    )


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        ("hog = b'x' * 2**28", "memory"),
        # What the kernel refuses is refused to one of them; the others stay to be counted.
        ("for _ in range(9):\n  try: os.fork()\n  except OSError: pass", "processes"),
        ("open('/forkwatch/written/x', 'wb').write(os.urandom(40 * 2**20))", "on disk"),
        ("print('x' * 2**21, flush=True)", "too much output"),
    ],
)
def test_what_goes_on_running_is_ended_past_its_limits(watched, tmp_path, attack, said):
    words = ["/usr/bin/python3", "-c", f"import os, time\n{attack}\ntime.sleep(600)"]

    with watched.running(words, log=tmp_path / "log") as (process, verdicts):
        until(lambda: process.poll() is not None, seconds=120)

    assert said in verdicts.reason()
    until(lambda: watchdog.marked(watchdog.MARK) == [])


def test_honest_work_is_left_alone(watched):
    script = "dd if=/dev/urandom of=/forkwatch/written/x bs=1M count=10; sleep 1"

    assert watched.run(["sh", "-c", script], timeout_s=120).ok


def test_a_program_that_does_not_want_to_end_is_ended(watched):
    done = watched.run(["sh", "-c", "trap '' TERM INT HUP; while :; do :; done"], timeout_s=0.5)

    assert done.timed_out
    until(lambda: watchdog.marked(watchdog.MARK) == [])


def test_endless_output_is_not_kept_in_the_memory_of_the_runner(watched):
    done = watched.run(["yes"], timeout_s=120)

    assert done.stopped_by == shell.OUTPUT_FULL
    assert len(done.stdout) == shell.OUTPUT_BYTES_MAX


def test_a_log_that_became_a_link_or_a_pipe_is_not_read(tmp_path):
    (tmp_path / "secret").write_text("do not read")
    (tmp_path / "link").symlink_to("secret")
    os.mkfifo(tmp_path / "pipe")

    assert shell.tail(tmp_path / "link") == ""
    assert shell.tail(tmp_path / "pipe") == ""


def test_a_cgroup_bounds_and_names_what_the_kernel_ended(watched):
    parent = cgroup.usable_parent()
    if parent is None:
        pytest.skip("cgroup v2 with memory and pids cannot be made here; docs/sandbox.md")
    for attack, said in (
        ("hog = b'x' * 2**28", "memory"),
        # What the kernel refuses is refused to one of them; the others stay to be counted.
        ("for _ in range(9):\n  try: os.fork()\n  except OSError: pass", "processes"),
    ):
        done = watched.run(["/usr/bin/python3", "-c", f"import os\n{attack}"], timeout_s=120)

        assert f"it used up its {said}" in done.stopped_by
    assert [path for path in parent.iterdir() if path.name.startswith("forkwatch-")] == []

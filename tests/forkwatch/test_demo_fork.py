"""The demo fork: the same on every machine, and what it says about its commits is true.

Each commit is built at one fixed place, as the runner's sandbox does, because paths and times are
the usual reasons for unequal binaries.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from forkwatch.demo.fork import DemoFork, make_demo_fork
from forkwatch.errors import DemoForkError
from runner import shell
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from pathlib import Path

SOURCE_DATE_EPOCH = "1600000000"


@dataclass(frozen=True, kw_only=True)
class Built:
    """How the build of one commit ended."""

    ok: bool
    configured: bool
    output: str
    folder: Path

    def files(self) -> dict[str, bytes]:
        """Return installed files by name."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }


def build(fork: DemoFork, commit: str, room: Path, *options: str) -> Built:
    """Build `commit` at a fixed place below `room` and keep the result under the commit's name."""
    source, binary, prefix = room / "source", room / "build", room / "artifact"
    for folder in (source, binary, prefix):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir()
    git = ["git", "-c", "safe.directory=*", "-C", str(fork.repository)]
    archive = room / "source.tar"
    assert shell.run([*git, "archive", "-o", str(archive), commit], timeout_s=60).ok
    shutil.unpack_archive(archive, source, filter="data")
    words = ["env", f"SOURCE_DATE_EPOCH={SOURCE_DATE_EPOCH}", "cmake"]
    configured = shell.run(
        [
            *[*words, "-G", "Ninja", "-S", str(source), "-B", str(binary)],
            *[f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_BUILD_TYPE=Release", *options],
        ],
        timeout_s=60,
    )
    built = shell.run([*words, "--build", str(binary)], timeout_s=60)
    ok = configured.ok and built.ok
    if ok:
        ok = shell.run([*words, "--install", str(binary)], timeout_s=60).ok
    kept = room / "kept" / commit
    if prefix.exists():
        shutil.copytree(prefix, kept)
    return Built(ok=ok, configured=configured.ok, output=built.stdout + built.stderr, folder=kept)


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> DemoFork:
    return make_demo_fork(tmp_path_factory.mktemp("demo") / "fork")


@pytest.fixture(scope="module")
def builds(fork: DemoFork, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    room = tmp_path_factory.mktemp("builds")
    return {commit: build(fork, commit, room) for commit in fork.commits}


def test_two_demo_forks_have_the_same_commits(fork: DemoFork, tmp_path: Path) -> None:
    again = make_demo_fork(tmp_path / "again")

    assert again.commits == fork.commits
    assert len(set(fork.commits)) == 8


def test_the_repository_is_sound_and_the_newest_commit_is_checked_out(fork: DemoFork) -> None:
    git = ["git", "-c", "safe.directory=*", "-C", str(fork.repository)]
    log = shell.run([*git, "log", "--reverse", "--format=%H", fork.branch], timeout_s=60)

    assert tuple(log.stdout.split()) == fork.commits
    assert shell.run([*git, "fsck", "--strict"], timeout_s=60).ok
    assert shell.run([*git, "status", "--porcelain"], timeout_s=60).stdout == ""


def test_subjects_match_what_the_fork_says_about_its_commits(fork: DemoFork) -> None:
    git = ["git", "-c", "safe.directory=*", "-C", str(fork.repository), "show", "-s", "--format=%s"]
    subjects = [
        shell.run([*git, commit], timeout_s=60).stdout.strip()
        for commit in (fork.slow, fork.broken, fork.docs_only)
    ]

    assert subjects == [
        "Verify record copies in release builds",
        "Name the file in every message of the launcher",
        "Explain how to change a default",
    ]


def test_a_folder_with_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("keep me")

    with pytest.raises(DemoForkError, match="not an empty folder"):
        make_demo_fork(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_the_plan_is_valid_and_never_changes(fork: DemoFork) -> None:
    git = ["git", "-c", "safe.directory=*", "-C", str(fork.repository), "show"]
    texts = {
        shell.run([*git, f"{commit}:forkwatch.toml"], timeout_s=60).stdout
        for commit in fork.commits
    }

    assert len(texts) == 1
    plan = parse_plan(texts.pop())
    assert plan.fork.name == "demo-mariadb"
    assert plan.suite("commit").workloads == ("scan", "point-query")


def test_all_commits_build_but_the_broken_one(fork: DemoFork, builds: dict[str, Built]) -> None:
    assert [commit for commit in fork.commits if not builds[commit].ok] == [fork.broken]
    assert builds[fork.broken].configured
    assert "too few arguments to function" in builds[fork.broken].output


def test_only_the_documentation_commit_installs_what_its_parent_does(
    fork: DemoFork, builds: dict[str, Built]
) -> None:
    working = [commit for commit in fork.commits if commit != fork.broken]
    unchanged = [
        commit
        for parent, commit in itertools.pairwise(working)
        if builds[commit].files() == builds[parent].files()
    ]

    assert unchanged == [fork.docs_only]


def test_the_slow_commit_changes_the_copy_library_only(
    fork: DemoFork, builds: dict[str, Built]
) -> None:
    slow = fork.commits.index(fork.slow)
    before = builds[fork.commits[slow - 1]].files()
    after = builds[fork.slow].files()

    assert [name for name in after if after[name] != before[name]] == ["lib/libdemo_copy.so"]


def test_copies_are_right_at_every_short_size(fork: DemoFork, builds: dict[str, Built]) -> None:
    for commit in (fork.commits[0], fork.slow):
        memcpy = ctypes.CDLL(str(builds[commit].folder / "lib/libdemo_copy.so")).memcpy
        memcpy.restype = ctypes.c_void_p
        memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        source = bytes(position % 251 for position in range(1100))
        for size in range(1024):
            target = ctypes.create_string_buffer(b"\xff" * 1100, 1100)
            address = ctypes.addressof(target) + 3

            assert memcpy(address, source[1:], size) == address
            assert target.raw == b"\xff" * 3 + source[1 : 1 + size] + b"\xff" * (1097 - size)


def test_the_launcher_puts_defaults_between_option_files_and_the_caller(
    fork: DemoFork, tmp_path: Path
) -> None:
    server = tmp_path / "server"
    server.write_text('#!/bin/sh\nprintf "%s\\n" "$LD_PRELOAD" "$@"\n')
    server.chmod(0o755)
    built = build(fork, fork.commits[-1], tmp_path, f"-DDEMO_SERVER={server}")
    launcher = str(built.folder / "sbin/mariadbd")

    words = shell.run(
        [launcher, "--no-defaults", "--max-connections=7", "--bootstrap"], timeout_s=30
    ).stdout.splitlines()
    alone = shell.run([launcher], timeout_s=30).stdout.splitlines()

    assert words[0] == str(built.folder / "lib/libdemo_copy.so")
    assert words[1] == "--no-defaults"
    assert words[-2:] == ["--max-connections=7", "--bootstrap"]
    assert words[2:-2] == alone[1:]
    assert "--max-connections=200" in alone
    assert "--innodb-lock-wait-timeout=30" in alone


def test_the_launcher_keeps_what_was_preloaded(fork: DemoFork, tmp_path: Path) -> None:
    server = tmp_path / "server"
    server.write_text('#!/bin/sh\necho "$LD_PRELOAD"\n')
    server.chmod(0o755)
    built = build(fork, fork.commits[-1], tmp_path, f"-DDEMO_SERVER={server}")
    own = str(built.folder / "lib/libdemo_copy.so")
    other = shutil.copy(own, tmp_path / "other.so")

    shown = shell.run(
        ["env", f"LD_PRELOAD={other}", str(built.folder / "sbin/mariadbd")], timeout_s=30
    )

    assert shown.stdout == f"{own}:{other}\n"


def test_the_launcher_says_which_server_is_missing(fork: DemoFork, tmp_path: Path) -> None:
    built = build(fork, fork.commits[-1], tmp_path, "-DDEMO_SERVER=/nowhere/mariadbd")

    ended = shell.run([str(built.folder / "sbin/mariadbd")], timeout_s=30)

    assert ended.returncode == 127
    assert "cannot start /nowhere/mariadbd: No such file or directory" in ended.stderr


def test_the_installed_launcher_starts_a_server_that_answers(
    fork: DemoFork, builds: dict[str, Built], tmp_path_factory: pytest.TempPathFactory
) -> None:
    room = tmp_path_factory.mktemp("db")
    prefix = builds[fork.slow].folder
    launcher = str(prefix / "sbin/mariadbd")
    made = shell.run(
        [
            *["env", f"MYSQLD_BOOTSTRAP={launcher}", "mariadb-install-db", "--no-defaults"],
            *[f"--datadir={room}/data", "--user=root", "--skip-test-db"],
            "--auth-root-authentication-method=normal",
        ],
        timeout_s=120,
    )
    assert made.ok, made.stdout + made.stderr
    client = ["mariadb", "--no-defaults", f"--socket={room}/s", "--user=root", "--batch"]
    with (room / "log").open("wb") as log:
        server = shell.start(
            [
                *[launcher, "--no-defaults", f"--datadir={room}/data", f"--socket={room}/s"],
                *["--skip-networking", "--user=root", "--max-connections=17"],
                "--innodb-buffer-pool-size=32M",
            ],
            output=log,
        )
    try:
        query = "SELECT @@max_connections, @@innodb_lock_wait_timeout, REPEAT('x', 60)"
        for _ in range(200):
            answer = shell.run([*client, "-N", f"--execute={query}"], timeout_s=30)
            if answer.ok or server.poll() is not None:
                break
            time.sleep(0.1)
        maps = shell.run(["cat", f"/proc/{server.pid}/maps"], timeout_s=30).stdout
        ended = shell.run([*client, "--execute=SHUTDOWN"], timeout_s=30)

        assert answer.stdout.split() == ["17", "30", "x" * 60], (room / "log").read_text()
        assert str(prefix / "lib/libdemo_copy.so") in maps
        assert ended.ok
        assert server.wait(120) == 0
    finally:
        server.kill()

"""A tiny fork to build and run: a launcher in C around the system's MariaDB server."""

from __future__ import annotations

from pathlib import Path

from results.job import JobOrder
from runner import shell

LAUNCHER = """\
#include <unistd.h>
#define VERSION_TEXT "%(version)s"
const char *const launcher_version = VERSION_TEXT;
int main(int argc, char **argv) {
  (void)argc;
  execv("/usr/sbin/mariadbd", argv);
  return 1;
}
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(tiny_fork LANGUAGES C)
add_executable(mariadbd launcher.c)
install(TARGETS mariadbd DESTINATION sbin)
install(FILES README.md DESTINATION share/doc)
"""
PLAN = """\
[fork]
name = "tiny"
engine = "mariadb"

[builds.rel]
server = "sbin/mariadbd"
[builds.rel.cmake_options]
CMAKE_BUILD_TYPE = "Release"

[configs.default.options]
innodb_buffer_pool_size = "64M"
innodb_log_file_size = "16M"
innodb_flush_log_at_trx_commit = 2

[datasets.small]
rows = 2000

[suites.commit]
workloads = ["scan", "point-query", "update-index"]
starts = 2
slices = 1
seconds = 1
warmup_seconds = 0
confirm_starts = 2
"""


class TinyFork:
    """A git repository that a test writes commits into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._git("init", "--quiet", "--initial-branch=main")
        self.write({"CMakeLists.txt": CMAKE, "README.md": "tiny\n", "forkwatch.toml": PLAN})
        self.first = self.commit("first", {"launcher.c": LAUNCHER % {"version": "1"}})

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def commit(self, subject: str, files: dict[str, str]) -> str:
        self.write(files)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", subject)
        return self._git("rev-parse", "HEAD").strip()

    def launcher(self, version: str) -> dict[str, str]:
        return {"launcher.c": LAUNCHER % {"version": version}}

    def order(self, candidate: str, **chosen: object) -> JobOrder:
        facts = {
            "job": f"job-{self.folder.parent.name}",
            "run": "run-1",
            "repository": self.folder,
            "plan": PLAN,
            "branch": "main",
            "suite": "commit",
            "host_class": "default",
            "candidate": candidate,
        }
        return JobOrder.model_validate({**facts, **chosen})

    def _git(self, *words: str) -> str:
        who = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.com"]
        done = shell.run(["git", *who, "-C", str(self.folder), *words], timeout_s=60)
        assert done.ok, done.stderr
        return done.stdout

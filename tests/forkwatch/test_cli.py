"""The command as a user runs it: a process, its two streams and its exit status."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from results.slice import SideName
from runner import shell
from tests.fakes.run_documents import a_run
from tests.runner.processes import servers, until
from tests.runner.tiny_fork import TinyFork


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("cli-home")


@pytest.fixture
def fork(tmp_path):
    return TinyFork(tmp_path / "fork")


@pytest.fixture
def forkwatch(tmp_path):
    def forkwatch(*words: str) -> shell.Completed:
        command = [sys.executable, "-m", "forkwatch", *words]
        return shell.run(command, timeout_s=300, cwd=tmp_path)

    return forkwatch


def test_compare_prints_json_on_stdout_and_its_log_on_stderr(forkwatch, fork, home):
    other = fork.commit("code", fork.launcher("2"))

    done = forkwatch(
        *("compare", fork.first[:10], other, "--repository", str(fork.folder)),
        *("--home", str(home), "--workload", "point-query", "--starts", "3", "--json"),
    )

    found = json.loads(done.stdout)
    assert done.returncode in {0, 1}, done.stderr
    assert (found["baseline"], found["candidate"]) == (fork.first, other)
    assert found["outcome"] == "measured"
    assert found["starts"] == 3
    verdict = found["verdicts"]["point-query"]
    assert verdict["change"]["n_candidate"] == 3
    assert (done.returncode == 1) == (verdict["decision"] == "regression")
    assert "start 3 of at most 3 done" in done.stderr


def test_compare_of_equal_content_says_so_and_measures_nothing(forkwatch, fork, home):
    docs = fork.commit("words", {"README.md": "other\n"})

    done = forkwatch(
        "compare", fork.first, docs, "--repository", str(fork.folder), "--home", str(home)
    )

    assert done.returncode == 0, done.stderr
    assert "same" in done.stdout or "unchanged" in done.stdout
    assert "measure" not in done.stderr


def test_compare_of_a_commit_that_does_not_build_shows_the_compilers_words(forkwatch, fork, home):
    broken = fork.commit("broken", {"launcher.c": "int main(void) { return undeclared; }\n"})

    done = forkwatch(
        "compare", fork.first, broken, "--repository", str(fork.folder), "--home", str(home)
    )

    assert done.returncode == 1
    assert "does not build" in done.stdout
    assert "undeclared" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compare", "nothing-such", "HEAD"), "no commit 'nothing-such'"),
        (("compare", "HEAD", "HEAD", "--suite", "comit"), "did you mean 'commit'"),
        (("compare", "HEAD", "HEAD", "--workload", "scna"), "did you mean 'scan'"),
        (("run", "HEAD", "--plan", "/no/such/plan"), "forkwatch init"),
        (("run", "--job", "/no/such/job"), "has no job.json"),
        (("report", "/no/such/document"), "cannot be read"),
        (("compare", "HEAD", "HEAD", "--starts", "1"), "greater than or equal to 2"),
    ],
)
def test_misuse_is_one_line_and_status_2(forkwatch, fork, home, words, said):
    where = ("--repository", str(fork.folder)) if words[0] != "report" else ()
    base = ("--home", str(home)) if words[0] != "report" else ()

    done = forkwatch(*words, *where, *base)

    assert done.returncode == 2, done.stderr
    assert said in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_interrupted_compare_cleans_up_and_goes_on_later(forkwatch, fork, home):
    other = fork.commit("code", fork.launcher("3"))
    words = ["compare", fork.first, other, "--repository", str(fork.folder), "--home", str(home)]
    words += ["--workload", "scan", "--starts", "3"]
    log = fork.folder.parent / "log"
    # A shell starts what runs in the background with SIGINT ignored, and so might ours have been.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "forkwatch", *words]
    with log.open("wb") as output:
        process = shell.start(command, output=output)
        until(lambda: "start 1 of at most 3 done" in log.read_text() and servers(home), seconds=300)
        os.kill(process.pid, signal.SIGINT)
        status = process.wait(120)

    assert status == 130, log.read_text()
    assert "interrupted" in log.read_text()
    until(lambda: servers(home) == [])
    assert not list(home.glob("jobs/*/data"))
    resumed = forkwatch(*words)
    assert resumed.returncode in {0, 1}, resumed.stderr
    assert resumed.stderr.count("scan candidate") == 2


def test_plan_says_what_would_be_measured(forkwatch, fork):
    done = forkwatch("plan", "--repository", str(fork.folder))

    assert done.returncode == 0
    assert "scan, point-query, update-index" in done.stdout


def test_report_judges_a_stored_pair_again(forkwatch, fork, tmp_path):
    sides = {"baseline": [[100.0, 101.0], [102.0, 101.0], [100.0, 99.0], [101.0, 100.0]]}
    story = a_run().against("a" * 40)
    story = story.with_samples("scan", sides["baseline"], side=SideName.BASELINE)
    slower = [[value * 0.8 for value in start] for start in sides["baseline"]]
    document = story.with_samples("scan", slower).build()
    path = tmp_path / "run.json"
    path.write_text(document.model_dump_json())

    done = forkwatch("report", str(path), "--plan", str(fork.folder / "forkwatch.toml"))

    assert done.returncode == 1
    assert "scan is 20.0 % slower" in done.stdout


def test_doctor_finds_this_machine_able(forkwatch, home):
    done = forkwatch("doctor", "--home", str(home))

    assert done.returncode == 0, done.stdout
    assert "bubblewrap works" in done.stdout

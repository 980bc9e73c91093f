"""The road of a fork without a service, from a run to a kept confirm, by the verbs themselves."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from forkwatch import comparing
from forkwatch.ci_settings import CiSettings
from forkwatch.compare_verb import compare
from forkwatch.errors import DoorError
from forkwatch.history_verb import history
from forkwatch.run_verb import run
from results.atomic import write_atomically
from results.document import Outcome
from results.job import DOCUMENT_FILE
from runner import checkout
from tests.fakes.git_fork import GitFork
from tests.fakes.run_documents import a_run
from tests.fakes.scripted_measurement import PLAN, measure
from workloads.plan import PLAN_FILE

APP = typer.Typer()
APP.command()(run)
APP.command()(compare)
APP.add_typer(history, name="history")


class Fork:
    """A fork, and the command in a checkout of it with its measuring replaced."""

    def __init__(self, folder):
        self.git = GitFork(folder / "fork.git")
        self.folder = folder
        (folder / PLAN_FILE).write_text(PLAN)
        self.orders = []

    def do(self, order, *, home, settings, progress):
        """Take the place of `forkwatch.comparing.do`."""
        del settings, progress
        self.orders.append(order)
        shas = [sha for sha in (order.candidate, order.baseline) if sha]
        subjects = {sha: checkout.resolve(order.repository, sha).subject for sha in shas}
        document = measure(order, subjects)
        folder = home.folder("jobs", order.job)
        write_atomically(folder / DOCUMENT_FILE, document.model_dump_json())
        return document, folder

    def say(self, *words):
        plan = () if "--plan-from" in words else ("--plan", str(self.folder / PLAN_FILE))
        where = ["--repository", str(self.git.folder), *plan]
        if words[0] != "history":
            return CliRunner().invoke(
                APP, [words[0], *where, "--home", str(self.folder / "home"), *words[1:]]
            )
        return CliRunner().invoke(APP, [*words[:2], *where, "--remote", ".", *words[2:]])

    def run(self, sha, *words, seed=0):
        """Measure a commit and return the path of a copy of its document."""
        path = self.folder / f"{sha[:8]}.json"
        said = self.say("run", "--document", str(path), "--seed", str(seed), *words, sha)
        assert said.exit_code == 0, said.output
        return str(path)

    def measured(self, count):
        """Push so many usual commits, measure them and keep their runs."""
        for number in range(count):
            said = self.say("history", "add", self.run(self.git.push("usual"), seed=number))
            assert said.exit_code == 0, said.output


@pytest.fixture
def fork(tmp_path, monkeypatch):
    for name in CiSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    made = Fork(tmp_path)
    monkeypatch.setattr(comparing, "do", made.do)
    return made


def test_from_a_suspicion_to_a_new_baseline(fork):
    fork.measured(5)
    good = checkout.resolve(fork.git.folder, "main").sha
    slow = fork.git.push("Check every record speed=0.8")
    document = fork.run(slow)

    judged = fork.say("history", "judge", document)

    assert judged.exit_code == 1, judged.output
    assert "scan looks 20." in judged.stdout
    assert f"`forkwatch compare {good[:12]} {slow[:12]}`" in judged.stdout
    assert fork.say("history", "judge", "--say-only", document).exit_code == 0

    fork.say("history", "add", document)
    pair = str(fork.folder / "pair.json")
    compared = fork.say("compare", "--document", pair, good, slow)
    assert compared.exit_code == 1, compared.output
    assert "scan is 19.7 % slower" in compared.stdout
    assert fork.say("history", "add", pair).exit_code == 0

    # The same level once more: it is the baseline now, and nobody is bothered again.
    after = fork.run(fork.git.push("usual again speed=0.8"), seed=9)
    told = fork.say("history", "judge", "--json", after)
    assert told.exit_code == 0, told.output
    data = json.loads(told.stdout)
    assert (data["suspicious"], data["baseline"]) == ([], None)
    assert data["runs"] == {"scan": 1, "point-query": 6}


def test_a_commit_without_a_change_is_not_suspicious(fork):
    fork.measured(5)

    judged = fork.say("history", "judge", fork.run(fork.git.push("usual"), seed=9))

    assert judged.exit_code == 0, judged.output
    assert "suspicious" not in judged.stdout


def test_the_first_run_is_what_later_ones_are_compared_with(fork):
    judged = fork.say("history", "judge", fork.run(fork.git.push("first")))

    assert judged.exit_code == 0, judged.output
    assert "first run of scan, point-query" in judged.stdout


def test_adding_twice_adds_once(fork):
    document = fork.run(fork.git.push("usual"))

    assert "added to 2 series" in fork.say("history", "add", document).stdout
    assert "was there already" in fork.say("history", "add", document).stdout


def test_a_folder_serves_as_well(fork):
    kept = str(fork.folder / "bucket")
    document = fork.run(fork.git.push("usual"))
    fork.say("history", "add", "--folder", kept, document)
    after = fork.run(fork.git.push("Check every record speed=0.8"))

    assert fork.say("history", "judge", "--folder", kept, after).exit_code == 1
    assert "forkwatch-history" not in checkout.git(fork.git.folder, "branch").stdout


def test_on_github_the_next_job_is_told_what_to_compare(fork, monkeypatch):
    fork.measured(3)
    good = checkout.resolve(fork.git.folder, "main").sha
    slow = fork.git.push("Check every record speed=0.8")
    document = fork.run(slow)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(fork.folder / "summary"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(fork.folder / "output"))

    said = fork.say("history", "judge", "--ci", "--say-only", document)

    assert said.exit_code == 0, said.output
    outputs = (fork.folder / "output").read_text()
    assert outputs == f"suspicious=true\nbaseline={good}\ncandidate={slow}\n"
    summary = (fork.folder / "summary").read_text()
    assert summary.startswith("**scan looks 20.")
    assert "| scan |" in summary


def test_without_a_suspicion_there_is_no_baseline_to_compare_with(fork, monkeypatch):
    document = fork.run(fork.git.push("usual"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(fork.folder / "output"))
    fork.say("history", "judge", "--ci", document)

    assert "suspicious=false\nbaseline=\n" in (fork.folder / "output").read_text()


def test_a_run_without_numbers_is_not_added(fork):
    fork.git.push("usual")
    story = a_run().that(Outcome.UNSTABLE, stage="host", message="noisy")
    path = fork.folder / "run.json"
    path.write_text(story.build().model_dump_json())

    said = fork.say("history", "add", str(path))

    assert said.exit_code == 0
    assert "nothing to add: run run-1 is unstable" in said.stdout


@pytest.mark.parametrize("text", [None, "{}", "no json"])
def test_what_is_no_run_document_is_an_error(fork, text):
    path = fork.folder / "run.json"
    if text is not None:
        path.write_text(text)

    said = fork.say("history", "judge", str(path))

    assert isinstance(said.exception, DoorError)
    assert "run.json" in str(said.exception)


def test_a_pull_request_is_compared_with_where_it_parted_by_the_plan_of_its_base(fork):
    base = fork.git.push("base")
    head = fork.git.commit_aside("Check every record speed=0.8", parent=base)
    fork.git.push("later speed=0.5")

    said = fork.say("compare", "--merge-base", "--plan-from", "main", "--untrusted", "main", head)

    assert said.exit_code == 1, said.output
    (order,) = fork.orders
    assert (order.baseline, order.candidate, order.trusted) == (base, head, False)
    assert order.plan == PLAN


def test_code_is_trusted_where_nobody_says_otherwise(fork):
    base, head = fork.git.push("one"), fork.git.push("two")
    fork.say("compare", base, head)

    assert [order.trusted for order in fork.orders] == [True]


def test_a_summary_is_shown_where_it_was_asked_for(fork, monkeypatch):
    base, head = fork.git.push("one"), fork.git.push("two speed=0.8")
    summary = fork.folder / "summary"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    fork.say("compare", base, head)
    assert not summary.exists()

    assert fork.say("compare", "--ci", base, head).exit_code == 1
    assert summary.read_text().startswith("**scan is 19.7 % slower")


def test_a_summary_that_cannot_be_shown_changes_no_verdict(fork, monkeypatch):
    base, head = fork.git.push("one"), fork.git.push("two")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(fork.folder / "no" / "such"))

    assert fork.say("compare", "--ci", base, head).exit_code == 0


def test_a_document_that_cannot_be_copied_is_an_error(fork):
    base, head = fork.git.push("one"), fork.git.push("two")

    said = fork.say("compare", "--document", str(fork.folder / "no" / "such"), base, head)

    assert isinstance(said.exception, DoorError)
    assert "cannot be written" in str(said.exception)

"""Judging by a history that lies in files is judging by the service's rules."""

from __future__ import annotations

import random

import pytest

from detectors.verdict import Decision
from forkwatch import history_judging
from forkwatch.errors import DoorError
from forkwatch.history_judging import ancestors, judge, rows_of, stretch
from forkwatch.history_text import Entry, entries_of
from results.document import Outcome
from results.metric import THROUGHPUT
from results.slice import SideName
from runner import shell
from runner.errors import OperatorError
from service.core.model import JobKind, SampleSet
from service.flows import baseline, levels
from service.flows.baseline import SingleInputs
from service.flows.changes import changes_of_run
from service.flows.suspicion import suspicions_of
from tests.fakes.git_fork import GitFork
from tests.fakes.run_documents import AT, a_run, sha
from workloads.plan import Gates

GATES = Gates()
#: Of log values: a run, and a start in it.
RUN_SD, START_SD = 0.006, 0.004


def commit_of(number):
    return f"{number:040x}"


def run_of(number, levels_, rng, *, noise=1.0):
    """A commit's own run: three starts of two slices for each workload at its level."""
    story = a_run().on(commit_of(number)).called(f"run-{number}")
    for workload, level in levels_.items():
        base = level * rng.lognormvariate(0, noise * RUN_SD)
        rows = [[base * rng.lognormvariate(0, noise * START_SD)] * 2 for _ in range(3)]
        story = story.with_samples(workload, rows)
    return story.build()


def told(documents):
    """Return the histories of the series, as the files would have them."""
    histories = {}
    for document in documents:
        for key, entry in entries_of(document).items():
            histories.setdefault(key, []).append(entry)
    return histories


def line_of(count):
    """Return the commits before the last of so many, nearest first."""
    return [commit_of(number) for number in reversed(range(count))]


def judged(levels_before, level_now, *, runs, seed=1, gates=GATES):
    rng = random.Random(seed)
    past = [run_of(number, levels_before, rng) for number in range(runs)]
    now = run_of(runs, level_now, rng)
    return judge(now, told(past), gates, before=line_of(runs)), now, past


def test_the_figures_are_the_services():
    for name in ("SUSPICION_ALPHA", "SUSPICION_BUDGET", "SUSPICION_GATE_SHARE"):
        assert getattr(history_judging, name) == getattr(levels, name)
    assert history_judging.BASELINE_RUNS_MIN == levels.BASELINE_RUNS_MIN
    assert history_judging.BASELINE_RUNS_MAX == baseline.BASELINE_RUNS_MAX
    assert history_judging.HISTORY_RUNS_MAX == baseline.HISTORY_RUNS_MAX


@pytest.mark.parametrize("runs", [1, 2, 5, 40])
@pytest.mark.parametrize("factor", [1.0, 0.97, 0.9])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_changes_and_suspicions_are_those_of_the_service(runs, factor, seed):
    before = {"scan": 2.0, "point-query": 60_000.0, "update-index": 900.0}
    found, now, past = judged(before, before | {"scan": 2.0 * factor}, runs=runs, seed=seed)

    def sample_set(document, key):
        entry = entries_of(document)[key]
        return SampleSet(
            run=document.id,
            side=SideName.CANDIDATE,
            sha=entry.sha,
            kind=JobKind.SINGLE,
            starts=tuple((start,) for start in entry.starts),
        )

    items = [
        SingleInputs(
            series=key,
            history=tuple(sample_set(document, key) for document in past),
            candidate=sample_set(now, key),
        )
        for key in entries_of(now)
    ]
    changes = changes_of_run(items)
    suspicions = suspicions_of(items, changes, GATES)

    assert [one.verdict.change for one in found.judged] == changes
    assert [one.before is not None for one in found.judged] == [bool(one) for one in suspicions]
    for one, suspicion in zip(found.judged, suspicions, strict=True):
        if suspicion is not None:
            assert one.before == (suspicion.before or past[-1].candidate.commit.sha)


def test_a_large_loss_is_suspicious_and_the_pair_begins_at_the_commit_before():
    before = {"scan": 2.0, "point-query": 60_000.0}
    found, _, _ = judged(before, before | {"scan": 1.7}, runs=8)

    assert found.suspicious == ["scan"]
    assert found.baseline == commit_of(7)
    assert found.verdicts["scan"].decision is Decision.REGRESSION
    assert found.verdicts["point-query"].decision is not Decision.REGRESSION


def test_a_gain_is_suspicious_too_because_it_moves_the_baseline():
    found, _, _ = judged({"scan": 2.0}, {"scan": 2.4}, runs=8)

    assert found.suspicious == ["scan"]


def test_the_usual_is_not_suspicious():
    found, _, _ = judged({"scan": 2.0}, {"scan": 2.0}, runs=8)

    assert (found.suspicious, found.baseline) == ([], None)


def test_the_first_run_of_a_series_has_no_verdict():
    found, now, _ = judged({"scan": 2.0}, {"scan": 2.0, "insert": 5.0}, runs=3)

    assert set(found.verdicts) == {"scan"}
    rows = {row.workload: row for row in rows_of(found, now)}
    assert rows["insert"].baseline is None
    assert rows["scan"].baseline.starts == 9
    assert rows["scan"].candidate.starts == 3


def test_several_runs_none_odd_by_itself_are_seen_together_and_the_pair_begins_before_them():
    rng = random.Random(4)
    quiet = [run_of(number, {"scan": 2.0}, rng, noise=2.5) for number in range(60)]
    slower = [run_of(60 + number, {"scan": 2.0 * 0.965}, rng, noise=2.5) for number in range(20)]
    seen = []
    for count in range(1, 21):
        past = [*quiet, *slower[: count - 1]]
        found = judge(slower[count - 1], told(past), GATES, before=line_of(len(past)))
        if found.baseline:
            seen.append((count, found.baseline))

    assert seen
    count, first = seen[0]
    assert abs(int(first, 16) - 59) <= 2, "the last commit of the old level, or nearly"
    assert count > 1, "this loss was chosen to be too small for one run"


def entry(number, *, kind="single", begins=False, run=None):
    return Entry(
        run=run or f"{kind}-{number}",
        sha=commit_of(number),
        kind=kind,
        measured_at=AT,
        starts=(1.0,),
        begins=begins,
    )


def test_a_stretch_begins_at_the_last_confirmed_change_and_is_in_the_order_of_commits():
    entries = [entry(3), entry(0), entry(2, kind="paired", begins=True), entry(1), entry(2)]

    found = stretch(entries, line_of(5))

    assert [one.run for one in found] == ["paired-2", "single-3"]


def test_a_pair_stands_for_its_commit_whichever_came_first():
    for entries in ([entry(0), entry(0, kind="paired")], [entry(0, kind="paired"), entry(0)]):
        assert [one.kind for one in stretch(entries, line_of(1))] == ["paired"]


def test_of_two_runs_of_a_commit_the_later_counts():
    entries = [entry(0, run="first"), entry(0, run="second")]

    assert [one.run for one in stretch(entries, line_of(1))] == ["second"]


def test_runs_of_other_branches_do_not_count():
    assert stretch([entry(7), entry(1)], line_of(3)) == (entry(1),)


def test_no_more_than_a_hundred_runs_are_looked_at():
    entries = [entry(number) for number in range(150)]

    found = stretch(entries, line_of(150))

    assert [one.sha for one in found] == [commit_of(number) for number in range(50, 150)]


@pytest.mark.parametrize(
    ("story", "said"),
    [
        (a_run().that(Outcome.BUILD_FAILED, stage="build", message="no"), "build-failed"),
        (a_run().against(sha("a")).with_samples("scan", [[1.0], [1.0]]), "verdicts of its own"),
        (a_run().with_samples("scan", [[], []]).with_samples("scan", [[0.0]]), "no sample"),
    ],
)
def test_what_cannot_be_judged_says_why(story, said):
    with pytest.raises(DoorError, match=said):
        judge(story.build(), {}, GATES, before=[])


def test_ancestors_are_the_first_parents(tmp_path):
    fork = GitFork(tmp_path / "fork.git")
    first, second = fork.push("one"), fork.push("two")
    side = fork.commit_aside("side", parent=first)
    third = fork.push("merge", also=side)

    assert ancestors(fork.folder, third) == [second, first]
    assert ancestors(fork.folder, first) == []
    with pytest.raises(OperatorError, match="no commit"):
        ancestors(fork.folder, sha("e"))


def test_a_shallow_checkout_is_an_error_that_says_what_to_do(tmp_path):
    fork = GitFork(tmp_path / "fork.git")
    fork.push("one")
    last = fork.push("two")
    words = ["git", "clone", "--quiet", "--depth", "1", f"file://{fork.folder}"]
    assert shell.run([*words, str(tmp_path / "shallow")], timeout_s=60).ok

    with pytest.raises(DoorError, match="fetch-depth: 0"):
        ancestors(tmp_path / "shallow", last)


def test_series_of_other_hosts_are_not_compared():
    document = run_of(1, {"scan": 2.0}, random.Random(1))
    elsewhere = document.model_copy(
        update={"host": document.host.model_copy(update={"host_class": "other"})}
    )
    found = judge(document, told([elsewhere]), GATES, before=[commit_of(1)])

    assert document.series("scan", THROUGHPUT.name) not in told([elsewhere])
    assert found.verdicts == {}

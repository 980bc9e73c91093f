"""A planted slowdown shows as instructions in the right function, with real servers."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.instrument.knob_fork import knob_fork
from forkwatch.comparing import order_for
from forkwatch.errors import DoorError
from forkwatch.explain_verb import explain, show
from forkwatch.explaining import Explained, explain_pair, refuse_nothing
from forkwatch.watching import LogProgress
from results.explanation import Explanation, WorkloadExplanation
from runner import instructions, profile
from runner.counters import hardware
from runner.explaining import Wanted
from runner.settings import Home, RunnerSettings

PLAN = """\
[fork]
name = "knob"
engine = "mariadb"

[builds.rel]
server = "sbin/mariadbd"
cmake_options = { CMAKE_BUILD_TYPE = "Release" }

[configs.default.options]
innodb_buffer_pool_size = "64M"
innodb_log_file_size = "16M"
performance_schema = false

[datasets.small]
rows = 2000

[suites.commit]
workloads = ["scan"]
warmup_seconds = 0
"""
ROWS = 2000
#: Each is a comparison, an addition and a jump at least.
ROUNDS = 200


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    """A pair whose candidate turns 200 rounds more at every copy of a column."""
    if instructions.missing():
        pytest.skip(instructions.missing())
    folder = tmp_path_factory.mktemp("explained")
    fork = knob_fork(folder / "fork")
    (folder / "plan.toml").write_text(PLAN)
    order, _ = order_for(
        repository=fork.repository,
        plan_path=folder / "plan.toml",
        baseline=fork.commit(rounds=0, label="plain"),
        candidate=fork.commit(rounds=ROUNDS, label="plain"),
        suite="commit",
        host_class="default",
        workloads=(),
        starts=None,
        seed=0,
    )
    return explain_pair(
        order,
        Wanted(operations=3, profile_seconds=3),
        home=Home(folder / "home"),
        settings=RunnerSettings(home=folder / "home", watch_host=False),
        progress=LogProgress(),
    )


def test_a_planted_slowdown_shows_in_its_function_and_in_all_that_call_it(explained):
    [scan] = explained.explanation.workloads
    found = scan.instructions

    assert scan.gaps == ()
    assert found.differs is True
    change = found.candidate - found.baseline
    # One column of a row is as long as the planted loop looks for.
    assert change > 2 * ROUNDS * ROWS
    assert found.own[0].function == "memcpy"
    assert found.own[0].change == pytest.approx(change, rel=0.02)
    callers = [cost.function for cost in found.with_callees]
    assert len(callers) > 5
    assert "memcpy" in callers
    assert any("handler::ha_rnd_next" in name for name in callers[: callers.index("memcpy")])


def test_a_planted_slowdown_is_red_in_the_flame_graph(explained):
    if profile.missing():
        pytest.skip(profile.missing())
    [scan] = explained.explanation.workloads

    assert scan.profile.file == "explained/01-scan.svg"
    assert min(scan.profile.baseline_samples, scan.profile.candidate_samples) > 100
    assert scan.profile.candidate_cpu_us_per_op > scan.profile.baseline_cpu_us_per_op
    text = (explained.folder / scan.profile.file).read_text()
    boxes = {}
    for group in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}g"):
        title, box = group[0].text, group[1].attrib["fill"]
        boxes.setdefault(title.partition(":")[0], []).append(box)
    reds = [fill for fill in boxes["memcpy"] if fill.startswith("rgb(255,")]
    assert "rgb(255,105,105)" in reds, boxes["memcpy"]
    assert not (explained.folder / "data").exists()


def test_every_form_tells_the_function(explained, capsys):
    show(explained, as_json=True, as_markdown=False)
    data = json.loads(capsys.readouterr().out)
    assert data["workloads"][0]["instructions"]["own"][0]["function"] == "memcpy"
    show(explained, as_json=False, as_markdown=True)
    text = capsys.readouterr().out
    assert "more instructions per operation" in text
    assert "most of them in memcpy (+" in text
    show(explained, as_json=False, as_markdown=False)
    shown = capsys.readouterr().out
    assert "most of them in memcpy (+" in shown
    for line in explained.explanation.missing:
        assert shown.count(line) == 1


def test_a_pair_about_which_nothing_was_found_out_is_failed_work(tmp_path, capsys):
    gap = WorkloadExplanation(workload="scan", gaps=("the server died",))
    found = Explained(explanation=Explanation(workloads=(gap,)), folder=tmp_path)

    with pytest.raises(typer.Exit) as left:
        show(found, as_json=False, as_markdown=True)

    assert left.value.exit_code == 1
    assert "scan: the server died" in capsys.readouterr().out


@pytest.fixture
def no_programs(monkeypatch, tmp_path):
    """Let the machine have neither valgrind nor perf."""
    found = (profile.missing, hardware.missing)
    for each in found:
        each.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    yield
    for each in found:
        each.cache_clear()


def test_a_machine_that_can_do_nothing_says_so_before_anything_is_built(no_programs):
    with pytest.raises(DoorError, match="valgrind is not installed; try: apt-get") as refused:
        refuse_nothing(Wanted())
    assert "perf is not installed; try: apt-get install linux-perf" in str(refused.value)

    app = typer.Typer()
    app.command()(explain)
    done = CliRunner().invoke(app, ["HEAD~1", "HEAD"])
    assert isinstance(done.exception, DoorError)


def test_equal_software_has_nothing_to_explain(tmp_path):
    fork = knob_fork(tmp_path / "fork")
    (tmp_path / "plan.toml").write_text(PLAN)
    plain = fork.commit(rounds=0, label="plain")
    order, _ = order_for(
        repository=fork.repository,
        plan_path=tmp_path / "plan.toml",
        baseline=plain,
        candidate=plain,
        suite="commit",
        host_class="default",
        workloads=(),
        starts=None,
        seed=0,
    )
    home = Home(tmp_path / "home")

    with pytest.raises(DoorError, match="both install the same files"):
        explain_pair(
            order,
            Wanted(),
            home=home,
            settings=RunnerSettings(home=home.root, watch_host=False),
            progress=LogProgress(),
        )

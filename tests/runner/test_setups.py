from __future__ import annotations

import pytest

from forkwatch.matrix import measure, question_of
from forkwatch.matrix_showing import report_of
from reports.matrix import legend_lines, throughput_table
from results.document import Outcome
from results.metric import THROUGHPUT
from results.slice import SideName
from runner.errors import OperatorError
from runner.job import run_job
from runner.setups import run_alike, setups
from tests.runner.processes import servers, until
from tests.runner.tiny_fork import PLAN
from workloads.plan import parse_plan

TABLES = """
[builds.broken]
server = "sbin/mariadbd"
c_flags = ["-DVERSION_TEXT="]

[builds.twin]
server = "sbin/mariadbd"
[builds.twin.cmake_options]
CMAKE_BUILD_TYPE = "Release"

[configs.ps1.options]
innodb_buffer_pool_size = "64M"
innodb_log_file_size = "16M"
performance_schema = 1

[matrices.small]
builds = ["rel", "broken"]
configs = ["default", "ps1"]

[matrices.twins]
builds = ["rel", "twin"]

[matrices.hopeless]
builds = ["broken", "rel"]
configs = ["default", "ps1"]

[matrices.baseless]
builds = ["broken", "rel", "twin"]
"""


@pytest.fixture
def matrix(tiny_fork, home, settings, progress):
    tiny_fork.write({"forkwatch.toml": PLAN + TABLES})
    tiny_fork.commit("broken as broken", {"launcher.c": BREAKABLE})
    # What is asked here does not depend on how busy the machine is.
    settings = settings.model_copy(update={"watch_host": False})

    def run(name):
        question = question_of(
            repository=tiny_fork.folder,
            plan_path=None,
            name=name,
            commits=(),
            workloads=("point-query",),
            starts=2,
            seed=3,
            host_class="default",
        )
        return question, measure(question, home=home, settings=settings, progress=progress)

    return run


#: Does not compile with a broken build's flags.
BREAKABLE = """\
#include <unistd.h>
#ifdef VERSION_TEXT
#error this build variant is broken
#endif
int main(int argc, char **argv) {
  (void)argc;
  execv("/usr/sbin/mariadbd", argv);
  return 1;
}
"""


def test_two_configs_of_one_artifact_are_measured_and_a_broken_build_is_a_gap(
    matrix, home, progress
):
    question, (config, *broken) = matrix("small")

    document = config.document
    assert document.outcome is Outcome.MEASURED, document.failure
    assert document.candidate.commit == document.baseline.commit
    assert document.candidate.artifact.content_hash == document.baseline.artifact.content_hash
    assert (document.variant, document.config) == ("rel", "ps1")
    assert (document.baseline.variant, document.baseline.config) == ("rel", "default")
    keys = [document.series("point-query", THROUGHPUT.name, side) for side in SideName]
    assert [key.config for key in keys] == ["default", "ps1"]
    assert document.series("point-query", THROUGHPUT.name) == keys[1]
    assert {pair.document.outcome for pair in broken} == {Outcome.BUILD_FAILED}
    (line,) = throughput_table(report_of(question, [config, *broken])).lines
    assert line.cells[0] == "point-query"
    assert float(line.cells[1].split()[-1]) > 0
    assert "does not build" in legend_lines(report_of(question, [config, *broken]))[2]
    until(lambda: servers(home.root) == [])

    # Asking again measures nothing twice; the gaps are tried again and nothing else.
    pieces = progress.pieces
    _, again = matrix("small")
    assert again[0].document == document
    assert progress.pieces == pieces
    assert again[1].document.created_at > broken[0].document.created_at


def test_a_build_that_installs_the_same_files_is_a_gap_that_says_so(matrix, progress):
    _, (pair,) = matrix("twins")

    assert pair.document.outcome is Outcome.UNCHANGED
    assert pair.gap == "installs the same files as the base and runs under the same config"
    assert progress.pieces == 0


def test_without_a_base_no_other_cell_is_tried(matrix):
    _, pairs = matrix("hopeless")

    # The first cell is the base's own build under another config.
    assert [pair.document.outcome if pair.document else None for pair in pairs] == [
        Outcome.BUILD_FAILED,
        None,
        None,
    ]
    assert pairs[1].gap == "not tried: broken/default, the base, does not build"


def test_a_base_of_another_build_that_is_missing_is_noticed_too(matrix):
    _, pairs = matrix("baseless")

    assert [pair.document.outcome if pair.document else None for pair in pairs] == [
        Outcome.FAILED,
        None,
    ]
    assert "baseline: " in pairs[0].gap
    assert pairs[1].gap == "not tried: broken/default, the base, does not build"


def test_sides_are_as_the_suite_says_unless_the_order_does(tiny_fork):
    plan = parse_plan(PLAN + TABLES)
    suite = plan.suite("commit")

    plain = setups(tiny_fork.order(tiny_fork.first), plan, suite)
    assert {(setup.variant, setup.config) for setup in plain.values()} == {("rel", "default")}
    assert run_alike(plain)
    chosen = setups(tiny_fork.order(tiny_fork.first, configs={"candidate": "ps1"}), plan, suite)
    assert chosen[SideName.CANDIDATE].server.options["performance_schema"] == 1
    assert chosen[SideName.BASELINE].config == "default"
    assert not run_alike(chosen)


def test_an_order_for_an_unknown_config_is_refused(tiny_fork, own_home, settings, progress):
    order = tiny_fork.order(tiny_fork.first, configs={"candidate": "defualt"})

    with pytest.raises(OperatorError, match="no config 'defualt'; did you mean 'default'"):
        run_job(
            order,
            own_home.folder("jobs", order.job),
            home=own_home,
            settings=settings,
            progress=progress,
        )

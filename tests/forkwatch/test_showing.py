"""What `compare`, `report` and `run` print besides the verdicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer

from forkwatch.comparing import conclude
from forkwatch.showing import end_run, show
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.scripted_measurement import PLAN
from tests.fakes.server_facts import a_life, exact_counters, with_lives

if TYPE_CHECKING:
    from pathlib import Path

    from results.document import RunDocument


def a_pair() -> RunDocument:
    story = a_run().on(sha("c")).against(sha("b"))
    for side in SideName:
        story = story.with_samples("scan", [[2.0], [2.0], [2.0]], side=side)
    lives = tuple(a_life(side) for side in SideName)
    lived = with_lives(story.build(), lives, lives, lives)
    return lived.model_copy(update={"exact": exact_counters()})


def test_compare_says_whether_the_work_differs_and_what_servers_took(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(typer.Exit) as left:
        show(conclude(a_pair(), PLAN), tmp_path / "run.json", as_json=False)

    said = capsys.readouterr().out
    assert said.index("Relative throughput") < said.index("Exact counters: yes, 1 of 2 cases")
    assert said.index("Exact counters") < said.index("Load and start")
    # A yes is no verdict.
    assert left.value.exit_code == 0


def test_compare_sums_up_groups_of_several_workloads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    story = a_run().on(sha("c")).against(sha("b"))
    for side, ops_s in ((SideName.BASELINE, 2.0), (SideName.CANDIDATE, 1.0)):
        story = story.with_samples("scan", [[ops_s]] * 3, side=side)
        story = story.with_samples("range-covered-pk(100)", [[4.0]] * 3, side=side)
    with pytest.raises(typer.Exit):
        show(conclude(story.build(), PLAN), tmp_path / "run.json", as_json=False)

    said = capsys.readouterr().out
    [line] = [line for line in said.splitlines() if line.startswith("range-1")]
    assert line.split() == ["range-1", "2", "▼", "0.50", "1.00", "▼", "0.75", "▼", "0.75"]


def test_compare_sums_up_nothing_where_each_group_has_one_workload(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(typer.Exit):
        show(conclude(a_pair(), PLAN), tmp_path / "run.json", as_json=False)

    assert "by group" not in capsys.readouterr().out


def test_json_has_the_differences(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(typer.Exit):
        show(conclude(a_pair(), PLAN), tmp_path / "run.json", as_json=True)

    told = json.loads(capsys.readouterr().out)
    first = told["exact"]["cases"][0]
    assert first["name"] == "q19-index-condition"
    assert [one["what"] for one in first["differences"]] == ["plan", "handler_read_next"]


def test_run_keeps_its_product_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    document = with_lives(a_run().with_samples("scan", [[2.0]]).build(), (a_life(),))

    with pytest.raises(typer.Exit) as left:
        end_run(document)

    said = capsys.readouterr()
    assert said.out == ""
    assert "start-up, s" in said.err
    assert left.value.exit_code == 0

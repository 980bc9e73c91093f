from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from runner import datasets, flame_graph, profile, sysbench
from runner.errors import ClientError
from runner.servers import mysql_family
from tests.runner.conftest import ROWS
from workloads.catalog import find_workload

#: As perf 6.1 prints it with the fields that are asked for.
SCRIPT = """\
mariadbd   506 cpu-clock:
\tffffffff815f58e3 [unknown] ([kernel.kallsyms])
\tffffffff815f58e4 [unknown] ([kernel.kallsyms])
\t           d4353 __poll+0x10 (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t          1d4353 do_command(THD*) (/forkwatch/artifact/sbin/mariadbd)

mariadbd   506 cpu-clock:
\t          1d4353 do_command(THD*) (/forkwatch/artifact/sbin/mariadbd)

mariadbd   507 cpu-clock:
\t    7f9c3e469640 [unknown] (/forkwatch/artifact/sbin/mariadbd)
\t          1d4353 a;b<script>\x1b[31m (/forkwatch/artifact/sbin/mariadbd)
\t               0 [unknown] ([unknown])
"""
SVG = "{http://www.w3.org/2000/svg}"


def test_stacks_are_folded_from_the_outermost_frame_in_and_unknown_frames_are_one():
    found = profile.fold(SCRIPT.splitlines())

    assert found == {
        "do_command(THD*);__poll+0x10;[kernel.kallsyms]": 1,
        "do_command(THD*)": 1,
        "[unknown];a:b<script>;[mariadbd]": 1,
    }


def test_a_hostile_profile_is_bounded():
    deep = [f"\t 1 f{number} (x)" for number in range(1000)]
    long = ["", "\t 1 " + "n" * 5000 + " (x)"]

    found = profile.fold([*deep, *long])

    assert max(len(stack.split(";")) for stack in found) == profile.DEPTH_MAX
    assert "n" * profile.NAME_LENGTH_MAX in found


def titles(svg: str) -> list[str]:
    return [title.text or "" for title in ET.fromstring(svg).iter(f"{SVG}title")]


def test_a_flame_graph_shows_what_grew_red_and_what_shrank_blue_and_keeps_what_is_gone():
    svg = flame_graph.draw(
        {"main;old": 50, "main;same": 50},
        {"main;new": 10, "main;same": 10},
        title="a & b",
        baseline_cost=8,
        candidate_cost=10,
        unit="us/op",
    )

    # 8 us by halves, and 10 us by halves.
    assert titles(svg) == [
        "all: baseline 8, candidate 10 us/op (+22.22 % of the whole)",
        "main: baseline 8, candidate 10 us/op (+22.22 % of the whole)",
        "new: baseline 0, candidate 5 us/op (+55.56 % of the whole)",
        "old: baseline 4, candidate 0 us/op (-44.44 % of the whole)",
        "same: baseline 4, candidate 5 us/op (+11.11 % of the whole)",
    ]
    boxes = [box.attrib for box in ET.fromstring(svg).iter(f"{SVG}rect")][1:]
    assert [box["fill"] for box in boxes[2:4]] == ["rgb(255,105,105)", "rgb(105,105,255)"]
    assert float(boxes[0]["width"]) == pytest.approx(1200, abs=1)


def test_names_from_a_hostile_binary_stay_text():
    name = "</title><script>alert(1)</script>&<svg onload='x'>"

    svg = flame_graph.draw({name: 3}, {name: 3}, title=name)

    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
    assert tags == {"svg", "g", "title", "rect", "text"}
    assert titles(svg)[1].startswith(name)


def test_a_side_without_samples_and_a_profile_without_any_are_drawn():
    assert (
        "main: baseline 1, candidate 0"
        in titles(flame_graph.draw({"main": 2}, {}, title="gone"))[1]
    )
    assert titles(flame_graph.draw({}, {}, title="nothing")) == []


def test_a_profile_of_a_real_server_has_its_stacks(spec, snapshot, tmp_path):
    if profile.missing():
        pytest.skip(profile.missing())
    datasets.restore(snapshot, tmp_path / "data")
    with (
        mysql_family.running(spec, tmp_path / "data", cpus=[]) as server,
        profile.recording(server.pids, tmp_path / "profile"),
    ):
        sysbench.run_slice(
            server, find_workload("scan"), ROWS, seconds=2, threads=1, seed=1, cpus=[]
        )

    found = profile.stacks(tmp_path / "profile", spec.installed.folder)

    assert sum(found.values()) > 20
    # MariaDB's server shows its symbols to plugins, so they are there in a stripped one too.
    assert any("row_search_mvcc" in stack or "handler" in stack for stack in found)


def test_a_profile_that_is_none_says_so(tmp_path):
    if profile.missing():
        pytest.skip(profile.missing())
    (tmp_path / "profile").write_text("PERFILE2 or not")

    with pytest.raises(ClientError, match="could not be read"):
        profile.stacks(tmp_path / "profile", tmp_path)

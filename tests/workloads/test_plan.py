from __future__ import annotations

import pytest

from workloads.catalog import SCRIPTS, WORKLOADS, find_workload
from workloads.errors import PlanError, UnknownWorkloadError
from workloads.plan import PLAN_BYTES_MAX, digest, parse_plan, read_plan

PLAN = """\
[fork]
name = "my-fork"
engine = "mariadb"

[builds.rel]
cmake_options = { WITH_LTO = true }

[suites.commit]
workloads = ["scan", "point-query"]

[gates.workloads]
scan = 0.08
"""


def faults(text: str) -> list[str]:
    with pytest.raises(PlanError) as caught:
        parse_plan(text)
    return str(caught.value).splitlines()


def test_a_small_plan_has_sensible_defaults():
    plan = parse_plan(PLAN)

    assert plan.fork.branch == "main"
    assert plan.suite("commit").starts == 3
    assert plan.gates.gate("scan") == 0.08
    assert plan.gates.gate("point-query") == 0.05
    assert plan.builds["rel"].cmake_options == {"WITH_LTO": True}


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("engine", "engin", "fork.engin: unknown key; did you mean 'engine'?"),
        ("cmake_options", "cmake_option", "builds.rel.cmake_option: unknown key; did you mean"),
        ("[suites.commit]", "[suits.commit]", "suits: unknown key; did you mean 'suites'?"),
        ("workloads = [", "workload = [", "suites.commit.workload: unknown key; did you mean"),
        ('"scan"', '"scam"', "suites.commit.workloads: unknown workload 'scam'; did you mean"),
        ("scan = 0.08", "scann = 0.08", "gates.workloads: unknown workload 'scann'; did you"),
        ("0.08", "1.5", "gates.workloads.scan: Input should be less than 1"),
        ('"mariadb"', '"oracle"', "fork.engine: Input should be 'mariadb' or 'mysql'"),
        (
            "[gates.workloads]",
            "[gates]\ndefualt = 0.1\n[gates.workloads]",
            "gates.defualt: unknown",
        ),
    ],
)
def test_a_fault_names_the_place_and_the_nearest_key(old, new, fault):
    lines = faults(PLAN.replace(old, new))

    assert any(fault in line for line in lines), lines


def test_every_fault_is_told_at_once():
    text = PLAN.replace('"my-fork"', "7").replace("0.08", "-1")

    assert len(faults(text)) == 2


def test_a_name_that_nothing_defines_is_a_fault():
    text = PLAN.replace('workloads = ["scan"', 'build = "rle"\nworkloads = ["scan"')

    assert faults(text) == [
        "forkwatch.toml: suites.commit.build: nothing is called 'rle'; did you mean 'rel'?"
    ]
    with pytest.raises(PlanError, match="did you mean 'commit'"):
        parse_plan(PLAN).suite("comit")


def test_no_path_of_a_plan_leaves_the_prefix():
    for path in ("/usr/sbin/mysqld", "../../bin/sh", "bin/$(id)"):
        text = PLAN.replace("cmake_options", f'server = "{path}"\ncmake_options')
        assert any("builds.rel.server" in line for line in faults(text)), path


def test_text_that_is_no_toml_is_a_fault():
    assert "not TOML" in faults("[fork\n")[0]


def test_a_file_that_is_missing_or_huge_or_binary_is_a_clear_error(tmp_path):
    path = tmp_path / "forkwatch.toml"
    with pytest.raises(PlanError, match="forkwatch init"):
        read_plan(path)
    path.write_bytes(b"#" * (PLAN_BYTES_MAX + 1))
    with pytest.raises(PlanError, match="a plan may have"):
        read_plan(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(path)


def test_digests_follow_content_not_order():
    one = parse_plan(PLAN.replace("{ WITH_LTO = true }", "{ A = 1, B = 2 }")).builds["rel"]
    other = parse_plan(PLAN.replace("{ WITH_LTO = true }", "{ B = 2, A = 1 }")).builds["rel"]
    third = parse_plan(PLAN.replace("{ WITH_LTO = true }", "{ A = 1, B = 3 }")).builds["rel"]

    assert digest(one) == digest(other)
    assert digest(one) != digest(third)


def test_every_workload_has_its_script():
    for workload in WORKLOADS.values():
        assert (SCRIPTS / workload.script).is_file(), workload.name
        assert find_workload(workload.name) is workload


def test_an_unknown_workload_offers_the_nearest():
    with pytest.raises(UnknownWorkloadError, match="did you mean 'point-query'"):
        find_workload("point-qurey")
    with pytest.raises(UnknownWorkloadError, match="known: scan"):
        find_workload("zzz")

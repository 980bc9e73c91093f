from __future__ import annotations

import pytest

from workloads.catalog import find_workload
from workloads.errors import PlanError, UnknownWorkloadError
from workloads.plan import MATRIX_CELLS_MAX, PLAN_BYTES_MAX, digest, parse_plan, read_plan

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
        ('"mariadb"', '"oracle"', "'mysql', 'postgres', 'rocksdb' or 'leveldb'"),
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


@pytest.mark.parametrize("mode", ["shared-core", "disjoint", "disjoint-awake", "unpinned"])
def test_a_host_class_names_its_placement(mode):
    plan = parse_plan(f'{PLAN}\n[hosts.lab]\nplacement = "{mode}"\n')

    assert plan.hosts["lab"].placement == mode


def test_an_unknown_placement_names_the_known_ones():
    (fault,) = faults(f'{PLAN}\n[hosts.lab]\nplacement = "somewhere"\n')

    assert fault.startswith("forkwatch.toml: hosts.lab.placement: ")
    assert "'disjoint-awake'" in fault


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


def test_an_unknown_workload_offers_the_nearest():
    with pytest.raises(UnknownWorkloadError, match="did you mean 'point-query'"):
        find_workload("point-qurey")
    with pytest.raises(UnknownWorkloadError, match="known: scan"):
        find_workload("zzz")


MATRIX = f"""{PLAN}
[builds.rel_lto]
[configs.default]
[configs.ps0.options]
performance_schema = 0

[matrices.what-if]
builds = ["rel", "rel_lto"]
configs = ["default", "ps0"]
"""


def test_the_first_build_under_the_first_config_is_the_base_of_a_matrix():
    matrix = parse_plan(MATRIX).matrix("what-if")

    assert matrix.cells() == (
        ("rel", "default"),
        ("rel", "ps0"),
        ("rel_lto", "default"),
        ("rel_lto", "ps0"),
    )
    assert matrix.suite == "commit"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('["rel", "rel_lto"]', '["rel", "rel_tlo"]', "matrices.what-if.builds: nothing is called"),
        ('["rel", "rel_lto"]', '["rel", "rel_tlo"]', "'rel_tlo'; did you mean 'rel_lto'?"),
        ('["default", "ps0"]', '["default", "ps"]', "'ps'; did you mean 'ps0'?"),
        ('["default", "ps0"]', '["ps0", "ps0"]', "configs: 'ps0' is there more than once"),
        ("builds = [", 'suite = "comit"\nbuilds = [', "'comit'; did you mean 'commit'?"),
        ("configs = [", "config = [", "unknown key; did you mean 'configs'?"),
    ],
)
def test_a_fault_of_a_matrix_names_the_place_and_the_nearest_name(old, new, fault):
    lines = faults(MATRIX.replace(old, new))

    assert any(fault in line for line in lines), lines


def test_a_matrix_larger_than_a_night_says_why_it_may_not_be():
    names = [f"c{number}" for number in range(MATRIX_CELLS_MAX // 2 + 1)]
    tables = "".join(f"[configs.{name}]\n" for name in names)
    text = MATRIX.replace('["default", "ps0"]', str(names)) + tables

    (fault,) = faults(text)

    assert (
        "matrices.what-if.builds: 26 cells with its configs; at most 25 fit into a night" in fault
    )


def test_an_unknown_matrix_build_or_config_names_the_nearest():
    plan = parse_plan(MATRIX)

    with pytest.raises(PlanError, match="did you mean 'what-if'"):
        plan.matrix("whatif")
    with pytest.raises(PlanError, match="did you mean 'rel_lto'"):
        plan.build("rel_lt")
    with pytest.raises(PlanError, match="did you mean 'ps0'"):
        plan.config("ps1")
    with pytest.raises(PlanError, match=r"write a table \[matrices.NAME\]"):
        parse_plan(PLAN).matrix("any")

"""Build variants of a plan: build systems, what contradicts itself, and their identity."""

from __future__ import annotations

import hashlib
import json

import pytest

from workloads.errors import PlanError
from workloads.plan import BuildVariant, DatasetPlan, digest, parse_plan

PLAN = """\
[fork]
name = "my-fork"
engine = "{engine}"

[builds.rel]
{build}

[suites.commit]
workloads = ["point-query"]
"""


def parsed(build: str = "", engine: str = "postgres") -> BuildVariant:
    return parse_plan(PLAN.format(engine=engine, build=build)).builds["rel"]


def fault(build: str, engine: str = "postgres") -> str:
    with pytest.raises(PlanError) as caught:
        parsed(build, engine)
    (line,) = str(caught.value).splitlines()
    return line.removeprefix("forkwatch.toml: ")


@pytest.mark.parametrize(
    ("engine", "server"),
    [("mariadb", "bin/mariadbd"), ("mysql", "bin/mysqld"), ("postgres", "bin/postgres")],
)
def test_the_server_program_follows_the_engine(engine, server):
    assert parsed(engine=engine).server == server
    assert parsed('server = "sbin/mine"', engine=engine).server == "sbin/mine"


@pytest.mark.parametrize("engine", ["rocksdb", "leveldb"])
def test_the_program_of_a_library_is_its_benchmark(engine):
    text = PLAN.format(engine=engine, build="").replace("point-query", "overwrite")

    plan = parse_plan(f'{text}\n[datasets.small]\nkind = "lsm"\n')

    assert plan.builds["rel"].server == "bin/db_bench"


def test_a_list_of_commands_is_kept_as_words():
    variant = parsed(
        'system = "command"\ncommands = [["make", "-j{jobs}"], ["sh", "-c", "x ${y}"]]'
    )

    assert variant.commands == (("make", "-j{jobs}"), ("sh", "-c", "x ${y}"))
    assert not variant.is_prebuilt


def test_a_prebuilt_tree_may_bring_its_own_loader():
    variant = parsed(
        'system = "prebuilt"\nprefix = "/opt/mysql 9.7"\nloader = "usr/lib64/ld.so"\n'
        'library_paths = ["usr/lib"]'
    )

    assert variant.is_prebuilt
    assert (variant.prefix, variant.loader) == ("/opt/mysql 9.7", "usr/lib64/ld.so")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        ('system = "make"', "builds.rel.system: Input should be 'cmake', 'command' or 'prebuilt'"),
        ('system = "command"', 'builds.rel: system = "command" needs commands, such as [["./conf'),
        (
            'system = "command"\ncommands = [[]]',
            "builds.rel.commands.0: Tuple should have at least",
        ),
        (
            'system = "command"\ncommands = [["make", "-j{job}"]]',
            "builds.rel: commands: unknown placeholder {job}; did you mean {jobs}?",
        ),
        ('system = "prebuilt"', 'builds.rel: system = "prebuilt" needs prefix, the absolute path'),
        ('system = "prebuilt"\nprefix = "opt/x"', "builds.rel.prefix: String should match pattern"),
        (
            'system = "prebuilt"\nprefix = "/opt/../etc"',
            "builds.rel.prefix: has to be the absolute path of a folder, without '..' (is '/opt/",
        ),
        ('system = "prebuilt"\nprefix = "//"', "builds.rel.prefix: has to be the absolute path"),
        (
            'system = "prebuilt"\nprefix = "/x"\nlibrary_paths = ["lib"]',
            "builds.rel: library_paths needs loader",
        ),
        (
            'system = "prebuilt"\nprefix = "/x"\nc_flags = ["-O3"]',
            'builds.rel: c_flags needs system = "cmake" or "command", and this one is "prebuilt"',
        ),
        (
            'commands = [["make"]]',
            'builds.rel: commands needs system = "command", and this one is "cmake"',
        ),
        ('prefix = "/x"', 'builds.rel: prefix needs system = "prebuilt"'),
        (
            'system = "command"\ncommands = [["make"]]\ntargets = ["all"]\ncmake_options.A = 1',
            'cmake_options needs system = "cmake", and this one is "command"; targets needs',
        ),
    ],
)
def test_a_build_that_contradicts_itself_says_what_to_change(build, said):
    assert said in fault(build)


def test_a_build_keeps_the_identity_it_had_before_there_were_other_systems():
    before = {
        "build_minutes_max": 120,
        "c_compiler": "gcc",
        "c_flags": ["-g1"],
        "cmake_options": {"WITH_LTO": True},
        "cxx_compiler": "g++",
        "cxx_flags": [],
        "install_components": [],
        "install_db": None,
        "linker": "default",
        "server": "bin/mariadbd",
        "targets": ["all"],
    }
    text = json.dumps(before, sort_keys=True)

    variant = BuildVariant(c_flags=("-g1",), cmake_options={"WITH_LTO": True})

    assert digest(variant) == hashlib.sha256(text.encode()).hexdigest()
    other = BuildVariant(
        system="command", commands=(("make",),), c_flags=("-g1",), server="bin/mariadbd"
    )
    assert digest(other) != digest(BuildVariant(c_flags=("-g1",)))


def test_a_dataset_keeps_the_identity_it_had_before_there_were_other_kinds():
    text = json.dumps({"rows": 2000, "tables": 1}, sort_keys=True)

    assert digest(DatasetPlan(rows=2000)) == hashlib.sha256(text.encode()).hexdigest()
    # What is measured on it does not change its bytes.
    assert digest(DatasetPlan(rows=2000, cached=False)) == digest(DatasetPlan(rows=2000))
    others = [
        DatasetPlan(rows=2000, kind="tpcc"),
        DatasetPlan(rows=2000, kind="tpcc", scale=2),
        DatasetPlan(rows=2000, storage_engine="rocksdb"),
        DatasetPlan(rows=2000, primary_key=False),
        DatasetPlan(rows=2000, kind="lsm", value_bytes=100),
        DatasetPlan(rows=2000),
    ]
    assert len({digest(plan) for plan in others}) == len(others)

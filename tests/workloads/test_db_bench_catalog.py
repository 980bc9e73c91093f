from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from workloads.db_bench import CHAINS, STEPS, SUITES, WORKLOADS, batch_of, step_of
from workloads.db_bench_flags import BASE, FORMAT_FREE, OURS
from workloads.db_bench_words import (
    Circumstances,
    can_wait,
    fits_cache,
    format_options,
    loading_steps,
    normalising,
    refusal,
    slice_words,
    words,
)
from workloads.plan import parse_plan
from workloads.plan_datasets import DatasetPlan
from workloads.workload import DatasetKind, Group, Tool

ROOT = Path(__file__).parents[2]
BY_NAME = {workload.name: workload for workload in WORKLOADS}
ROWS = DatasetPlan(kind=DatasetKind.LSM, rows=100_000)
AT = Circumstances(engine="rocksdb", dataset=ROWS, options={}, threads=4, seed=7)
LEVELDB = replace(AT, engine="leveldb")


def flags(argv: list[str]) -> dict[str, str]:
    """Return the flags of a command line; none may be there twice."""
    pairs = [word.removeprefix("--").partition("=") for word in argv]
    assert len({name for name, _, _ in pairs}) == len(pairs)
    return {name: value for name, _, value in pairs}


def of(name: str, at: Circumstances = AT, seconds: int = 10, reads: int = 0) -> dict[str, str]:
    return flags(slice_words(step_of(BY_NAME[name]), at, seconds=seconds, reads=reads))


def with_options(at: Circumstances = AT, **options: object) -> Circumstances:
    return replace(at, options=options)


def test_names_are_told_apart():
    assert len(BY_NAME) == len(WORKLOADS)
    assert all(workload.tool is Tool.DB_BENCH for workload in WORKLOADS)
    assert all(workload.dataset is DatasetKind.LSM for workload in WORKLOADS)
    assert all(workload.group is Group.LSM for workload in WORKLOADS)
    assert all(step_of(workload) in STEPS.values() for workload in WORKLOADS)


def test_suites_name_workloads_that_there_are():
    assert {name for names in SUITES.values() for name in names} <= set(BY_NAME)


def test_a_sequence_begins_with_a_new_database_and_is_one_chain():
    for name in ("leveled-6", "leveled-9", "universal-6", "universal-no-wait-6"):
        steps = [BY_NAME[one] for one in SUITES[name]]

        assert len(steps) == int(name.rpartition("-")[2])
        assert step_of(steps[0]).fresh
        assert not any(step_of(step).fresh for step in steps[1:])
        assert {step.chain for step in steps} == {name.partition("-")[0]}


def test_leveldb_has_no_universal_compaction_and_no_ranges():
    able = {workload.name for workload in WORKLOADS if "leveldb" in workload.engines}

    assert able == {
        "readrandom",
        "readwhilewriting",
        "overwrite",
        "leveled.fillseq",
        "leveled.readrandom",
        "leveled.readwhilewriting",
        "leveled.overwrite",
    }


def test_what_only_reads_says_so():
    reading = {workload.name for workload in WORKLOADS if not workload.writes}

    assert reading == {
        name
        for chain in ("", *(f"{chain}." for chain in CHAINS))
        for name in (f"{chain}readrandom", f"{chain}fwdrange", f"{chain}multireadrandom")
    } | {"revrange"}


def test_the_fields_flags_reach_db_bench():
    given = of("readwhilewriting")

    assert given["benchmarks"] == "readtocache,readwhilewriting,stats"
    assert given["duration"] == "10"
    assert given["use_existing_db"] == "1"
    assert (given["num"], given["key_size"], given["value_size"]) == ("100000", "20", "400")
    assert (given["threads"], given["seed"]) == ("4", "7")
    assert given["benchmark_write_rate_limit"] == "2097152"
    assert given["max_bytes_for_level_multiplier"] == "8"
    assert given["level_compaction_dynamic_level_bytes"] == "1"
    assert given["sync"] == "0"


def test_a_config_overrides_the_fields_flags():
    at = with_options(
        cache_type="auto_hyper_clock_cache",
        max_bytes_for_level_multiplier=32,
        benchmark_write_rate_limit=32 * 1024**2,
        threads=40,
        use_direct_reads=True,
    )
    given = of("fwdrangewhilewriting", at)

    assert given["cache_type"] == "auto_hyper_clock_cache"
    assert given["max_bytes_for_level_multiplier"] == "32"
    assert given["benchmark_write_rate_limit"] == "33554432"
    assert given["threads"] == "40"
    assert given["use_direct_reads"] == "1"


def test_the_rate_of_the_background_writer_slows_nothing_else():
    at = with_options(benchmark_write_rate_limit=32 * 1024**2)

    assert "benchmark_write_rate_limit" not in of("overwrite", at)
    assert "benchmark_write_rate_limit" not in flags(words(("flush",), at))
    assert "benchmark_write_rate_limit" not in of("readrandom")


def test_a_config_cannot_change_what_a_step_is():
    at = with_options(reverse_iterator=False, threads=16, disable_wal=False)

    assert of("revrangewhilewriting", at)["reverse_iterator"] == "1"
    assert of("leveled.fillseq", at)["threads"] == "1"
    assert of("leveled.fillseq", at)["disable_wal"] == "1"
    assert of("fwdrangewhilewriting", AT).get("reverse_iterator") is None


@pytest.mark.parametrize(
    ("name", "threads", "writes"),
    [
        ("leveled.fillseq", 4, "100000"),
        ("leveled.overwritesome", 1, "10000"),
        ("leveled.overwritesome", 4, "2500"),
        # 100,000 / 3 rounded up.
        ("overwrite", 3, "33334"),
    ],
)
def test_fixed_work_is_shared_by_the_threads(name, threads, writes):
    given = of(name, replace(AT, threads=threads))

    assert given["writes"] == writes
    assert "duration" not in given


def test_only_the_first_step_makes_the_database():
    assert of("leveled.fillseq")["use_existing_db"] == "0"
    assert of("leveled.overwritesome")["use_existing_db"] == "1"


def test_waiting_comes_between_the_work_and_the_statistics():
    assert of("leveled.overwriteandwait")["benchmarks"] == "overwrite,flush,waitforcompaction,stats"


def test_the_cache_is_filled_only_where_everything_fits():
    # 100,000 rows of 420 bytes are 42 MB.
    assert fits_cache(AT)
    assert fits_cache(with_options(cache_size=42_000_000))

    small = with_options(cache_size=41_999_999)

    assert not fits_cache(small)
    assert of("readrandom", small)["benchmarks"] == "readrandom,stats"


def test_leveldb_gets_flags_that_it_knows():
    # Its program refuses to start with any other.
    known = {
        "benchmarks",
        "block_size",
        "bloom_bits",
        "cache_size",
        "compression_ratio",
        "histogram",
        "max_file_size",
        "num",
        "open_files",
        "reads",
        "threads",
        "use_existing_db",
        "value_size",
        "write_buffer_size",
    }
    for workload in WORKLOADS:
        if "leveldb" in workload.engines:
            argv = slice_words(step_of(workload), LEVELDB, seconds=10, reads=500)

            assert set(flags(argv)) <= known

    given = of("readwhilewriting", LEVELDB, reads=500)

    assert given["benchmarks"] == "readwhilewriting,stats"
    assert given["reads"] == "500"


def test_what_forkwatch_sets_is_no_option():
    text = refusal(BY_NAME["readrandom"], version="RocksDB 7.8.3", at=with_options(num=5, seed=1))

    assert text == "the config sets num, seed, which forkwatch sets itself; leave it out"
    assert {"db", "benchmarks", "duration", "use_existing_db"} <= OURS


def test_a_sequence_needs_a_config_of_its_compaction_style():
    universal = with_options(compaction_style=1)
    leveled, other = BY_NAME["leveled.fillseq"], BY_NAME["universal.fillseq"]

    assert refusal(leveled, version="RocksDB 9.9.3", at=AT) == ""
    assert refusal(other, version="RocksDB 9.9.3", at=universal) == ""
    assert "compaction_style = 0, and the config has 1" in refusal(
        leveled, version="RocksDB 9.9.3", at=universal
    )
    assert "compaction_style = 1, and the config has 0" in refusal(
        other, version="RocksDB 9.9.3", at=AT
    )
    assert refusal(BY_NAME["readrandom"], version="RocksDB 9.9.3", at=universal) == ""


@pytest.mark.parametrize(
    ("version", "able"),
    [("RocksDB 8.5.3", False), ("RocksDB 8.6.7", True), ("RocksDB 11.8.1", True), ("?", False)],
)
def test_universal_compaction_is_waited_for_from_8_6_on(version, able):
    options = {"compaction_style": 1}

    assert can_wait(version, "rocksdb", options) is able
    assert ("waitforcompaction" in normalising(version, "rocksdb", options)) is able

    at = with_options(compaction_style=1)
    text = refusal(BY_NAME["universal.overwriteandwait"], version=version, at=at)

    assert ("measure overwrite instead" in text) is not able
    assert refusal(BY_NAME["universal.overwrite"], version=version, at=at) == ""


def test_normalising_empties_memory_and_level_0():
    assert normalising("RocksDB 7.8.3", "rocksdb", {}) == (
        "flush",
        "waitforcompaction",
        "compact0",
        "waitforcompaction",
    )
    assert normalising("LevelDB 1.23", "leveldb", {}) == ("compact",)


def test_configs_share_a_dataset_where_its_bytes_do_not_depend_on_them():
    plain = format_options("rocksdb", {})

    assert format_options("rocksdb", {"cache_type": "auto_hyper_clock_cache"}) == plain
    assert format_options("rocksdb", {"use_direct_reads": True, "bytes_per_sync": 0}) == plain
    assert format_options("rocksdb", {"max_bytes_for_level_multiplier": 32}) != plain
    assert format_options("rocksdb", {"compression_type": "lz4"}) != plain
    assert format_options("rocksdb", {"a_flag_of_tomorrow": 1}) != plain
    # A flag cannot be both: fixed by the field for the bytes, and free.
    assert set(plain) - {"loading"} == BASE["rocksdb"].keys() - FORMAT_FREE


def test_loading_randomises_what_lies_above_the_last_level():
    assert [step.benchmark for step in loading_steps("rocksdb")] == ["fillseq", "overwrite"]
    assert [step.benchmark for step in loading_steps("leveldb")] == ["fillseq"]


def test_one_call_of_multireadrandom_gets_ten_keys():
    assert batch_of(STEPS["multireadrandom"]) == 10
    assert batch_of(STEPS["readrandom"]) == 1


def test_an_option_that_is_no_number_is_left_to_db_bench():
    at = with_options(compaction_style="none", threads="many")

    assert refusal(BY_NAME["leveled.fillseq"], version="RocksDB 9.9.3", at=at) == ""
    assert of("overwrite", at)["threads"] == "many"
    assert of("overwrite", at)["writes"] == "25000"


@pytest.fixture(scope="module")
def example():
    return parse_plan((ROOT / "examples" / "rocksdb.toml").read_text())


def test_the_example_is_a_plan(example):
    assert example.suite("commit").workloads == SUITES["lsm-4"]
    assert example.suite("sequence").workloads == SUITES["leveled-6"]
    assert example.build("rel").server in {"bin/db_bench", "bin/mariadbd"}


def test_the_fields_three_configs_differ_in_what_they_are_named_after(example):
    given = {
        name: of("readwhilewriting", with_options(**example.config(name).options))
        for name in ("byrx", "iobuf", "iodir")
    }

    assert [one["compression_type"] for one in given.values()] == ["none", "lz4", "lz4"]
    assert [one.get("use_direct_reads") for one in given.values()] == [None, None, "1"]
    assert given["iodir"]["use_direct_io_for_flush_and_compaction"] == "1"
    assert given["iodir"]["bytes_per_sync"] == "0"


def test_every_cell_of_the_matrix_reaches_db_bench(example):
    matrix = example.matrix("cache")
    alone = replace(AT, threads=1)
    base = of("readwhilewriting", alone)
    for name in matrix.configs:
        options = example.config(name).options
        given = of("readwhilewriting", with_options(alone, **options))
        changed = {flag: value for flag, value in given.items() if base.get(flag) != value}

        assert changed == {
            flag: str(value) for flag, value in options.items() if base.get(flag) != str(value)
        }
    datasets = {
        name: tuple(format_options("rocksdb", example.config(name).options).items())
        for name in matrix.configs
    }

    # Only another fanout is another tree.
    assert len(set(datasets.values())) == 2


def test_the_example_shares_a_dataset_between_iobuf_and_iodir(example):
    buffered, direct = (
        format_options("rocksdb", example.config(name).options) for name in ("iobuf", "iodir")
    )

    assert buffered == direct

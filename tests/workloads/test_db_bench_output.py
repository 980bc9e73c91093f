# ruff: noqa: E501  db_bench prints long lines
from __future__ import annotations

import re
from pathlib import Path

import pytest

from workloads.db_bench_output import SECONDS_MARK, OutputError, parse
from workloads.db_bench_stats import levels, unrest

#: Captured; README.md there says how.
CAPTURED = Path(__file__).parent / "data" / "db_bench"
READS = (CAPTURED / "rocksdb-7.8.3-readwhilewriting.txt").read_text()
WRITES = (CAPTURED / "rocksdb-7.8.3-overwriteandwait.txt").read_text()
FILLS = (CAPTURED / "rocksdb-7.8.3-fillseq.txt").read_text()
LEVELDB_READS = (CAPTURED / "leveldb-1.23-readwhilewriting.txt").read_text()
LEVELDB_WRITES = (CAPTURED / "leveldb-1.23-overwrite.txt").read_text()
RESULT = re.compile(r" (\d+\.\d{3}) seconds (\d+) operations;")


def older(text: str) -> str:
    """Return the same output as versions before mid-2022 print it (RocksDB pull 9886)."""
    return RESULT.sub(";", text)


def printed_percentiles(text: str, benchmark: str) -> dict[str, float]:
    """Return db_bench's own percentiles of a benchmark, in microseconds."""
    line = text[text.index(f"\n{benchmark} ") :].split("Percentiles: ", 1)[1].splitlines()[0]
    words = line.split()
    return {
        name.rstrip(":"): float(value) for name, value in zip(words[::2], words[1::2], strict=True)
    }


def test_a_captured_slice_of_reads_is_read():
    result = parse(READS, "readwhilewriting", threads=1, asked_s=5)
    seconds, operations = RESULT.findall(READS)[-1]

    assert (result.seconds, result.operations) == (float(seconds), int(operations))
    assert len(result.per_second_ops_s) in {4, 5}
    # What each second did is part of what all did.
    assert 0 < sum(result.per_second_ops_s) <= result.operations
    assert max(result.per_second_ops_s) < 2 * result.operations / result.seconds


@pytest.mark.parametrize(
    ("text", "benchmark"), [(READS, "readwhilewriting"), (WRITES, "overwrite")]
)
def test_percentiles_are_those_that_db_bench_prints(text, benchmark):
    result, printed = parse(text, benchmark, threads=1), printed_percentiles(text, benchmark)

    assert result.latency_ms.p50 * 1000 == pytest.approx(printed["P50"], abs=0.005)
    assert result.latency_ms.p99 * 1000 == pytest.approx(printed["P99"], abs=0.005)
    assert result.extra["latency_ms_p999"] * 1000 == pytest.approx(printed["P99.9"], abs=0.005)
    assert result.extra["latency_ms_p9999"] * 1000 == pytest.approx(printed["P99.99"], abs=0.005)
    assert result.latency_ms.p50 <= result.latency_ms.p95 <= result.latency_ms.p99


def test_both_forms_of_a_result_agree():
    newer = parse(READS, "readwhilewriting", threads=1)
    old = parse(older(READS), "readwhilewriting", threads=1)

    assert " operations;" not in older(READS)
    assert old.operations == newer.operations
    # The rate of the older form has whole operations per second only.
    assert old.seconds == pytest.approx(newer.seconds, rel=2e-4)
    assert old.latency_ms == newer.latency_ms
    assert old.extra == newer.extra


def test_the_last_benchmark_of_a_process_is_told_from_the_ones_before():
    # Reading the database into the cache is not what was measured.
    warm = parse(READS, "readtocache", threads=1)
    measured = parse(READS, "readwhilewriting", threads=1)

    assert warm.operations != measured.operations
    assert warm.latency_ms != measured.latency_ms


def test_a_captured_slice_of_writes_tells_what_it_cost():
    extra = parse(WRITES, "overwrite", threads=1).extra

    assert extra["write_amplification"] == pytest.approx(
        extra["compaction_write_gib"] / extra["ingest_gib"], rel=0.02
    )
    assert extra["write_amplification"] > 1
    # Level 0 counts what was flushed among what compaction wrote.
    assert extra["flush_gib"] < extra["compaction_write_gib"]
    assert 0 < extra["compaction_cpu_s"] <= extra["compaction_s"]
    assert 0 <= extra["stall_percent"] <= 100
    assert extra["stall_s"] <= extra["uptime_s"]


def test_a_new_database_is_not_yet_written_when_its_statistics_are():
    extra = parse(FILLS, "fillseq", threads=1).extra

    # 8 MB were put, and 2 of them flushed.
    assert extra["lsm_gib"] * 1024 == pytest.approx(1.93)
    assert extra["flush_gib"] == 0.002
    assert "write_amplification" not in extra


def test_the_reads_put_what_their_background_writer_puts():
    result = parse(READS, "readwhilewriting", threads=1)

    # 2 MB/s for 5 seconds.
    assert result.extra["ingest_gib"] * 1024 == pytest.approx(10, rel=0.1)


def test_a_slice_that_ended_early_is_refused():
    with pytest.raises(OutputError, match=r"ran for 5\..* s of 60 s"):
        parse(READS, "readwhilewriting", threads=1, asked_s=60)


def test_reads_of_another_database_are_refused():
    missed = re.sub(r"\(\d+ of (\d+) found\)", r"(5 of \1 found)", READS)

    with pytest.raises(OutputError, match="does not hold the rows"):
        parse(missed, "readwhilewriting", threads=1)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_truncated_output_is_refused(share):
    with pytest.raises(OutputError):
        parse(READS[: int(share * READS.index("** DB Stats"))], "readwhilewriting", threads=1)


def test_output_cut_in_its_statistics_keeps_the_result():
    cut = parse(READS[: READS.index("** Compaction Stats")], "readwhilewriting", threads=1)

    assert cut.operations == parse(READS, "readwhilewriting", threads=1).operations
    assert cut.extra.keys() == {"latency_ms_p999", "latency_ms_p9999"}
    assert cut.per_second_ops_s == ()


def test_seconds_are_read_behind_their_mark_only():
    assert SECONDS_MARK in READS
    assert (
        parse(READS.replace(SECONDS_MARK, ""), "readwhilewriting", threads=1).per_second_ops_s == ()
    )


# Four threads, from the words of RocksDB pull 9886; the histogram is made up to fit.
FOUR_THREADS = """\
DB path: [/tmp/rocksdbtest-2260/dbbench]
overwrite    :      14.108 micros/op 283338 ops/sec;   31.3 MB/s
Microseconds per write:
Count: 4000000 Average: 14.1080  StdDev: 30.00
Min: 2  Median: 10.0000  Max: 7520
Percentiles: P50: 10.00 P75: 12.00 P99: 40.00 P99.9: 60.00 P99.99: 400.00
------------------------------------------------------
(       6,      10 ]  2000000  50.000%  50.000% ##########
(      10,      15 ]  1900000  47.500%  97.500% ##########
(      15,    9900 ]   100000   2.500% 100.000% #

"""


def test_the_older_form_of_several_threads_is_read():
    result = parse(FOUR_THREADS, "overwrite", threads=4)

    assert result.operations == 4_000_000
    assert result.operations / result.seconds == pytest.approx(283338)
    # Half of all is exactly what the first bucket holds.
    assert result.latency_ms.p50 == 0.010
    assert result.extra.keys() == {"latency_ms_p999", "latency_ms_p9999"}


def test_the_newer_form_is_read():
    newer = FOUR_THREADS.replace(
        "283338 ops/sec;", "282862 ops/sec 14.141 seconds 4000000 operations;"
    )
    result = parse(newer, "overwrite", threads=4)

    assert (result.operations, result.seconds) == (4_000_000, 14.141)


@pytest.mark.parametrize(
    ("printed", "odd"),
    [
        # A number of operations that does not go with the rate.
        ("283338 ops/sec;", "282862 ops/sec 14.141 seconds 5000000 operations;"),
        ("283338 ops/sec;", "282862 ops/sec 9.141 seconds 4000000 operations;"),
        ("283338 ops/sec;", "0 ops/sec 14.141 seconds 4000000 operations;"),
        ("283338 ops/sec;", "282862 ops/sec 0.000 seconds 4000000 operations;"),
        # More calls in the histogram than operations.
        ("283338 ops/sec;", "282 ops/sec 14.141 seconds 4000 operations;"),
    ],
)
def test_figures_that_contradict_each_other_are_refused(printed, odd):
    with pytest.raises(OutputError):
        parse(FOUR_THREADS.replace(printed, odd), "overwrite", threads=4)


@pytest.mark.parametrize(
    ("printed", "odd"),
    [
        ("283338 ops/sec", "² ops/sec"),
        ("283338 ops/sec", "-5 ops/sec"),
        ("283338 ops/sec", "nan ops/sec"),
        ("14.108 micros/op", "1e308 micros/op"),
        ("283338 ops/sec", f"{'9' * 40} ops/sec"),
        ("overwrite  ", "overwritten"),
    ],
)
def test_a_result_of_anything_but_plain_numbers_is_none(printed, odd):
    with pytest.raises(OutputError, match="printed no result of overwrite"):
        parse(FOUR_THREADS.replace(printed, odd), "overwrite", threads=4)


def test_a_histogram_with_a_line_missing_is_not_whole():
    lines = FOUR_THREADS.splitlines(keepends=True)
    for index in (4, 7, 8):
        with pytest.raises(OutputError, match="not whole"):
            parse("".join(lines[:index] + lines[index + 1 :]), "overwrite", threads=4)


# What is printed where no operation was done: db_bench calls it one.
NOTHING = "readrandom   :       2.000 micros/op 500000 ops/sec 0.000 seconds 1 operations; (0 of 1 found)\n"


def test_no_operation_is_an_error():
    with pytest.raises(OutputError, match="did no operation"):
        parse(NOTHING, "readrandom", threads=1)


LEVELDB = """\
Keys:       16 bytes each
Values:     400 bytes each (200 bytes after compression)
------------------------------------------------
fillseq      :       2.000 micros/op;  198.4 MB/s
Microseconds per op:
Count: 1000000  Average: 1.9000  StdDev: 30.00
Min: 0.0000  Median: 1.5000  Max: 7520.0000
------------------------------------------------------
[       1,       2 )   900000  90.000%  90.000% ##################
[       2,       3 )   100000  10.000% 100.000% ##


                               Compactions
Level  Files Size(MB) Time(sec) Read(MB) Write(MB)
--------------------------------------------------
  0        2       30         1        0       400
  1        5       60         2      100       100
  2       20      300         0        0         0

"""


def test_leveldbs_form_is_read():
    result = parse(LEVELDB, "fillseq", threads=1)

    assert (result.operations, result.seconds) == (1_000_000, 2.0)
    assert result.latency_ms.p50 == pytest.approx(0.00155556, rel=1e-5)
    assert result.extra["lsm_gib"] == pytest.approx(390 / 1024)
    assert result.extra["compaction_s"] == 3
    # 500 MB written for 2 seconds at 198.4 MB/s.
    assert result.extra["write_amplification"] == pytest.approx(500 / 396.8)


def test_captured_slices_of_leveldb_are_read():
    reads = parse(LEVELDB_READS, "readwhilewriting", threads=1)
    writes = parse(LEVELDB_WRITES, "overwrite", threads=1)

    assert (reads.operations, writes.operations) == (100_000, 50_000)
    for result in (reads, writes):
        assert result.latency_ms.average * result.operations / 1000 == pytest.approx(
            result.seconds, rel=0.01
        )
        assert 0.02 < result.extra["lsm_gib"] < 0.05
    assert "write_amplification" not in reads.extra
    # 19 + 43 + 7 MB for 50,000 rows of 416 bytes.
    assert writes.extra["write_amplification"] == pytest.approx(
        69 / (50_000 * 416 / 1024**2), rel=0.01
    )
    assert unrest(levels(LEVELDB_WRITES), one_level=True) == "files in 3 levels"


def test_leveldbs_median_is_the_one_that_it_prints():
    result = parse(LEVELDB_WRITES, "overwrite", threads=1)
    printed = re.search(r"Median: ([0-9.]+)", LEVELDB_WRITES)

    assert result.latency_ms.p50 * 1000 == pytest.approx(float(printed.group(1)), abs=5e-5)


def test_leveldbs_reads_put_nothing():
    result = parse(LEVELDB.replace("fillseq   ", "readrandom"), "readrandom", threads=1)

    assert "write_amplification" not in result.extra


TREE = """\
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) Wnew(GB) Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)
------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
  L0      2/0    1.82 MB   0.5      0.0     0.0      0.0       1.2      1.2       0.0   1.0      0.0     87.3     14.64             13.69      1406    0.010       0      0       0.0       0.0
  L1      1/0   15.99 MB   1.0      4.1     1.2      2.8       3.9      1.1       0.0   3.1     72.7     69.5     57.15             53.19       351    0.163     63M  2808K       0.0       0.0
  L2      1/0   61.43 MB   %s      4.3     1.0      3.3       3.3      0.0       0.0   3.2     87.2     67.1     50.55             46.96        57    0.887     70M    15M       0.0       0.0
 Sum      4/0    1.50 GB   0.0      8.4     2.3      6.1       8.4      2.4       0.0   6.8     70.0     70.6    122.35            113.85      1814    0.067    134M    18M       0.0       0.0
 Int      0/0    0.00 KB   0.0      0.0     0.0      0.0       0.0      0.0       0.0   0.0      0.0      0.0      0.00              0.00         0    0.000       0      0       0.0       0.0

"""


def test_levels_are_read_with_their_units():
    found = levels(TREE % "0.4")

    assert [(level.name, level.files) for level in found] == [
        ("L0", 2),
        ("L1", 1),
        ("L2", 1),
        ("Sum", 4),
    ]
    assert found[1].size_gib == pytest.approx(15.99 / 1024)
    assert found[-1].size_gib == 1.5
    assert (found[-1].compaction_s, found[-1].compaction_cpu_s) == (122.35, 113.85)


def test_an_older_table_has_no_processor_time_and_megabytes_in_its_head():
    old = """\
Level    Files   Size(MB) Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) Wnew(GB) Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) Comp(cnt) Avg(sec) Stall(cnt)  KeyIn KeyDrop
-----------------------------------------------------------------------------------------------------------------------
  L0     4/0         11   2.0      0.0     0.0      0.0       3.8      3.8       0.0   0.0      0.0    837.8         5      1449    0.003  0  0  0
 Sum     4/0         11   0.0      0.0     0.0      0.0       3.8      3.8       0.0   0.0      0.0    837.8         5      1449    0.003  0  0  0
"""
    total = levels(old)[-1]

    assert (total.size_gib, total.compaction_s, total.compaction_cpu_s) == (11 / 1024, 5, None)


def test_a_tree_at_rest_has_nothing_due():
    assert unrest(levels(TREE % "0.4")) == "2 files in level 0"
    assert unrest(levels(TREE % "1.1")) == "2 files in level 0, L2 is 1.1 times its size"
    assert unrest(levels((TREE % "0.4").replace("  L0      2/0 ", "  L0      0/0 "))) == ""
    # With universal compaction the score counts sorted runs.
    assert unrest(levels(TREE % "1.1"), universal=True) == "2 files in level 0"


def test_a_compaction_under_way_is_no_rest():
    # What is being compacted is not in the scores.
    busy = (TREE % "0.4").replace("  L0      2/0 ", "  L0      0/0 ").replace(" 4/0 ", " 4/3 ")

    assert unrest(levels(busy)) == "3 files under compaction"
    assert unrest(levels(busy), universal=True) == "3 files under compaction"


def test_what_lies_in_level_0_alone_is_at_rest_until_it_is_too_many_files():
    lines = (TREE % "0.4").splitlines()
    alone = "\n".join([*lines[:4], lines[6].replace("4/0", "2/0")])
    many = alone.replace("2/0 ", "4/0 ").replace("MB   0.5 ", "MB   1.0 ")

    assert unrest(levels(alone)) == ""
    assert unrest(levels(many)) == "4 files in level 0"
    assert unrest(levels(many), universal=True) == ""


def test_leveldb_is_at_rest_in_one_level():
    one = LEVELDB.replace("  0        2       30", "  0        0        0").replace(
        "  1        5       60", "  1        0        0"
    )

    assert unrest(levels(LEVELDB), one_level=True) == "files in 3 levels"
    assert unrest(levels(one), one_level=True) == ""


@pytest.mark.parametrize("cut", [0, 300, len(TREE) - 420])
def test_a_table_that_is_cut_off_says_nothing(cut):
    assert unrest(levels(TREE[:cut])) == "the database does not tell its levels"

# ruff: noqa: E501  the client prints long lines
"""Outputs of sysbench made elsewhere: versions, missing parts, and runs that failed."""

from __future__ import annotations

import pytest

from workloads.sysbench_output import SysbenchOutputError, is_sysbench, read_output

V10 = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 40

[ 1s ] thds: 40 tps: 61.95 qps: 61.95 (r/w/o: 61.95/0.00/0.00) lat (ms,95%): 17.01 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 40 tps: 60.00 qps: 60.00 (r/w/o: 60.00/0.00/0.00) lat (ms,95%): 17.32 err/s: 0.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
      15.268 |****                                     10
      16.119 |**************************************** 100
      17.016 |****                                     9
      21.500 |                                         3

General statistics:
    total time:                          2.0051s
    total number of events:              122

Latency (ms):
         min:                                   15.01
         avg:                                   16.43
         max:                                   21.50
         95th percentile:                       17.32
         sum:                                 2004.32

Threads fairness:
    events (avg/stddev):           122.0000/0.00
"""
V11 = """\
sysbench 1.1.0-3ceba0b (using bundled LuaJIT 2.1.0-beta2)

Throughput:
    events/s (eps):                      60.8450
    time elapsed:                        2.0051s
    total number of events:              122

Latency (ms):
         min:                                   15.01
         avg:                                   16.43
         max:                                   21.50
"""
V05 = """\
sysbench 0.5:  multi-threaded system evaluation benchmark

General statistics:
    total time:                          2.0051s
    total number of events:              122
    response time:
         min:                                  0.21ms
         avg:                                  0.43ms
         max:                                  9.50ms
         approx.  95 percentile:               0.61ms
"""


def test_the_present_version_is_read_whole() -> None:
    found = read_output(V10)

    assert (found.seconds, found.operations, found.threads) == (2.0051, 122, 40)
    assert found.per_second_ops_s == (61.95, 60.0)
    assert found.latency_ms == {"min": 15.01, "avg": 16.43, "max": 21.5}
    assert found.percentiles_ms is not None
    assert (found.percentiles_ms.p50, found.percentiles_ms.p95) == (16.119, 17.016)
    assert found.percentiles_ms.p99 == 21.5


@pytest.mark.parametrize("text", [V11, V05])
def test_older_and_newer_versions_tell_less(text: str) -> None:
    found = read_output(text)

    assert (found.seconds, found.operations) == (2.0051, 122)
    assert (found.per_second_ops_s, found.percentiles_ms, found.threads) == ((), None, None)
    assert set(found.latency_ms) == {"min", "avg", "max"}


def test_reports_of_ten_seconds_are_no_seconds() -> None:
    text = V10.replace("[ 1s ]", "[ 10s ]").replace("[ 2s ]", "[ 20s ]")

    assert read_output(text).per_second_ops_s == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (V10.partition("General")[0], "the run was cut short"),
        ("sysbench 1.0.20\nFATAL: unable to connect to MySQL\n", "FATAL: unable to connect"),
        (V10.replace("122\n\nLatency", "0\n\nLatency"), "did no operation"),
        (V10.replace("2.0051s", "0.0000s"), "did no operation"),
        (V10.replace("2.0051s", "2.00.51s"), "'2.00.51' is no number"),
        (V10.replace("events:              122", "events: " + "9" * 400), "cut short"),
    ],
)
def test_a_run_that_failed_is_none(text: str, said: str) -> None:
    with pytest.raises(SysbenchOutputError, match=said):
        read_output(text)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (V10, True),
        (V05.partition("\n")[2], True),
        ("sysbench 1.0.20\nFATAL: x", True),
        ("procs ---memory---", False),
        ("# r.sh\nsysbench --threads=4 run\n", False),
        ("", False),
    ],
)
def test_other_files_are_told_apart(text: str, is_one: bool) -> None:  # noqa: FBT001  a parameter of the test
    assert is_sysbench(text) is is_one

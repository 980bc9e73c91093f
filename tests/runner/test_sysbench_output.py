# ruff: noqa: E501  the client prints long lines
from __future__ import annotations

import pytest

from runner.errors import ClientError
from runner.sysbench import cpu_s_of, parse

# Printed by sysbench 1.0.20 with --report-interval=1 --histogram=on, shortened histogram.
OUTPUT = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Threads started!

[ 1s ] thds: 1 tps: 61.95 qps: 61.95 (r/w/o: 61.95/0.00/0.00) lat (ms,95%): 17.01 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 1 tps: 60.00 qps: 60.00 (r/w/o: 60.00/0.00/0.00) lat (ms,95%): 17.32 err/s: 0.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
      15.268 |****                                     10
      16.119 |**************************************** 100
      17.016 |****                                     9
      21.500 |                                         3

SQL statistics:
    queries performed:
        read:                            122
        write:                           0
        other:                           0
        total:                           122
    transactions:                        122    (60.84 per sec.)
    queries:                             122    (60.84 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          2.0051s
    total number of events:              122

Latency (ms):
         min:                                   15.01
         avg:                                   16.43
         max:                                   21.70
         95th percentile:                       17.01
         sum:                                 2004.56
"""


def test_everything_is_read():
    run = parse(OUTPUT)

    assert run.operations == 122
    assert run.seconds == 2.0051
    assert run.throughput_ops_s == 122 / 2.0051
    assert run.per_second_ops_s == (61.95, 60.0)
    assert (run.latency_ms.minimum, run.latency_ms.average, run.latency_ms.maximum) == (
        15.01,
        16.43,
        21.7,
    )


def test_percentiles_come_from_the_histogram():
    # 122 operations: 50 % is the 61st, 95 % the 116th (119 lie at or below 17.016), 99 % the 121st.
    latency = parse(OUTPUT).latency_ms

    assert (latency.p50, latency.p95, latency.p99) == (16.119, 17.016, 21.5)


def test_no_operation_is_an_error():
    text = OUTPUT.replace("total number of events:              122", "total number of events:   0")

    with pytest.raises(ClientError, match="no operation"):
        parse(text)


@pytest.mark.parametrize("cut", [0, 200, 700, len(OUTPUT) - 120])
def test_truncated_output_is_an_error(cut):
    with pytest.raises(ClientError, match="gave no result"):
        parse(OUTPUT[:cut])


def test_the_clients_own_words_are_quoted():
    text = "FATAL: mysql_drv_query() returned error 1146 (Table 'sbtest.sbtest1' doesn't exist)\n"

    with pytest.raises(ClientError, match="error 1146"):
        parse(text)


def test_a_missing_histogram_is_an_error():
    text = OUTPUT.replace("|", " ")

    with pytest.raises(ClientError, match="histogram"):
        parse(text)


def test_the_clients_cpu_time_is_read_from_what_the_shell_says_last():
    said = "a warning\n0m0.000000s 0m0.000000s\n1m2.500000s 0m0.250000s\n"

    assert cpu_s_of(said) == 62.75
    assert cpu_s_of("a shell that does not report\n") == 0.0

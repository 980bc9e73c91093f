from __future__ import annotations

from workloads.exact import CASES, ExactCase, cases_for, differences, making, plan_lines
from workloads.workload import DatasetKind

MARIADB = ("1", "SIMPLE", "lineitem", "ref", "i_l_partkey", "i_l_partkey", "4", "p.p_partkey", "30",
           "Using index condition")  # fmt: skip
MYSQL = ("1", "SIMPLE", "lineitem", "NULL", "ref", "i_l_partkey", "i_l_partkey", "4",
         "p.p_partkey", "31", "11.11", "Using index condition")  # fmt: skip


def a_case(**chosen) -> ExactCase:
    facts = {
        "name": "q19",
        "statement": "SELECT 1",
        "counters": {"handler_read_key": 40, "handler_read_next": 12},
        "plan": plan_lines([MARIADB]),
        "explained": "\t".join(MARIADB),
        "answer": (("3", "9000"),),
    }
    return ExactCase(**{**facts, **chosen})


def test_servers_that_work_alike_do_not_differ():
    assert differences([a_case()], [a_case()]) == ()


def test_a_counter_that_moved_by_one_is_a_difference():
    (found,) = differences(
        [a_case()], [a_case(counters={"handler_read_key": 40, "handler_read_next": 13})]
    )

    assert found.sentence() == "q19: handler_read_next was 12 and is 13"


def test_a_counter_that_one_side_does_not_know_is_none():
    assert differences([a_case()], [a_case(counters={"handler_read_key": 40})]) == ()


def test_estimates_do_not_make_another_plan_and_decisions_do():
    estimate = (*MARIADB[:8], "4711", MARIADB[9])
    decision = (*MARIADB[:9], "Using where")

    assert differences([a_case()], [a_case(plan=plan_lines([estimate]))]) == ()
    (found,) = differences(
        [a_case()], [a_case(plan=plan_lines([decision]), explained="another way")]
    )
    assert (found.what, found.candidate) == ("plan", "another way")


def test_mysql_and_mariadb_say_the_same_in_other_columns():
    assert plan_lines([MARIADB]) == plan_lines([MYSQL])
    assert plan_lines([("-> Nested loop",)]) == ()


def test_another_answer_is_a_difference():
    (found,) = differences([a_case()], [a_case(answer=(("4", "9000"),))])

    assert found.sentence() == "q19: answer was 3, 9000 and is 4, 9000"


def test_cases_without_a_partner_are_left_out():
    assert differences([a_case(name="other")], [a_case()]) == ()


def test_a_dataset_decides_which_cases_can_be_asked():
    own = cases_for(None, 0)

    assert {case.needs for case in own} == {None}
    assert "q19-index-condition" in {case.name for case in own}
    assert cases_for(DatasetKind.TPCC, 10**6) == own
    assert len(cases_for(DatasetKind.SYSBENCH, 10)) == len(own) + 1
    assert cases_for(DatasetKind.SYSBENCH, 2000) == CASES


def test_the_tables_are_made_in_the_dataset_s_storage_engine():
    text = "\n".join(making(storage_engine="rocksdb"))

    assert text.count("ENGINE = rocksdb") == 2
    assert "ENGINE" not in "\n".join(making())
    # The shell hands over one argument of at most 128 KiB.
    assert len(text) < 100_000


def test_names_are_there_once():
    names = [case.name for case in CASES]

    assert len(set(names)) == len(names)
    assert all(case.shows for case in CASES)

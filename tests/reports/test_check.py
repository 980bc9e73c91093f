"""Checks: their colour, their title, and the lines that they point at."""

from __future__ import annotations

import pytest

from detectors.verdict import Verdict
from reports.build_log import ANNOTATIONS_MAX, Annotation, build_errors
from reports.check import (
    TITLE_LENGTH_MAX,
    Conclusion,
    judged_check,
    title_of,
    unjudged_check,
    waiting_check,
)
from reports.rows import rows_of_pair
from results.document import Outcome
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.verdicts import a_verdict

SLOWER = a_verdict(-9.1, low=-10.0, high=-8.2)
FASTER = a_verdict(8.0, low=7.0, high=9.0)
SAME = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
OPEN = a_verdict(-4.0, low=-9.0, high=1.5, p_value=0.1)
PLAN = '[suites.commit]\n# "scan" is the slow one\nworkloads = [\n  "point-query",\n  "scan",\n]\n'


def check_of(verdicts: dict[str, Verdict], **more: str):
    story = a_run().against(sha("a"))
    for name in verdicts:
        story = story.with_samples(name, [[100.0]] * 2, side=SideName.BASELINE)
        story = story.with_samples(name, [[91.0]] * 2)
    document = story.build()
    return judged_check(rows_of_pair(document, verdicts), document=document, **more)


@pytest.mark.parametrize(
    ("verdicts", "conclusion"),
    [
        ([SLOWER], Conclusion.FAILURE),
        ([SLOWER, FASTER, OPEN, SAME], Conclusion.FAILURE),
        ([FASTER, OPEN], Conclusion.NEUTRAL),
        ([OPEN], Conclusion.NEUTRAL),
        ([FASTER, SAME], Conclusion.SUCCESS),
        ([SAME], Conclusion.SUCCESS),
    ],
)
def test_the_colour_of_a_check(verdicts: list[Verdict], conclusion: Conclusion) -> None:
    found = check_of({f"w{number}": verdict for number, verdict in enumerate(verdicts)})

    assert found.conclusion is conclusion


def test_a_check_without_a_verdict_says_nothing() -> None:
    document = a_run().with_samples("scan", [[1.0]]).build()

    found = judged_check(rows_of_pair(document, {}), document=document)

    assert found.conclusion is Conclusion.NEUTRAL
    assert found.title == "no workload was judged at bbbbbbbb"


def test_the_title_is_the_sentence_and_the_summary_the_rest_of_the_comment() -> None:
    found = check_of({"scan": SLOWER, "point-query": SAME})

    assert found.title == (
        "scan is 9.1 % slower (95 %: 8.2 to 10.0) at bbbbbbbb; point-query unchanged within 1.2 %"
    )
    assert found.title not in found.summary
    assert found.summary.startswith("| workload |")
    assert "| scan | ▼ 0.909 |" in found.summary


def test_what_a_title_has_no_room_for_is_said_below_it() -> None:
    found = check_of({f"range-covered-{number}": SLOWER for number in range(3)})

    assert len(found.title) <= TITLE_LENGTH_MAX
    assert found.summary.startswith("**range-covered-0 is 9.1 % slower")
    assert "range-covered-2 is 9.1 % slower" in found.summary.partition("\n")[0]


def test_a_title_ends_with_a_whole_clause_where_it_can() -> None:
    clause = "scan is 9.1 % slower " * 3
    said = f"{clause.strip()}; {clause.strip()}; {clause.strip()}"

    assert title_of(said) == f"{clause.strip()}; {clause.strip()}"
    assert len(title_of("x" * 500)) == TITLE_LENGTH_MAX
    assert "\n" not in title_of("a\nb")


def test_a_regression_points_at_the_line_of_the_plan_that_asks_for_it() -> None:
    found = check_of(
        {"scan": SLOWER, "point-query": SAME}, plan_path="forkwatch.toml", plan_text=PLAN
    )

    assert found.annotations == (
        Annotation(
            path="forkwatch.toml",
            line=5,
            title="scan is 9.1 % slower",
            message=SLOWER.reason,
        ),
    )


def test_without_the_line_nothing_is_pointed_at() -> None:
    assert check_of({"scan": SLOWER}).annotations == ()
    assert check_of({"scan": SLOWER}, plan_path="forkwatch.toml", plan_text="").annotations == ()


LOG = """\
[812/2110] Building CXX object sql/CMakeFiles/sql.dir/handler.cc.o
FAILED: sql/CMakeFiles/sql.dir/handler.cc.o
/forkwatch/source/sql/handler.cc: In function 'int f()':
/forkwatch/source/sql/handler.cc:42:7: error: 'rows' was not declared in this scope
   42 |   if (rows) return;
/forkwatch/source/sql/handler.cc:42:9: error: and again on the same line
../source/sql/handler.h:7: fatal error: no.h: No such file or directory
/forkwatch/source/sql/a.cc:9:1: warning: unused
sql/sql_yacc.cc:12:3: error: made by the build, not in the repository
/usr/include/c++/12/vector:5:1: error: not ours
/forkwatch/source/../../etc/passwd:1:1: error: out
CMake Error at cmake/install_macros.cmake:311 (MESSAGE):
  Cannot find the library

ninja: build stopped: subcommand failed.
"""


def test_compilers_and_cmake_name_the_lines_that_do_not_build() -> None:
    found = [(item.path, item.line, item.message) for item in build_errors(LOG)]

    assert found == [
        ("sql/handler.cc", 42, "'rows' was not declared in this scope"),
        ("sql/handler.h", 7, "no.h: No such file or directory"),
        ("cmake/install_macros.cmake", 311, "Cannot find the library"),
    ]


def test_a_flood_of_errors_is_bounded() -> None:
    line = "/forkwatch/source/a.cc:{}:1: error: " + "x" * 5000
    log = "\n".join(line.format(number) for number in range(1, 500))

    found = build_errors(log)

    assert len(found) == ANNOTATIONS_MAX
    assert all(len(item.message) <= 1000 for item in found)


@pytest.mark.parametrize(
    ("outcome", "conclusion", "annotated"),
    [
        (Outcome.BUILD_FAILED, Conclusion.FAILURE, 3),
        (Outcome.FAILED, Conclusion.NEUTRAL, 0),
        (Outcome.UNSTABLE, Conclusion.NEUTRAL, 0),
    ],
)
def test_a_run_without_verdicts_blocks_only_what_does_not_build(
    outcome: Outcome, conclusion: Conclusion, annotated: int
) -> None:
    story = a_run().that(outcome, stage="build", message="ninja failed", log=LOG)

    found = unjudged_check(story.build())

    assert found.conclusion is conclusion
    assert len(found.annotations) == annotated
    assert found.title.startswith("bbbbbbbb ")
    assert found.title not in found.summary


def test_the_same_software_is_a_success() -> None:
    measured = a_run().with_samples("scan", [[1.0]]).build()
    document = measured.model_copy(update={"outcome": Outcome.UNCHANGED})

    assert unjudged_check(document).conclusion is Conclusion.SUCCESS


def test_a_check_under_way_has_no_conclusion() -> None:
    found = waiting_check("commit")

    assert found.conclusion is None
    assert found.title == "suite commit is being measured, or waits for a quiet machine"
    assert found.title not in found.summary

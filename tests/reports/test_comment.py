"""Comments: everything to judge a verdict by, nothing of it able to take over the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from reports.comment import comment_markdown, is_loud, unjudged_comment_markdown
from reports.fitting import BODY_BYTES_MAX, Fold, fitted, most_lines
from reports.rows import rows_of_pair
from results.document import CanaryReading, Cause, Outcome
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from detectors.verdict import Verdict
    from reports.rows import Row
    from results.document import RunDocument
    from tests.fakes.run_documents import RunStory

SLOWER = a_verdict(-9.1, low=-10.0, high=-8.2)
FASTER = a_verdict(8.0, low=7.0, high=9.0, detectable=1.0)
SAME = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
OPEN = a_verdict(-4.0, low=-9.0, high=1.5, p_value=0.1, detectable=6.0)
PAGE = "https://perf.example/commits/b"


def a_reader() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def a_pair(verdicts: dict[str, Verdict]) -> RunStory:
    story = a_run().against(sha("a"))
    for name in verdicts:
        story = story.with_samples(name, [[100.0, 101.0]] * 3, side=SideName.BASELINE)
        story = story.with_samples(name, [[91.0, 92.0]] * 3)
    return story


def judged(verdicts: dict[str, Verdict]) -> tuple[tuple[Row, ...], RunDocument]:
    document = a_pair(verdicts).build()
    return rows_of_pair(document, verdicts), document


def a_comment(verdicts: dict[str, Verdict], **more: Any) -> str:
    rows, document = judged(verdicts)
    return comment_markdown(rows, document=document, **more)


def before_the_folds(text: str) -> str:
    return text.partition("<details>")[0]


def test_a_comment_has_everything_to_judge_by() -> None:
    text = a_comment({"scan": SLOWER, "point-query": SAME}, pull=17, page=PAGE)

    assert text.startswith(
        "**scan is 9.1 % slower (95 %: 8.2 to 10.0) at bbbbbbbb; "
        "point-query unchanged within 1.2 %**\n"
    )
    for part in (
        "| workload | ratio | 95 % interval | verdict | could show | baseline o/s | candidate o/s",
        "| scan | ▼ 0.909 | 0.900 to 0.918 | regression | 2.0 % | 100 | 91.50 |",
        "| point-query | 0.999 | 0.988 to 1.009 | no-change |",
        "that this run would have shown, four times out of five: 2.0 % on every workload.",
        "- Base `aaaaaaaa`, candidate `bbbbbbbb` Check the record format in row\\_search",
        " by Ada Lovelace\n- With suite commit",
        "- With suite commit, build rel, config default, 3 server starts per side, in alternation",
        "- Host: bench-1 (class small), Xeon 2.3 GHz, 2 CPUs; placement shared-core",
        "- Host state: nothing unusual",
        "git fetch origin pull/17/head\n",
        "forkwatch compare aaaaaaaaaaaa bbbbbbbbbbbb --suite commit\n",
    ):
        assert part in before_the_folds(text)
    for title in ("Why each verdict", "Cost per operation", "What it was measured with"):
        assert f"<details><summary>{title}</summary>\n\n" in text
    assert "/forkwatch accept REASON" in text
    assert text.endswith(f"[Page of this commit]({PAGE})\n")


def test_only_a_loss_is_worth_a_comment_unasked() -> None:
    loud = {
        name: is_loud(judged({"scan": verdict, "point-query": SAME})[0])
        for name, verdict in {
            "slower": SLOWER,
            "faster": FASTER,
            "same": SAME,
            "open": OPEN,
        }.items()
    }

    assert loud == {"slower": True, "faster": False, "same": False, "open": False}


def test_the_loudest_stands_first() -> None:
    text = a_comment({"a": SAME, "b": OPEN, "c": FASTER, "d": SLOWER})

    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert [line[2] for line in lines[2:6]] == ["d", "c", "b", "a"]


def test_the_smallest_visible_loss_is_named_where_it_differs() -> None:
    text = a_comment({"scan": OPEN, "point-query": FASTER})

    assert "four times out of five: 1.0 % (point-query) to 6.0 % (scan)." in text


def test_many_unchanged_workloads_are_folded_away() -> None:
    verdicts = {f"w{number:02}": SAME for number in range(40)} | {"scan": SLOWER}
    text = a_comment(verdicts)

    assert "40 unchanged workloads are folded away below." in before_the_folds(text)
    assert "| w07 |" not in before_the_folds(text)
    assert "<summary>All 41 workloads</summary>" in text
    assert text.count("| w07 |") >= 2


def test_a_better_sentence_is_taken() -> None:
    text = a_comment({"scan": SAME}, said="the suite as a whole is 1.1 % slower")

    assert text.startswith("**the suite as a whole is 1.1 % slower**\n")


def test_commands_are_named_on_pull_requests_only() -> None:
    assert "/forkwatch" not in a_comment({"scan": SLOWER}, page=PAGE)


def test_what_the_host_complained_about_is_said() -> None:
    rows, document = judged({"scan": SLOWER})
    canary = CanaryReading(
        moment="after",
        name="disk",
        unit="MB/s",
        value=80.0,
        change_percent=-21.4,
        history=9,
        suspicious=True,
    )
    warnings = tuple(f"swap in use {number}" for number in range(30))
    host = document.host.model_copy(update={"warnings": warnings, "canary": (canary,)})
    text = comment_markdown(rows, document=document.model_copy(update={"host": host}))

    assert "- Host warning: swap in use 0\n" in text
    assert "- and 21 more warnings of the host" in text
    assert "Host state: nothing unusual" not in text
    calm = document.host.model_copy(update={"canary": (canary,)})
    text = comment_markdown(rows, document=document.model_copy(update={"host": calm}))
    assert (
        "- Host warning: canary disk after the job was -21.4 % off this host's usual level" in text
    )


def test_everything_fits_whatever_there_is() -> None:
    verdicts = {f"workload-{number:03}-{'x' * 180}": SLOWER for number in range(200)}
    text = a_comment(verdicts, pull=1, page=PAGE)

    assert len(text.encode()) <= BODY_BYTES_MAX
    assert "more workloads do not fit here." in text
    assert f"too long for this place: Cost per operation. All of it: <{PAGE}>" in text.replace(
        "Why each verdict, ", ""
    )
    html = a_reader().render(text)
    assert html.count("<table>") >= 1
    assert text.count("<details>") == text.count("</details>")
    # Nothing is cut in the middle of a line of a table.
    cells = {line.count(" | ") for line in text.splitlines() if line.startswith("| workload-0")}
    assert len(cells) == 1


@pytest.mark.parametrize("bytes_max", [2_500, 4_000, 8_000, 65_000])
def test_a_smaller_place_gets_less_and_says_so(bytes_max: int) -> None:
    verdicts = {f"workload-{number:03}": SLOWER for number in range(30)}
    text = a_comment(verdicts, bytes_max=bytes_max)

    assert len(text.encode()) <= max(bytes_max, 3_500)
    assert ("Cut here" in text) is (bytes_max < 65_000)


HOSTILE = "</details>\n# Owned @all [x](https://evil.example) | `a` <script>x</script> <!-- y"


def test_hostile_names_stay_words() -> None:
    story = a_pair({HOSTILE: SLOWER})
    document = story.on(sha("b"), subject=HOSTILE).of("demo", branch=HOSTILE).build()
    commit = document.candidate.commit.model_copy(update={"author": HOSTILE})
    host = document.host.model_copy(
        update={"name": HOSTILE, "cpu_model": HOSTILE, "warnings": (HOSTILE,), "os": HOSTILE}
    )
    document = document.model_copy(
        update={
            "candidate": document.candidate.model_copy(update={"commit": commit}),
            "host": host,
            "suite": HOSTILE,
            "variant": HOSTILE,
            "config": HOSTILE,
            "warnings": (HOSTILE,),
        }
    )
    text = comment_markdown(rows_of_pair(document, {HOSTILE: SLOWER}), document=document, pull=3)

    html = a_reader().render(text)
    assert "<script" not in html
    assert "<h1>" not in html
    assert "<a " not in html
    assert "@all" not in html
    assert "<!--" not in html
    assert text.count("</details>") == text.count("<details>") == 3
    # What cannot be one word of a command is not put into it.
    assert "forkwatch compare aaaaaaaaaaaa bbbbbbbbbbbb\n```" in text


@pytest.mark.parametrize("outcome", [Outcome.BUILD_FAILED, Outcome.FAILED, Outcome.UNSTABLE])
def test_a_run_without_verdicts_says_what_happened_and_what_to_do(outcome: Outcome) -> None:
    story = (
        a_run()
        .against(sha("a"))
        .that(
            outcome,
            stage="build",
            message="ninja failed",
            log="one\n```\n</details>\nthe error @all",
        )
    )
    text = unjudged_comment_markdown(story.build(), page=PAGE)

    begins = {
        Outcome.BUILD_FAILED: "**bbbbbbbb does not build (build: ninja failed)**",
        Outcome.FAILED: "**bbbbbbbb could not be measured (build: ninja failed)**",
        Outcome.UNSTABLE: "**bbbbbbbb was measured on an unstable host",
    }
    assert text.startswith(begins[outcome])
    assert "<summary>End of the log</summary>" in text
    (log,) = [token for token in a_reader().parse(text) if token.type == "fence"]
    assert log.content == "one\n```\n</details>\nthe error @all\n"


def test_the_first_errors_of_a_build_are_in_sight() -> None:
    line = "/forkwatch/source/sql/handler_{0}.cc:{0}:7: error: 'rows_{0}' @all was not declared"
    log = "\n".join(line.format(number) for number in range(1, 6))
    story = a_run().that(Outcome.BUILD_FAILED, stage="build", message="ninja failed", log=log)

    seen = before_the_folds(unjudged_comment_markdown(story.build()))

    assert "- sql/handler\\_1.cc, line 1: 'rows\\_1' @\u200ball was not declared\n" in seen
    assert "line 3: " in seen
    assert "- and 2 more\n" in seen


def test_a_text_that_fits_is_whole() -> None:
    folds = [Fold(title=f"fold {number}", body="x" * 100) for number in range(3)]

    assert "Cut here" not in fitted("head", folds, foot="foot")
    cut = fitted("head", folds, foot="foot", bytes_max=1_300)
    assert "fold 1" in cut
    assert cut.endswith("too long for this place: fold 2.\n\nfoot\n") or "fold 2" in cut


def test_as_many_lines_as_fit() -> None:
    drawn = most_lines(lambda count: "line\n" * count, 100, bytes_max=100)

    assert 0 < len(drawn) <= 100
    assert most_lines(lambda count: "line\n" * count, 20, bytes_max=100) == "line\n" * 20
    assert most_lines(lambda count: "x" * 200 + "y" * count, 5, bytes_max=100) == "x" * 200


def test_a_build_that_the_machine_ended_is_not_said_to_be_the_changes_fault() -> None:
    message = "build had a program killed from outside (Killed)"
    story = a_run().against(sha("a")).that(Outcome.FAILED, stage="build", message=message)
    document = story.build()
    assert document.failure is not None
    failure = document.failure.model_copy(update={"cause": Cause.HOST})
    text = unjudged_comment_markdown(document.model_copy(update={"failure": failure}), page=PAGE)

    assert text.startswith("**bbbbbbbb could not be measured (build: build had a program killed")
    assert "the machine's fault and not the change's" in text

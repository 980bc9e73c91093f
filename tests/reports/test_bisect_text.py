from __future__ import annotations

import json
import random
from dataclasses import replace

import altair as alt
import pytest

from bisects.document import BisectDocument, BisectEnd, CommitState
from reports.bisect import (
    again_command,
    bisect_chart,
    bisect_markdown,
    bisect_sentence,
    explain_command,
    notes,
)
from reports.bisect_tables import LINES_MAX, commits_table, jobs_table, shown_places, sure
from reports.charts import png
from reports.numbers import NOT_KNOWN
from tests.bisects.ranges import Bench, a_question, a_range, a_search, observed, searched, sha_of

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def a_bisect(**chosen):
    """A search that has found commit 20 of 32, the words of its document replaced."""
    return searched(a_search(32), Bench(20)).model_copy(update=chosen)


def a_set(culprits: tuple[int, ...], *, end: BisectEnd = BisectEnd.INDISTINGUISHABLE):
    return a_bisect(end=end, culprits=culprits, probability=0.9777)


def short_of(place: int) -> str:
    return sha_of(place)[:8]


def test_a_culprit_is_named_with_size_interval_author_and_probability() -> None:
    found = a_bisect(effect=-0.0954, effect_low=-0.1054, effect_high=-0.0856, probability=0.9777)

    assert bisect_sentence(found) == (
        f'scan is 9.1 % slower (95 %: 8.2 to 10.0) since {short_of(20)} "Change number 20" by Ada '
        "Lovelace (97 %)."
    )


def test_a_step_upwards_is_faster() -> None:
    found = a_bisect(effect=0.1, effect_low=0.09, effect_high=0.11)

    assert bisect_sentence(found).startswith("scan is 10.5 % faster (95 %: 9.4 to 11.6) since")


def test_commits_that_look_alike_are_all_named() -> None:
    two = bisect_sentence(a_set((8, 9)))
    five = bisect_sentence(a_set((8, 9, 10, 11, 12)))

    assert (
        f'since one of 2 commits: {short_of(8)} "Change number 8" by Ada Lovelace or {short_of(9)}'
        in two
    )
    assert "which cannot be told apart because 0 commits cannot be measured (97 %)." in two
    for place in range(8, 13):
        assert short_of(place) in five
    assert "since one of 5 commits: " in five


def test_a_set_may_hold_that_nothing_changed() -> None:
    assert ", or nothing changed, which" in bisect_sentence(a_set((0, 9)))
    assert bisect_sentence(a_set((0,))) == "most probably nothing changed (97 %)."


def test_not_reproduced_says_what_was_the_same() -> None:
    found = a_bisect(end=BisectEnd.NOT_REPRODUCED, culprits=(), probability=0.961, effect=None)

    assert bisect_sentence(found) == (
        f"not reproduced: scan is the same at {short_of(0)} and {short_of(31)} "
        f"(96 %, {found.measured_starts} starts)."
    )


def test_equal_files_at_both_ends_are_said() -> None:
    search = a_search(8)
    search.take(observed(7, state=CommitState.SAME, failure=""))

    assert bisect_sentence(search.document()) == (
        f"not reproduced: {short_of(7)} installs the same files as {short_of(0)}."
    )


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (BisectEnd.BUDGET, "the budget of 100000 minutes is used up after"),
        (BisectEnd.LIMIT, "the change is too small for this noise after"),
        (BisectEnd.CANCELLED, "it was cancelled after"),
    ],
)
def test_an_end_without_an_answer_tells_the_best_guess(end: BisectEnd, why: str) -> None:
    said = bisect_sentence(a_set((18, 19, 20), end=end))

    assert said.startswith(f"no answer, {why}")
    assert "most probably scan changed at one of 3 commits: " in said
    assert said.endswith("(97 %).")
    assert "most probably nothing changed" in bisect_sentence(a_set((0,), end=end))


def test_a_search_without_anything_to_measure_says_so() -> None:
    found = searched(a_search(3), Bench(1, broken={1, 2}))

    assert bisect_sentence(found) == (
        f"no answer: no commit after {short_of(0)} can be built and measured."
    )


def test_a_search_under_way_says_how_much_is_left() -> None:
    search = a_search(64)
    said = bisect_sentence(search.document())
    assert said.startswith("bisecting scan: most probable is ")
    assert "bits are unknown, about " in said
    bench = Bench(40)
    for _ in range(5):
        order = search.next()
        assert order is not None
        search.take(bench.observe(order))
    assert f"{search.document().entropy_bits:.1f} bits are unknown" in bisect_sentence(
        search.document()
    )


@pytest.mark.parametrize(
    ("probability", "said"),
    [(0.97, "97 %"), (0.9777, "97 %"), (0.29, "29 %"), (0.9949, "99.4 %"), (1.0, "99.9 %")],
)
def test_probabilities_are_rounded_down_and_never_certain(probability: float, said: str) -> None:
    assert sure(probability) == said


def test_no_commit_and_no_absence_of_one_is_called_certain() -> None:
    found = a_bisect()
    sure_of_one = found.model_copy(
        update={
            "commits": [
                commit.model_copy(update={"posterior": float(place == 20)})
                for place, commit in enumerate(found.commits)
            ]
        }
    )
    (line,) = (line for line in commits_table(sure_of_one).lines if line.cells[0] == short_of(20))

    assert line.cells[-1] == "99.9 %"
    without = bisect_markdown(found.model_copy(update={"nothing": 1.0}))
    assert "Nothing changed at all: 99.9 %" in without


def with_levels(levels: dict[int, float], *, end: BisectEnd, culprits: tuple[int, ...] = ()):
    rng = random.Random(1)
    search = a_search(32)
    for place, level in levels.items():
        search.take(observed(place, *(rng.gauss(level, 0.005) for _ in range(4))))
    found = search.document().model_copy(update={"end": end, "culprits": culprits})
    # Where nothing changed there is no effect.
    return found if culprits else found.model_copy(update={"effect": None})


def test_a_second_step_is_noted_with_the_range_to_look_at() -> None:
    levels = {5: 0.0, 12: -0.1, 19: -0.1, 20: -0.2, 31: -0.2}
    found = with_levels(levels, end=BisectEnd.CULPRIT, culprits=(20,))

    (note,) = notes(found)

    assert note.startswith("One step does not explain all of it: the range holds another step (")
    assert f"% slower) after {short_of(5)}, up to {short_of(12)}; searched by: " in note
    assert f"forkwatch bisect {short_of(5)} {short_of(12)} --workload scan." in note
    assert note in bisect_markdown(found)
    assert notes(a_bisect()) == []


def test_a_fix_inside_the_range_is_noted_as_a_step_back() -> None:
    levels = {10: 0.0, 15: -0.1, 16: 0.0, 31: 0.0}
    found = with_levels(levels, end=BisectEnd.NOT_REPRODUCED)

    step, back = notes(found)

    assert "the range holds a step (" in step
    assert f"after {short_of(10)}, up to {short_of(15)}" in step
    assert "a step back (" in back
    assert back.endswith("% slower than the good end.")


def test_markdown_has_the_answer_the_tables_the_reasons_and_the_command() -> None:
    found = searched(a_search(24), Bench(9, broken={8, 9, 10}))

    text = bisect_markdown(found, commit_url="https://example.org/fork/commit/")

    assert text.startswith("**scan is ")
    assert f"[{short_of(9)}](https://example.org/fork/commit/{sha_of(9)})" in text
    assert "| commit | subject | author | state | starts | ratio | probability |" in text
    assert "cannot be measured" in text
    assert "build: make failed with status 2" in text
    assert f"<summary>Everything measured: {len(found.observations)} jobs, " in text
    assert again_command(found) in text
    assert "](http" not in bisect_markdown(found)


def test_the_command_asks_the_same_again() -> None:
    question = a_question(8, workload="random-points(1000)", stop=0.9, budget_minutes=90.0, seed=3)

    command = again_command(a_search(8, question=question).document())

    assert command == (
        f"forkwatch bisect {sha_of(0)} {sha_of(7)} --workload 'random-points(1000)' --suite commit "
        "--budget 90m --stop 0.9 --seed 3"
    )


def test_words_of_strangers_stay_words() -> None:
    commits = a_range(8)
    hostile = "<img src=x> @everyone [click](javascript:alert(1)) | cell\n# title `code` \u202e"
    named = [*commits[:3], *_renamed(commits[3:], subject=hostile)]
    search = a_search(8, commits=named)
    bench = Bench(3, broken={4})
    found = searched(search, bench)
    text = bisect_markdown(found)

    assert "<img" not in text
    assert "\u202e" not in text
    assert "@everyone" not in text
    assert "[click](" not in text
    assert "\n# title" not in bisect_sentence(found)


def _renamed(commits, *, subject: str):
    return [
        type(one)(
            sha=one.sha,
            subject=subject,
            author=subject,
            committed_at=one.committed_at,
            files=one.files,
        )
        for one in commits
    ]


def test_tables_have_a_line_for_all_that_was_tried_and_may_be_it() -> None:
    found = a_bisect()
    table = commits_table(found)
    lines = {line.cells[0]: line for line in table.lines}

    assert lines[short_of(0)].cells[3] == "good end, beside every other"
    assert lines[short_of(0)].cells[6] == NOT_KNOWN
    assert float(lines[short_of(20)].cells[6].removesuffix(" %")) >= 95
    assert lines[short_of(31)].tone == "slower"
    assert lines[short_of(31)].cells[5].startswith("▼ 0.9")
    assert len(jobs_table(found).lines) == len(found.observations)
    assert "more not shown" in table.title


def test_tables_of_long_ranges_are_bounded() -> None:
    search = a_search(400, noise_sd=0.01, noise_df=5.0)
    for place in range(1, 200):
        search.take(observed(place, 0.001, -0.001))
    document = search.document()

    places = shown_places(document)

    assert len(places) == LINES_MAX
    assert {0, 399} <= set(places)
    assert places == sorted(places)
    assert len(jobs_table(document).lines) == LINES_MAX
    assert jobs_table(document).title == "Jobs, 139 earlier ones not shown"
    assert len(bisect_markdown(document)) < 40_000


def test_the_chart_is_valid_vega_lite_of_plain_json_and_can_be_drawn() -> None:
    found = searched(a_search(24), Bench(9, broken={8}))

    spec = bisect_chart(found)

    json.dumps(spec, allow_nan=False)
    alt.Chart.from_dict(spec)
    (values,) = spec["datasets"].values()
    by_commit = {value["commit"]: value for value in values}
    assert by_commit[short_of(0)]["change"] == 0.0
    assert by_commit[short_of(0)]["probability"] == 0.0
    assert by_commit[short_of(9)]["probability"] == pytest.approx(found.commits[9].posterior)
    assert by_commit[short_of(23)]["change"] == pytest.approx(-9.5, abs=1.5)
    assert by_commit[short_of(23)]["low"] <= by_commit[short_of(23)]["change"]
    assert png(spec).startswith(PNG_MAGIC)


def test_a_chart_before_the_first_measurement_can_be_drawn() -> None:
    assert png(bisect_chart(a_search(8).document())).startswith(PNG_MAGIC)


def a_merge(inner) -> BisectDocument:
    """Commit 20 of 32 is a merge, and this is what was found within it."""
    return a_bisect(probability=0.9777, merged=inner)


def test_a_merge_is_named_with_the_commit_that_it_brought() -> None:
    inner = searched(a_search(8), Bench(5)).model_copy(update={"probability": 0.961})

    said = bisect_sentence(a_merge(inner))

    assert f'since {short_of(20)} "Change number 20" by Ada Lovelace (97 %); of what it' in said
    assert said.endswith(
        f'; of what it merged, it is {short_of(5)} "Change number 5" by Ada Lovelace (96 %).'
    )


@pytest.mark.parametrize(
    ("culprit", "chosen", "words"),
    [
        (7, {}, "; none of the 6 commits that it merged shows it: it came with merging ("),
        (0, {}, "; beside its first parent the merge shows no change ("),
        (
            5,
            {"end": BisectEnd.BUDGET},
            "; which of the 6 commits that it merged it was is not known yet.",
        ),
    ],
)
def test_a_merge_of_which_no_commit_can_be_named_says_why(culprit, chosen, words) -> None:
    inner = searched(a_search(8), Bench(culprit)).model_copy(update=chosen)

    assert words in bisect_sentence(a_merge(inner))


def test_what_a_merge_brought_has_its_tables_and_links() -> None:
    inner = searched(a_search(8), Bench(5, broken={3}))
    found = a_merge(inner)

    text = bisect_markdown(found, commit_url="https://example.org/fork/commit/")

    assert f"Culprit: [{short_of(5)}](" in text
    assert f", by way of [{short_of(20)}](" in text
    assert f"**What it merged, beside its first parent {short_of(0)}:**" in text
    assert text.count("<summary>Everything measured: ") == 2
    assert explain_command(found) in text


def test_the_command_that_explains_is_about_the_culprit_and_its_parent() -> None:
    sha = short_of(20)

    command = explain_command(a_bisect())

    assert command == (
        f"forkwatch explain '{sha}~1' {sha} --workload scan --suite commit --profile"
    )
    assert explain_command(a_set((8, 9))) == ""


def test_the_one_commit_that_cannot_be_measured_is_named() -> None:
    found = searched(a_search(24), Bench(9, broken={9}))

    assert f"cannot be told apart because {short_of(9)} cannot be measured" in bisect_sentence(
        found
    )


def test_mail_addresses_of_authors_are_not_repeated() -> None:
    commits = [replace(one, author="Ada Lovelace <ada@example.org>") for one in a_range(8)]
    found = searched(a_search(8, commits=commits), Bench(3))

    assert "by Ada Lovelace (" in bisect_sentence(found)
    for text in (bisect_markdown(found), json.dumps(bisect_chart(found))):
        assert "Ada Lovelace" in text
        assert "example.org" not in text

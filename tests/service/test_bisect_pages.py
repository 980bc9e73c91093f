"""The pages about bisects: what is known, how far it is, and nothing but words from commits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bisects.document import CommitState
from results.slice import SideName, Slice
from service.core.bisections import BisectState
from service.core.tokens import Scope
from service.flows.bisect_evidence import stored_evidence
from service.flows.bisect_texts import ended_text
from service.store import bisect_jobs, bisects
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.run_documents import a_run
from tests.fakes.stored_bisects import BisectCaller
from tests.fakes.visitor import charts_of, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

    from results.document import RunDocument
    from service.core.bisections import Bisect

EVIL = "</p><script>x()</script><a href='http://evil'>here</a>"
#: What twelve starts of a commit that lost 9.5 % say.
SLOW = [-0.1 + 0.001 * (place % 5 - 2) for place in range(6)]
QUIET = [0.001 * (place % 5 - 2) for place in range(6)]


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[BisectCaller]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    caller = BisectCaller(database)
    for subject in ("Import", "Quiet", f"Breaks {EVIL}", f"Slower {EVIL}", "After it"):
        caller.fork.push(subject)
    yield caller
    database.close()


def searched(caller: BisectCaller) -> Bisect:
    """Have a bisect with a broken build in the middle, and the step right after it."""
    bisect = caller.ask()
    caller.observe(bisect, 4, SLOW)
    caller.observe(bisect, 2, state=CommitState.BROKEN, failure=f"build: {EVIL}")
    caller.observe(bisect, 3, SLOW)
    caller.observe(bisect, 1, QUIET)
    return bisect


def test_the_page_tells_what_is_known_and_how_to_see_it_oneself(caller: BisectCaller) -> None:
    bisect = searched(caller)
    text = caller.read(f"/bisects/{bisect.id}")
    good, bad = bisect.question.good, bisect.question.bad

    assert "Which commit changed scan?" in text
    assert f"({good[:8]}, {bad[:8]}]" in text
    assert "4 commits, without the first and with the last" in text
    assert f"forkwatch bisect {good} {bad} --workload scan --suite commit" in text
    assert "16 minutes" in text
    assert "cannot be measured" in text
    assert "asked by token:ada through api" in text
    for commit in caller.fork.commits:
        assert commit.sha[:8] in text


def test_the_chart_has_every_commit(caller: BisectCaller) -> None:
    bisect = searched(caller)
    [chart] = charts_of(caller.call("GET", f"/bisects/{bisect.id}").text)

    assert "vega-lite" in chart["$schema"]
    assert all(commit.sha[:8] in str(chart) for commit in caller.fork.commits)


def test_the_culprits_are_named_at_the_top(caller: BisectCaller) -> None:
    text = caller.read(f"/bisects/{searched(caller).id}")
    facts = text[: text.index("range (")]

    assert facts.count("one of ") >= 2
    for commit in caller.fork.commits[2:4]:
        assert commit.sha[:8] in facts


def test_one_that_waits_or_has_just_begun_says_so(caller: BisectCaller) -> None:
    bisect = caller.ask()

    text = caller.read(f"/bisects/{bisect.id}")
    assert "waiting Waits for the bisect before it." in text
    assert "after the first measurement" in text


def test_the_list_tells_the_newest_first_and_leads_to_each(caller: BisectCaller) -> None:
    first, second = caller.ask(), caller.ask(budget_minutes=10.0)
    html = caller.call("GET", "/bisects").text

    assert html.index(second.id) < html.index(first.id)
    assert f'href="/bisects/{first.id}"' in html
    assert first.id not in caller.call("GET", "/bisects?alert=alert-1").text
    assert "None yet" in caller.read("/bisects?fork=other")


@pytest.mark.parametrize("path", ["/bisects/none", "/bisects/%00", "/bisects/..%2F.."])
def test_what_is_not_there_is_a_page_that_leads_back(caller: BisectCaller, path: str) -> None:
    answer = caller.call("GET", path)

    assert answer.status_code == 404
    assert 'href="/"' in answer.text


def test_hostile_words_stay_words_and_pages_are_guarded(caller: BisectCaller) -> None:
    bisect = searched(caller)
    for path in ("/bisects", f"/bisects/{bisect.id}", f"/bisects?fork={EVIL}&alert={EVIL}"):
        answer = caller.call("GET", path)

        assert "<script>x" not in answer.text
        assert "<a href='http" not in answer.text
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        for tag, attributes in parsed(answer.text).tags:
            assert "style" not in attributes
            if tag == "script":
                assert attributes.get("type") == "application/json" or "src" in attributes
            for name in ("src", "href"):
                assert (attributes.get(name) or "/").startswith(("/", "#"))


def send(caller: BisectCaller, path: str, **fields: str) -> httpx.Response:
    """Send a form as a browser does."""
    return caller.call("POST", path, data=fields)


def test_the_form_begins_a_bisect_and_leads_to_its_page(caller: BisectCaller) -> None:
    good = caller.fork.commits[0].sha
    asked = {"good": good, "bad": "main", "workload": "scan", "minutes": "30"}
    answer = send(caller, "/bisects", token=caller.acting, **asked)
    [bisect] = caller.flow.begun

    assert (answer.status_code, answer.headers["location"]) == (303, f"/bisects/{bisect}")
    told = caller.get(f"/api/v1/bisects/{bisect}")["bisect"]
    assert (told["asked_by"], told["via"]) == ("token:ada", "page")
    assert told["question"]["budget_minutes"] == 30.0


def test_what_the_form_cannot_do_is_said_in_it_without_the_token(caller: BisectCaller) -> None:
    reader = caller.tokens.create("reader", [Scope.READ])[1]
    asked = {"good": "nowhere", "bad": "main", "workload": EVIL}
    for token, status, words in (
        ("", 403, "needs a token with the scope 'act'"),
        (reader, 403, "needs the scope 'act'"),
        ("guess", 403, "not known"),
        (caller.acting, 422, "workload: String should match"),
    ):
        answer = send(caller, "/bisects", token=token, **asked)
        page = parsed(answer.text)

        assert answer.status_code == status, answer.text
        assert words in " ".join(page.words)
        values = [attributes.get("value") for _, attributes in page.tags]
        assert "nowhere" in values
        assert not token or token not in answer.text
    refused = send(caller, "/bisects", token=caller.acting, good="nowhere", bad="main")
    assert refused.status_code == 409
    assert "the good end names no commit here" in refused.text
    assert caller.flow.begun == []


def test_the_form_of_a_bisect_ends_it(caller: BisectCaller) -> None:
    bisect = searched(caller)
    path = f"/bisects/{bisect.id}"
    refused = send(caller, path, token="guess")
    ended = send(caller, path, token=caller.acting)
    again = caller.call("GET", path).text

    assert (refused.status_code, "Not ended" in refused.text) == (403, True)
    assert (ended.status_code, ended.headers["location"]) == (303, path)
    assert "End the bisect" not in again
    assert "ended by token:ada" in again
    assert send(caller, "/bisects/none", token=caller.acting).status_code == 404


def counted(piece: Slice) -> Slice:
    """A slice in which the candidate reads twice as many rows for an operation."""
    times = 2.0 if piece.side is SideName.CANDIDATE else 1.0
    assert piece.counters is not None
    engine = {"Handler_read_next": 100.0 * times * piece.operations}
    counters = piece.counters.model_copy(update={"engine": engine})
    return piece.model_copy(update={"counters": counters})


def a_counted_run(bisect: Bisect, job: str, sha: str) -> RunDocument:
    story = a_run().called(f"run-{job}", job=job).on(sha).against(bisect.question.good)
    story = story.with_samples("scan", [[1.8], [1.8]])
    document = story.with_samples("scan", [[2.0], [2.0]], side=SideName.BASELINE).build()
    starts = tuple(
        start.model_copy(update={"slices": tuple(counted(piece) for piece in start.slices)})
        for start in document.starts
    )
    return document.model_copy(update={"starts": starts})


def test_the_page_has_the_counters_of_the_culprit_and_how_to_see_more(caller: BisectCaller) -> None:
    bisect = caller.ask()
    for commit, ratios in ((4, SLOW), (3, SLOW), (1, QUIET), (2, QUIET), (2, QUIET), (3, SLOW)):
        caller.observe(bisect, commit, ratios)
    sha = caller.fork.commits[3].sha
    with caller.database.writing() as session:
        for job in bisect_jobs.of_bisect(session, bisect.id):
            bisect_jobs.store_document(session, job.id, a_counted_run(bisect, job.id, job.sha))
        found = bisects.document(session, bisect.id)
    text = caller.read(f"/bisects/{bisect.id}")

    assert found is not None
    assert found.culprits == (3,)
    assert f"Counters per operation of {sha[:8]} that differ most from" in text
    assert "Handler_read_next 100 200 2.00" in text
    assert f"forkwatch explain '{sha[:8]}~1' {sha[:8]} --workload scan" in text
    with caller.database.reading() as session:
        evidence = stored_evidence(session, found)
    said = ended_text(
        replace(bisect, state=BisectState.OVER), found, page="/bisects/1", evidence=evidence
    )
    assert "What an operation costs beside the good end: 1 counter differs" in said


def test_without_a_culprit_nothing_is_counted(caller: BisectCaller) -> None:
    text = caller.read(f"/bisects/{searched(caller).id}")

    assert "Counters per operation" not in text
    assert "forkwatch explain" not in text

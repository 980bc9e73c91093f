"""A finished job is not done twice, unless its host was unstable."""

from __future__ import annotations

import pytest

from forkwatch.asking_again import forget_unstable
from results.document import Outcome
from results.job import DOCUMENT_FILE, JobOrder
from runner.errors import OperatorError
from runner.job_folder import locked
from runner.settings import Home
from tests.fakes.run_documents import a_run, sha
from tests.fakes.scripted_measurement import PLAN

MEASURED = a_run().with_samples("scan", [[1.0], [1.0]])


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def order_in(home, document):
    """Return an order whose job has ended with this document, after one start."""
    order = JobOrder(
        job="own-1",
        run="own-1",
        repository=home.root,
        plan=PLAN,
        branch="main",
        suite="commit",
        host_class="small",
        candidate=sha("b"),
    )
    folder = home.folder("jobs", order.job)
    (folder / DOCUMENT_FILE).write_text(document.model_dump_json())
    (home.folder("jobs", order.job, "starts") / "0000.json").write_text("{}")
    return order


def test_what_an_unstable_host_measured_is_forgotten(home):
    story = MEASURED.that(Outcome.UNSTABLE, stage="host", message="the canary was slow")
    order = order_in(home, story.build())

    forget_unstable(order, home)

    assert {path.name for path in home.folder("jobs", order.job).iterdir()} == {"lock"}


@pytest.mark.parametrize(
    "story",
    [MEASURED, a_run().that(Outcome.BUILD_FAILED, stage="build", message="no")],
)
def test_an_answer_stays(home, story):
    order = order_in(home, story.build())

    forget_unstable(order, home)

    names = {path.name for path in home.folder("jobs", order.job).iterdir()}
    assert names == {"lock", "starts", DOCUMENT_FILE}


def test_a_job_that_was_never_asked_for_has_nothing_to_forget(home):
    order = order_in(home, MEASURED.build())

    forget_unstable(order.model_copy(update={"job": "own-2"}), home)


def test_somebody_who_is_at_work_is_left_alone(home):
    story = MEASURED.that(Outcome.UNSTABLE, stage="host", message="the canary was slow")
    order = order_in(home, story.build())
    folder = home.folder("jobs", order.job)

    with locked(folder), pytest.raises(OperatorError, match="another runner"):
        forget_unstable(order, home)

    assert (folder / DOCUMENT_FILE).exists()

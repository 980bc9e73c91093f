"""A job that the service dispatches to Buildkite, done by a real buildkite-agent.

The build is made by the service's adapter, run by the agent, and its runner knocks at the service's
own door with an identity that Buildkite's double signs. The measuring alone is a double.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from results.document import RunDocument
from service.channels.dispatch.buildkite import BuildkiteRunners
from service.channels.oidc import OidcIdentities
from service.core.identity import CiSystem, Issuer
from service.core.model import JobStatus
from service.flows.dispatched_runs import DispatchedRuns
from service.flows.dispatching import CiDispatcher
from service.store import migrate
from service.store.database import Database
from service.web.application import web_application
from service.web.dispatch_api import dispatched_router
from service.web.pages import missing_page
from tests.ci.fork_history import FORKWATCH_PLAN
from tests.ci.test_buildkite_agent import run_agent, told
from tests.fakes.buildkite_api import Build
from tests.fakes.buildkite_rest import BASE, PIPELINE, TOKEN, BuildkiteRest
from tests.fakes.dispatch_scene import JOB, order
from tests.fakes.git_fork import GitFork
from tests.fakes.loopback import Loopback
from tests.fakes.memory_fork import StillClock
from tests.fakes.oidc_issuer import OidcIssuer

pytestmark = [pytest.mark.ci, pytest.mark.timeout(1800)]

HOUR = timedelta(hours=1)


class Service:
    """A service with nothing but dispatch."""

    def __init__(self, url):
        migrate.upgrade(url)
        self.clock, self.rest = StillClock(), BuildkiteRest()
        runners = BuildkiteRunners(
            PIPELINE, token=TOKEN, api_url=BASE, transport=self.rest.transport
        )
        self.dispatcher = CiDispatcher(
            database=Database(url),
            clock=self.clock,
            runners={CiSystem.BUILDKITE: runners},
            system_of=lambda _name: CiSystem.BUILDKITE,
            wait=HOUR,
        )
        self.app = None

    def open(self, issuer, audience):
        """Open the door for runners, whose tokens are for this audience."""
        owner, _, slug = PIPELINE.partition("/")
        claims = {"organization_slug": owner, "pipeline_slug": slug}
        named = Issuer(system=CiSystem.BUILDKITE, url=issuer.url, audience=audience, claims=claims)
        runs = DispatchedRuns(dispatcher=self.dispatcher, job_time=HOUR)
        identities = OidcIdentities([named], clock=self.clock)
        router = dispatched_router(runs, identities=identities)
        self.app = web_application([router], missing_page=missing_page)

    async def __call__(self, scope, receive, send):
        await self.app(scope, receive, send)


@pytest.fixture
def service(tmp_path):
    service = Service(f"sqlite:///{tmp_path / 'service.sqlite'}")
    yield service
    service.dispatcher.database.close()


def done_by_an_agent(service, fork, folder, *, queue="small"):
    """Let an agent do the newest build of the service."""
    made = service.rest.builds[-1]
    with OidcIssuer() as issuer, Loopback(service) as there:
        service.open(issuer, there.url)

        def identity(audience):
            about = {"build_number": made["number"], "aud": audience}
            return issuer.sign(issuer.buildkite(service.clock.now(), **about))

        head = fork.push("later, and none of this job's business")
        build = Build(str(fork.folder), head, made["branch"], queue, made["env"], identity=identity)
        steps = (
            'forkwatch pipeline --event job --host-class "$FORKWATCH_JOB_HOST_CLASS" '
            f"--service {there.url} | buildkite-agent pipeline upload"
        )
        build.add([{"key": "forkwatch", "command": steps}])
        done = run_agent(build, folder)
    return build, told(build, done)


def test_a_confirm_is_dispatched_measured_and_brought(service, tmp_path):
    fork = GitFork(tmp_path / "fork.git", plan=FORKWATCH_PLAN)
    base = fork.push("base")
    slow = fork.push("Check every record speed=0.8")
    asked = order(candidate=slow, plan=FORKWATCH_PLAN).model_copy(update={"baseline": base})
    service.dispatcher.start(asked)

    build, said = done_by_an_agent(service, fork, tmp_path)

    statuses = {job.key: job.exit_status for job in build.jobs}
    assert statuses == {"forkwatch": 0, "forkwatch-job-small": 0}, said
    assert build.unknown == [], said
    assert service.dispatcher.status(JOB) is JobStatus.FINISHED
    document = RunDocument.model_validate_json(service.dispatcher.collect(JOB))
    assert (document.candidate.commit.sha, document.baseline.commit.sha) == (slow, base)
    assert [one.data["path"] for one in build.artifacts] == ["forkwatch-run.json"]
    # The token of the service and the credential of the order are in no log of a job.
    assert TOKEN not in said
    assert "credential" not in said

"""A Buildkite of our own on loopback: one build, its jobs, and what an agent asks and tells.

Steps come in by the agent's own uploads, and are handed out when what they depend on has ended.
What an agent of version 3.78.0 was seen to send is understood; anything else is remembered as
`unknown`, so that a test can say that there was nothing.
"""

from __future__ import annotations

import email.message
import gzip
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

AT: Final = "2026-11-22T04:00:00.000Z"
ENDED: Final = ("finished", "left out")


@dataclass(kw_only=True)
class Job:
    """A step of the build."""

    id: str
    key: str
    #: As the agent uploaded it.
    step: dict[str, Any]
    #: scheduled, assigned, running, finished, or left out because of what it depends on.
    state: str = "scheduled"
    exit_status: int | None = None
    log: bytes = b""

    @property
    def passed(self) -> bool:
        """Whether it ended well, or as badly as the step allows."""
        soft = self.step.get("soft_fail")
        allowed = soft is True or any(
            one["exit_status"] in {self.exit_status, "*"} for one in soft or ()
        )
        return self.state == "finished" and (self.exit_status == 0 or allowed)

    @property
    def text(self) -> str:
        """What it said."""
        return self.log.decode(errors="replace")


@dataclass(kw_only=True)
class Artifact:
    """A file that a job left."""

    id: str
    job: Job
    data: dict[str, Any]
    content: bytes = b""


@dataclass
class Build:
    """One build, and what was told of it."""

    repository: str
    commit: str
    branch: str
    queue: str
    #: Variables of every job besides Buildkite's usual ones.
    env: Mapping[str, str] = field(default_factory=dict)
    #: Signs who a job is, for an audience; nobody does where absent.
    identity: Callable[[str], str] | None = None
    jobs: list[Job] = field(default_factory=list)
    annotations: dict[str, dict[str, Any]] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def add(self, steps: list[dict[str, Any]]) -> None:
        """Add steps at the end; a key is used once."""
        for step in steps:
            key = step.get("key") or f"step-{len(self.jobs)}"
            assert key not in {job.key for job in self.jobs}, f"step {key} is there already"
            self.jobs.append(Job(id=str(uuid.uuid4()), key=key, step=step))

    def job(self, key: str) -> Job:
        """Return the job of a step."""
        return next(job for job in self.jobs if job.key == key)

    def next(self) -> Job | None:
        """Return a job that can begin on the one queue there is."""
        for job in self.jobs:
            queue = job.step.get("agents", {}).get("queue", self.queue)
            if job.state == "scheduled" and queue == self.queue and self._may_begin(job):
                return job
        return None

    def _may_begin(self, job: Job) -> bool:
        needed = job.step.get("depends_on") or []
        for one in [needed] if isinstance(needed, str) else needed:
            link = {"step": one} if isinstance(one, str) else one
            before = self.job(link["step"])
            if before.state not in ENDED:
                return False
            if not before.passed and not link.get("allow_failure"):
                job.state = "left out"
                return False
        return "block" not in job.step

    def variables(self, job: Job) -> dict[str, str]:
        """Return what Buildkite tells a job of itself."""
        step = job.step
        commands = step.get("command") or step.get("commands") or ""
        paths = step.get("artifact_paths") or ""
        return {
            "CI": "true",
            "BUILDKITE": "true",
            "BUILDKITE_AGENT_NAME": "bench-1",
            "BUILDKITE_AGENT_META_DATA_QUEUE": self.queue,
            "BUILDKITE_ARTIFACT_PATHS": paths if isinstance(paths, str) else ";".join(paths),
            "BUILDKITE_BRANCH": self.branch,
            "BUILDKITE_BUILD_ID": "00000000-0000-4000-8000-000000000001",
            "BUILDKITE_BUILD_NUMBER": "1",
            "BUILDKITE_COMMAND": commands if isinstance(commands, str) else "\n".join(commands),
            "BUILDKITE_COMMIT": self.commit,
            "BUILDKITE_JOB_ID": job.id,
            "BUILDKITE_ORGANIZATION_SLUG": "acme",
            "BUILDKITE_PIPELINE_PROVIDER": "git",
            "BUILDKITE_PIPELINE_SLUG": "fork",
            "BUILDKITE_PULL_REQUEST": "false",
            "BUILDKITE_REPO": self.repository,
            "BUILDKITE_STEP_ID": job.id,
            "BUILDKITE_STEP_KEY": job.key,
            **self.env,
            **{name: str(value) for name, value in (step.get("env") or {}).items()},
        }


class BuildkiteApi:
    """The build as an agent sees it; `app` goes on a socket, whose address `url` has to be told."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.url = ""
        jobs = "/v3/jobs/{job}"
        noted = (
            *("/v3/connect", "/v3/disconnect", "/v3/heartbeat"),
            *(f"{jobs}/header_times", f"{jobs}/data/set"),
        )
        self.app = Starlette(
            routes=[
                Route("/v3/register", self._register, methods=["POST"]),
                Route("/v3/ping", self._ping),
                Route(jobs, self._state),
                Route(f"{jobs}/accept", self._accept, methods=["PUT"]),
                Route(f"{jobs}/start", self._start, methods=["PUT"]),
                Route(f"{jobs}/finish", self._finish, methods=["PUT"]),
                Route(f"{jobs}/chunks", self._chunk, methods=["POST"]),
                Route(f"{jobs}/pipelines", self._take_steps, methods=["POST"]),
                Route(f"{jobs}/pipelines/{{upload}}", self._steps_taken),
                Route(f"{jobs}/annotations", self._annotate, methods=["POST"]),
                Route(f"{jobs}/artifacts", self._announce, methods=["POST"]),
                Route(f"{jobs}/artifacts", self._note, methods=["PUT"]),
                Route(f"{jobs}/data/exists", self._no_data, methods=["POST"]),
                Route(f"{jobs}/oidc/tokens", self._identity, methods=["POST"]),
                Route("/v3/builds/{build}/artifacts/search", self._search),
                Route("/files", self._take_file, methods=["POST"]),
                Route("/files/{artifact}", self._give_file),
                *(Route(path, self._note, methods=["POST"]) for path in noted),
                Route("/{path:path}", self._unknown, methods=["GET", "POST", "PUT", "DELETE"]),
            ]
        )

    def _job(self, request: Request) -> Job:
        return next(job for job in self.build.jobs if job.id == request.path_params["job"])

    async def _register(self, request: Request) -> Response:
        asked = await request.json()
        return JSONResponse(
            {
                "id": str(uuid.uuid4()),
                "name": asked["name"],
                "access_token": "access",
                "endpoint": f"{self.url}/v3",
                "ping_interval": 1,
                "job_status_interval": 1,
                "heartbeat_interval": 60,
                "meta_data": asked["meta_data"],
            }
        )

    async def _ping(self, request: Request) -> Response:
        del request
        job = self.build.next()
        if job is None:
            return JSONResponse({"action": "idle"})
        job.state = "assigned"
        return JSONResponse({"job": self._as_told(job)})

    async def _state(self, request: Request) -> Response:
        return JSONResponse({"state": self._job(request).state})

    async def _accept(self, request: Request) -> Response:
        job = self._job(request)
        job.state = "accepted"
        return JSONResponse(self._as_told(job))

    async def _start(self, request: Request) -> Response:
        self._job(request).state = "running"
        return JSONResponse({})

    async def _finish(self, request: Request) -> Response:
        job, told = self._job(request), await request.json()
        job.state, job.exit_status = "finished", int(told["exit_status"])
        return JSONResponse({})

    async def _chunk(self, request: Request) -> Response:
        body = await request.body()
        zipped = request.headers.get("content-encoding") == "gzip"
        self._job(request).log += gzip.decompress(body) if zipped else body
        return JSONResponse({}, status_code=201)

    async def _take_steps(self, request: Request) -> Response:
        told = await request.json()
        self.build.add(told["pipeline"]["steps"])
        where = f"/v3/jobs/{request.path_params['job']}/pipelines/{told['uuid']}"
        headers = {"Location": f"{self.url}{where}", "Retry-After": "0"}
        return JSONResponse({}, status_code=202, headers=headers)

    async def _steps_taken(self, request: Request) -> Response:
        del request
        return JSONResponse({"state": "applied", "message": ""})

    async def _annotate(self, request: Request) -> Response:
        told = await request.json()
        self.build.annotations[told["context"]] = told
        return JSONResponse({}, status_code=201)

    async def _announce(self, request: Request) -> Response:
        """Take the names of files, and say where their contents go."""
        job, told = self._job(request), await request.json()
        new = [Artifact(id=str(uuid.uuid4()), job=job, data=one) for one in told["artifacts"]]
        self.build.artifacts += new
        action = {"url": self.url, "method": "POST", "path": "/files", "file_input": "file"}
        return JSONResponse(
            {
                "id": told["id"],
                "artifact_ids": [one.id for one in new],
                "upload_instructions": {
                    "data": {"job": job.id, "path": "${artifact:path}"},
                    "action": action,
                },
            },
            status_code=201,
        )

    async def _take_file(self, request: Request) -> Response:
        parts = _form(request.headers["content-type"], await request.body())
        job, path = parts["job"].decode(), parts["path"].decode()
        for one in self.build.artifacts:
            if one.job.id == job and one.data["path"] == path:
                one.content = parts["file"]
        return Response(status_code=204)

    async def _search(self, request: Request) -> Response:
        asked = request.query_params
        return JSONResponse(
            [
                {
                    **{name: one.data[name] for name in ("path", "file_size", "sha1sum")},
                    "id": one.id,
                    "job_id": one.job.id,
                    "url": f"{self.url}/files/{one.id}",
                    "created_at": AT,
                }
                for one in self.build.artifacts
                if one.data["path"] == asked["query"]
                and asked.get("scope", one.job.key) in {one.job.key, one.job.id}
            ]
        )

    async def _give_file(self, request: Request) -> Response:
        wanted = request.path_params["artifact"]
        return Response(next(one.content for one in self.build.artifacts if one.id == wanted))

    async def _no_data(self, request: Request) -> Response:
        del request
        return JSONResponse({"exists": False})

    async def _identity(self, request: Request) -> Response:
        told = await request.json()
        if self.build.identity is None:
            return JSONResponse({"message": "no identities here"}, status_code=404)
        return JSONResponse({"token": self.build.identity(told["audience"])})

    async def _note(self, request: Request) -> Response:
        del request
        return JSONResponse({})

    async def _unknown(self, request: Request) -> Response:
        self.build.unknown.append(f"{request.method} {request.url.path}")
        return JSONResponse({"message": "the double does not know this"}, status_code=404)

    def _as_told(self, job: Job) -> dict[str, Any]:
        return {
            "id": job.id,
            "endpoint": f"{self.url}/v3",
            "state": job.state,
            "env": self.build.variables(job),
            "chunks_max_size_bytes": 102_400,
            "token": "token-of-the-job",
        }


def _form(content_type: str, body: bytes) -> dict[str, bytes]:
    """Return the fields of a form with files."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    message = email.message_from_bytes(head + body)
    fields = {}
    for part in message.get_payload():
        assert isinstance(part, email.message.Message)
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        assert isinstance(name, str)
        assert isinstance(content, bytes)
        fields[name] = content
    return fields

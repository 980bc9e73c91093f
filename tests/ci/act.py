"""GitHub Actions' place in tests: `act` runs our workflows on this machine, without containers.

A fork, a workflow of its own and an event go in; what each job did comes out. It is `act` and not
GitHub's runner, which is in no registry; three actions of GitHub's are stand-ins in `actions/`.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runner import shell
from tests.ci import recipes, tools

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What the example of the documentation has in the place of a commit of forkwatch.
EXAMPLE_HASH: Final = "0123456789abcdef0123456789abcdef01234567"
#: The repository that the example takes forkwatch from.
OURS: Final = "forkwatch/forkwatch"
THEIRS: Final = "acme/fork"
#: An hour glass for a workflow that hangs; two busy processors are slow.
SECONDS_MAX: Final = 1500
STAND_INS: Final = Path(__file__).parent / "actions"


@dataclass(kw_only=True)
class Did:
    """What a run of a workflow did."""

    #: By id of a job: its result, `success` or `failure`.
    jobs: dict[str, str] = field(default_factory=dict)
    #: All that was said.
    text: str = ""


class Actions:
    """A repository on GitHub with self-hosted runners, as far as a workflow can tell."""

    def __init__(self, folder: Path, *, fork: Path, ours: Path, version: str) -> None:
        """Lay out the repositories.

        Args:
            folder: Empty; everything is kept below it.
            fork: Bare repository of the fork.
            ours: Repository that forkwatch is taken from, at `version`.
            version: Hash of a commit of it.
        """
        self._folder = folder
        self._version = version
        self._repositories = folder / "repositories"
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir(parents=True)
        for name, place in ((OURS, ours), (THEIRS, fork)):
            link = self._repositories / f"{name}.git"
            link.parent.mkdir(parents=True)
            link.symlink_to(place)
            _git(place, "config", "uploadpack.allowAnySHA1InWant", "true")
        self._fork = fork

    def run(
        self, event: str, payload: Mapping[str, Any], *, commit: str, env: Mapping[str, str] = {}
    ) -> Did:
        """Run the workflow of the documentation for an event, and return what it did.

        Args:
            event: Its name, such as `push`.
            payload: Its body.
            commit: What is checked out where act is started: `github.sha`.
            env: For every step.
        """
        tree = self._folder / f"tree-{len(list(self._folder.iterdir()))}"
        _git(self._folder, "clone", "--quiet", str(self._fork), str(tree))
        _git(tree, "checkout", "--quiet", "-B", "main", commit)
        _git(tree, "remote", "set-url", "origin", f"https://github.com/{THEIRS}.git")
        workflow = tree / ".github" / "workflows" / "forkwatch.yml"
        workflow.parent.mkdir(parents=True)
        text = recipes.example("github-actions.md").replace(EXAMPLE_HASH, self._version)
        workflow.write_text(text)
        (self._folder / "event.json").write_text(json.dumps(payload))
        # Jobs work below the cache, and the path of a socket may have 108 characters.
        with tempfile.TemporaryDirectory(prefix="fw-") as cache:
            done = shell.run(
                [*self._words(event, cache), *_pairs("--env", self._env(env))],
                timeout_s=SECONDS_MAX,
                cwd=tree,
            )
        shutil.rmtree(tree)
        return _did(done.stdout, done.stderr)

    def _words(self, event: str, cache: str) -> list[str]:
        ours = {f"{OURS}@{self._version}": recipes.ROOT}
        theirs = {uses: STAND_INS / uses.split("@")[0].split("/")[1] for uses in _actions()}
        mapped = {**ours, **theirs}
        return [
            *("env", f"HOME={cache}", f"XDG_CACHE_HOME={cache}"),
            *(str(tools.program("act")), event, "--json", "--rm"),
            *("--eventpath", str(self._folder / "event.json")),
            *("--pull=false", "--action-offline-mode", "--action-cache-path", cache),
            *_pairs("-P", dict.fromkeys(("self-hosted", "ubuntu-24.04"), "-self-hosted")),
            *_pairs("--local-repository", {key: str(path) for key, path in mapped.items()}),
        ]

    def _env(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "FORKWATCH_TEST_REPOSITORIES": str(self._repositories),
            "FORKWATCH_TEST_ARTIFACTS": str(self.artifacts),
            **more,
        }


def _pairs(option: str, values: Mapping[str, str]) -> list[str]:
    return [word for key, value in values.items() for word in (option, f"{key}={value}")]


def _actions() -> set[str]:
    """Return the actions of GitHub's that our workflows use, with the hashes they are pinned to."""
    return {
        step["uses"]
        for path in recipes.WORKFLOWS
        for job in recipes.jobs(path)
        for step in job.steps
        if step.get("uses", "").startswith("actions/")
    }


def _git(folder: Path, *words: str) -> str:
    done = shell.run(["git", "-C", str(folder), *words], timeout_s=120)
    assert done.ok, done.stderr
    return done.stdout.strip()


def _did(stdout: str, stderr: str) -> Did:
    did = Did()
    said = []
    for line in stdout.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            said.append(line)
            continue
        said.append(f"{entry.get('jobID', '')}: {entry.get('msg', '').rstrip()}")
        if "jobResult" in entry:
            did.jobs[entry["jobID"]] = entry["jobResult"]
    did.text = "\n".join([*said, stderr])
    return did

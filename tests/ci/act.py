"""GitHub Actions' place in tests: `act` runs our workflows on this machine, without containers.

A fork, a workflow of its own and an event go in; what each job did comes out. It is `act` and not
GitHub's runner, which is in no registry; three actions of GitHub's are stand-ins in `actions/`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pygit2

from runner import shell
from tests.ci import recipes, tools

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What the examples of the documentation have in the place of a commit of forkwatch.
EXAMPLE_HASH: Final = "0123456789abcdef0123456789abcdef01234567"
#: The repository that the examples take forkwatch from.
OURS: Final = "forkwatch/forkwatch"
THEIRS: Final = "acme/fork"
#: An hour glass for a workflow that hangs; two busy processors are slow.
SECONDS_MAX: Final = 1500
#: From the wish that a run ends until all of it is killed; GitHub's runner waits ten seconds.
CANCEL_SECONDS_MAX: Final = 10
STAND_INS: Final = Path(__file__).parent / "actions"


@dataclass(kw_only=True)
class Did:
    """What a run of a workflow did."""

    #: By id of a job: its result, `success` or `failure`.
    jobs: dict[str, str] = field(default_factory=dict)
    #: All that was said.
    text: str = ""


class Run:
    """A run of a workflow that is under way, in a folder of its own."""

    def __init__(self, words: list[str], *, folder: Path, cache: str) -> None:
        """Start act; whoever began it has to wait for it."""
        self._folder, self._cache = folder, cache
        with self._log.open("wb") as output:
            self._process = shell.start(words, output=output)

    @property
    def _log(self) -> Path:
        return self._folder / "act.log"

    def wait(self) -> Did:
        """Return what it did, once it is over; nothing of it is left but its log."""
        self._process.wait(SECONDS_MAX)
        self._process.kill()
        shutil.rmtree(self._cache, ignore_errors=True)
        shutil.rmtree(self._folder / "tree", ignore_errors=True)
        return _did(self._log.read_text(errors="replace"))

    def cancel(self) -> None:
        """End it as GitHub's runner does: ask first, then kill."""
        # Its steps have sessions of their own on terminals of act's: they end with act.
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGINT)
            self._process.wait(CANCEL_SECONDS_MAX)
            self._process.kill()


class Actions:
    """A repository on GitHub with self-hosted runners, as far as a workflow can tell."""

    def __init__(
        self, folder: Path, *, fork: Path, ours: Path, version: str, repository: str = THEIRS
    ) -> None:
        """Lay out the repositories.

        Args:
            folder: Empty; everything is kept below it.
            fork: Bare repository of the fork.
            ours: Repository that forkwatch is taken from, at `version`.
            version: Hash of a commit of it.
            repository: What the fork is called on GitHub.
        """
        self._folder = folder
        self._version = version
        self._repository = repository
        self._repositories = folder / "repositories"
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir(parents=True)
        for name, place in ((OURS, ours), (repository, fork)):
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
        workflow = recipes.example("github-actions.md")
        return self.begin(event, payload, commit=commit, workflow=workflow, env=env).wait()

    def begin(
        self,
        event: str,
        payload: Mapping[str, Any],
        *,
        commit: str,
        workflow: str,
        env: Mapping[str, str],
    ) -> Run:
        """Begin a run of a workflow of the fork, which has no other.

        Args:
            event: As for `run`.
            payload: As for `run`.
            commit: As for `run`.
            workflow: Text of the documentation.
            env: As for `run`.
        """
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=self._folder))
        tree = folder / "tree"
        _git(self._folder, "clone", "--quiet", str(self._fork), str(tree))
        _git(tree, "checkout", "--quiet", "-B", "main", commit)
        _git(tree, "remote", "set-url", "origin", f"https://github.com/{self._repository}.git")
        path = tree / ".github" / "workflows" / "forkwatch.yml"
        path.parent.mkdir(parents=True)
        path.write_text(workflow.replace(EXAMPLE_HASH, self._version))
        (folder / "event.json").write_text(json.dumps(payload))
        # Jobs work below the cache, and the path of a socket may have 108 characters.
        cache = tempfile.mkdtemp(prefix="fw-")
        words = [*self._words(event, folder, cache), *_pairs("--env", self._env(env))]
        return Run(words, folder=folder, cache=cache)

    def _words(self, event: str, folder: Path, cache: str) -> list[str]:
        ours = {f"{OURS}@{self._version}": recipes.ROOT}
        theirs = {uses: STAND_INS / uses.split("@")[0].split("/")[1] for uses in _actions()}
        mapped = {**ours, **theirs}
        return [
            *("env", f"--chdir={folder / 'tree'}", f"HOME={cache}", f"XDG_CACHE_HOME={cache}"),
            *(str(tools.program("act")), event, "--json", "--rm"),
            *("--eventpath", str(folder / "event.json")),
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


def installing(folder: Path, program: str) -> str:
    """Make a repository whose action installs a program as `forkwatch`; return its commit.

    Args:
        folder: Where; it is not there yet.
        program: Text of a program.
    """
    action = folder / recipes.ACTION.parent.relative_to(recipes.ROOT)
    action.mkdir(parents=True)
    shutil.copy(recipes.ACTION, action)
    install = action / "install"
    install.write_text(
        "#!/bin/sh -e\n"
        'mkdir -p "$RUNNER_TEMP/bin"\n'
        f"cat > \"$RUNNER_TEMP/bin/forkwatch\" <<'END'\n{program}END\n"
        'chmod +x "$RUNNER_TEMP/bin/forkwatch"\n'
        'echo "$RUNNER_TEMP/bin" >> "$GITHUB_PATH"\n'
        'echo "FORKWATCH_HOST_CLASS=${FORKWATCH_HOST_CLASS:-$HOST_CLASS}" >> "$GITHUB_ENV"\n'
    )
    install.chmod(0o755)
    repository = pygit2.init_repository(str(folder), initial_head="main")
    repository.index.add_all()
    who = pygit2.Signature("Ada", "ada@example.org", 1_760_000_000, 0)
    tree = repository.index.write_tree()
    return str(repository.create_commit("refs/heads/main", who, who, "forkwatch", tree, []))


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


def _did(log: str) -> Did:
    did = Did()
    said = []
    for line in log.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            said.append(line)
            continue
        said.append(f"{entry.get('jobID', '')}: {entry.get('msg', '').rstrip()}")
        if "jobResult" in entry:
            did.jobs[entry["jobID"]] = entry["jobResult"]
    did.text = "\n".join(said)
    return did

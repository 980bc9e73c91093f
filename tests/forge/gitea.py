"""A real forge that speaks much of GitHub's API: Gitea, built from its Go module, on loopback.

A folder comes in, an address with two people goes out, and repositories as tests ask for them. The
program is built once and kept below `.forkwatch/forge`; what it reads are its module's own files.

    python -m tests.forge.gitea     builds it ahead of the tests
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

import httpx

from runner import locks, shell
from tests.fakes.free_ports import free_port
from tests.fakes.hub_signature import SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / ".forkwatch" / "forge"
#: Of v1.27.3 not every dependency is served everywhere.
VERSION: Final = "v1.26.0"
MODULE: Final = f"code.gitea.io/gitea@{VERSION}"
#: What the program reads while it runs; the rest of its module is sources.
_READ: Final = ("options", "templates", "public")
#: Two processors take some ten minutes, and longer beside other work.
BUILD_SECONDS_MAX: Final = 3_600
_START_SECONDS_MAX: Final = 60
PATIENCE_SECONDS: Final = 60
OWNER: Final = "acme"
#: The user that forkwatch is there; on GitHub a machine account, too.
MACHINE: Final = "fw-machine"
_PASSWORD: Final = "a password of the tests"
_EVENTS: Final = ("push", "pull_request", "pull_request_sync", "issue_comment")
_SETTINGS: Final = """
APP_NAME = forge
RUN_MODE = prod
WORK_PATH = {folder}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = {url}/
STATIC_ROOT_PATH = {static}
APP_DATA_PATH = {folder}/data
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.sqlite
[repository]
ROOT = {folder}/repositories
[indexer]
ISSUE_INDEXER_TYPE = db
[security]
INSTALL_LOCK = true
SECRET_KEY = of-the-tests
PASSWORD_HASH_ALGO = pbkdf2_v1
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = loopback
[cron]
ENABLED = false
[log]
LEVEL = Warn
"""


class ForgeError(Exception):
    """The forge could not be had; says why."""


def program() -> Path:
    """Return the path of the program, built if it is not there.

    Raises:
        ForgeError: It could not be built.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / VERSION / "gitea"
    with locks.exclusive(KEPT / ".lock"):
        if not path.exists():
            _build(path)
    return path


def _build(path: Path) -> None:
    if shutil.which("go") is None:
        raise ForgeError("the forge is built by Go: install Go 1.26 or later")
    with tempfile.TemporaryDirectory(dir=KEPT) as made:
        folder = Path(made)
        source = _source(folder)
        # Its own go.mod replaces some modules, which `go install` refuses to follow.
        words = ["nice", "-n", "15", "go", "build", "-C", str(source)]
        words += ["-tags", "sqlite sqlite_unlock_notify", "-o", str(folder / "gitea"), "."]
        done = shell.run(words, timeout_s=BUILD_SECONDS_MAX)
        if not done.ok:
            raise ForgeError(f"{MODULE} was not built: {done.stderr.strip()[-1600:]}")
        for name in _READ:
            # Files of a module are read-only, and so would be the folders that they are copied to.
            shutil.copytree(source / name, folder / "static" / name, copy_function=shutil.copyfile)
        for inner in folder.rglob("*"):
            inner.chmod(0o755 if inner.is_dir() or inner.name == "gitea" else 0o644)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(path.parent / "static", ignore_errors=True)
        (folder / "static").rename(path.parent / "static")
        (folder / "gitea").rename(path)


def _source(folder: Path) -> Path:
    """Fetch the module; return the folder that Go keeps it in."""
    words = ["go", "mod", "download", "-json", MODULE]
    found = shell.run(words, timeout_s=BUILD_SECONDS_MAX, cwd=folder)
    if not found.ok:
        raise ForgeError(f"{MODULE} was not fetched: {found.stdout[-800:]}{found.stderr[-800:]}")
    return Path(json.loads(found.stdout)["Dir"])


class Gitea:
    """Use it as a context; it has an owner of repositories, and our machine's user."""

    def __init__(self, folder: Path) -> None:
        self._program = program()
        self._folder = folder
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._settings = folder / "app.ini"
        self._process: shell.Process | None = None
        self._log: IO[bytes] | None = None
        #: As the owner, for what the tests arrange.
        self.owner = self._client(OWNER)
        #: Of our machine's user.
        self.token = ""

    def __enter__(self) -> Self:
        static = self._program.parent / "static"
        text = _SETTINGS.format(folder=self._folder, url=self.url, port=self._port, static=static)
        self._settings.write_text(text)
        self._run("migrate")
        for name in (OWNER, MACHINE):
            self._run(
                *("admin", "user", "create", "--username", name, "--password", _PASSWORD),
                *("--email", f"{name}@example.org", "--must-change-password=false"),
            )
        self._log = (self._folder / "log").open("wb")
        words = [str(self._program), "--config", str(self._settings), "web"]
        self._process = shell.start(words, output=self._log)
        self._wait()
        scopes = {"name": "forkwatch", "scopes": ["write:repository", "write:issue", "read:user"]}
        with self._client(MACHINE) as machine:
            answer = machine.post(f"/users/{MACHINE}/tokens", json=scopes).raise_for_status()
        self.token = answer.json()["sha1"]
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            if self._process.wait(_START_SECONDS_MAX) is None:
                self._process.kill()
        if self._log is not None:
            self._log.close()
        self.owner.close()

    @property
    def api_url(self) -> str:
        """Base address of its API."""
        return f"{self.url}/api/v1"

    def new_repository(self, name: str) -> ForgeRepository:
        """Make a repository of the owner's with one commit, in which our machine may do all."""
        made = {"name": name, "auto_init": True, "default_branch": "main"}
        self.post("/user/repos", made)
        path = f"/repos/{OWNER}/{name}/collaborators/{MACHINE}"
        # Who may write is told to administrators alone; on GitHub to whoever may write.
        self.owner.put(path, json={"permission": "admin"}).raise_for_status()
        return ForgeRepository(forge=self, full_name=f"{OWNER}/{name}")

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Make something as the owner; return it."""
        return self.owner.post(path, json=body).raise_for_status().json()

    def get(self, path: str) -> Any:
        """Return what the owner sees."""
        return self.owner.get(path).raise_for_status().json()

    def _client(self, name: str) -> httpx.Client:
        return httpx.Client(base_url=self.api_url, auth=(name, _PASSWORD), timeout=30)

    def _run(self, *words: str) -> None:
        argv = [str(self._program), "--config", str(self._settings), *words]
        done = shell.run(argv, timeout_s=_START_SECONDS_MAX)
        assert done.ok, f"gitea {words[0]}: {done.stdout}{done.stderr}"

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS_MAX
        while True:
            try:
                self.owner.get("/version").raise_for_status()
            except httpx.HTTPError:
                said = (self._folder / "log").read_text(errors="replace")[-2000:]
                assert time.monotonic() < deadline, f"the forge did not start:\n{said}"
                time.sleep(0.1)
            else:
                return


@dataclass(frozen=True, kw_only=True)
class ForgeRepository:
    """One repository, as its owner works in it."""

    forge: Gitea
    full_name: str

    @property
    def path(self) -> str:
        """Its place in the API."""
        return f"/repos/{self.full_name}"

    @property
    def clone_url(self) -> str:
        """Where git finds it; it is public."""
        return f"{self.forge.url}/{self.full_name}.git"

    def commit(self, message: str, *, file: str | None = None, text: str = "", on: str = "") -> str:
        """Commit a new file to the default branch, or to a new branch `on`; return the hash."""
        name = file or f"notes/{base64.b16encode(message.encode()).decode().lower()[:60]}"
        body = {
            "branch": "main",
            "content": base64.b64encode((text or message).encode()).decode(),
            "message": message,
            **({"new_branch": on} if on else {}),
        }
        made = self.forge.post(f"{self.path}/contents/{name}", body)
        return str(made["commit"]["sha"])

    def commit_again(self, message: str, *, branch: str) -> str:
        """Commit a new file to a branch that is there; return the hash."""
        content = base64.b64encode(message.encode()).decode()
        body = {"branch": branch, "content": content, "message": message}
        made = self.forge.post(f"{self.path}/contents/again-{branch}", body)
        return str(made["commit"]["sha"])

    def open_pull(self, branch: str, message: str) -> tuple[int, str]:
        """Open a pull request of one commit; return its number and its head."""
        head = self.commit(message, on=branch)
        made = {"head": branch, "base": "main", "title": f"Of {branch}"}
        return int(self.forge.post(f"{self.path}/pulls", made)["number"]), head

    def merge(self, number: int) -> bool:
        """Try to merge once the forge knows whether there are conflicts; return whether it did."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.forge.get(f"{self.path}/pulls/{number}")["mergeable"]:
            assert time.monotonic() < deadline, "the forge never looked for conflicts"
            time.sleep(0.1)
        answer = self.forge.owner.post(f"{self.path}/pulls/{number}/merge", json={"Do": "merge"})
        assert answer.status_code in {httpx.codes.OK, httpx.codes.METHOD_NOT_ALLOWED}, answer.text
        return answer.is_success

    @contextmanager
    def guarded(self, contexts: Sequence[str]) -> Iterator[None]:
        """Let nothing be merged into the default branch without these statuses."""
        rule = {"rule_name": "main", "enable_push": True, "enable_status_check": True}
        rules = f"{self.path}/branch_protections"
        self.forge.post(rules, {**rule, "status_check_contexts": list(contexts)})
        yield
        self.forge.owner.delete(f"{rules}/main").raise_for_status()

    @contextmanager
    def telling(self, door: str) -> Iterator[None]:
        """Have the forge send its webhooks to a service, signed with the secret of the tests."""
        config = {"url": f"{door}/hooks/github", "content_type": "json", "secret": SECRET}
        hook = {"type": "gitea", "active": True, "config": config, "events": list(_EVENTS)}
        made = self.forge.post(f"{self.path}/hooks", hook)
        yield
        self.forge.owner.delete(f"{self.path}/hooks/{made['id']}").raise_for_status()

    def statuses(self, sha: str) -> list[tuple[str, str]]:
        """Return the states and descriptions that a commit has had, oldest first."""
        found = self.forge.get(f"{self.path}/commits/{sha}/statuses?limit=50&sort=highestindex")
        assert {one["creator"]["login"] for one in found} <= {MACHINE}
        return [(one["status"], one["description"]) for one in found]

    def comments(self, number: int) -> list[Any]:
        """Return the comments on an issue or a pull request, oldest first."""
        found: list[Any] = self.forge.get(f"{self.path}/issues/{number}/comments")
        return found


def main() -> int:
    """Build it; print where it is, or why it cannot be and return 1."""
    try:
        print(program())
    except ForgeError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

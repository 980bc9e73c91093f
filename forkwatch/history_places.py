"""Where histories are kept: a folder, or a branch of the fork's own repository.

Files are known by their names in the place. `update` reads some, asks what they become, and writes
all of it or nothing, again from the start when somebody else was quicker. What is in the files is
not known here.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from forkwatch.errors import DoorError
from forkwatch.history_text import FILE_BYTES_MAX
from results.atomic import write_atomically
from runner import locks, shell

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeAlias

    #: Files as they are in, files that become different out.
    Change: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]

#: Of one operation of git on a branch of a few megabytes.
GIT_TIMEOUT_S: Final = 300
#: Each attempt that fails means that somebody else's came through.
ATTEMPTS_MAX: Final = 10
PAUSE_S: Final = 0.2
#: A push that fails where nothing has moved is refused, or met another that was not through yet.
REFUSALS_MAX: Final = 3
#: `git ls-remote --exit-code` where no reference has the name.
_NO_SUCH_REFERENCE: Final = 2
_WHO: Final = ("-c", "user.name=forkwatch", "-c", "user.email=forkwatch@localhost.invalid")


class PlaceError(DoorError):
    """A history cannot be read or written where it is kept."""


class Place(Protocol):
    """Keeps files by name."""

    def read(self, names: Collection[str]) -> dict[str, str]:
        """Return those of the files that there are."""

    def update(self, names: Collection[str], change: Change, *, message: str) -> bool:
        """Write what `change` makes of the files, and return whether that was anything."""


@dataclass(frozen=True, kw_only=True)
class FolderPlace:
    """A folder; it may be a mounted bucket, if one writer at a time is made sure of elsewhere."""

    folder: Path

    def read(self, names: Collection[str]) -> dict[str, str]:
        """Return those of the files that there are.

        Raises:
            PlaceError: A file is too large, or cannot be read.
        """
        texts = {name: _text_of(self.folder / name) for name in names}
        return {name: text for name, text in texts.items() if text is not None}

    def update(self, names: Collection[str], change: Change, *, message: str) -> bool:
        """Write what `change` makes of the files; the lock keeps others on this machine out.

        Raises:
            PlaceError: The folder cannot be read or written.
        """
        del message
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with locks.exclusive(self.folder / ".lock"):
                files = change(self.read(names))
                for name, text in files.items():
                    path = self.folder / name
                    path.parent.mkdir(exist_ok=True)
                    write_atomically(path, text)
        except OSError as error:
            raise PlaceError(f"{self.folder} cannot be written: {error}") from error
        return bool(files)


@dataclass(frozen=True, kw_only=True)
class BranchPlace:
    """A branch with nothing but the history on it, pushed to a remote of the fork.

    No working tree is touched and no branch of the checkout moves: objects are written into the
    repository and pushed by their hash, so that a checkout in use, a bare one and a partial one all
    serve.
    """

    repository: Path
    branch: str
    #: A name or address as git takes it; `.` is the repository itself.
    remote: str = "origin"

    def read(self, names: Collection[str]) -> dict[str, str]:
        """Return those of the files that there are on the remote's branch.

        Raises:
            PlaceError: The remote cannot be reached, or the branch cannot have that name.
        """
        tip = self._tip()
        return {} if tip is None else self._files(tip, names)

    def update(self, names: Collection[str], change: Change, *, message: str) -> bool:
        """Push what `change` makes of the files, as one commit on top of what is there.

        Raises:
            PlaceError: The remote cannot be reached, or does not take the push.
        """
        refusals = 0
        for attempt in range(ATTEMPTS_MAX):
            tip = self._tip()
            files = change({} if tip is None else self._files(tip, names))
            if not files:
                return False
            new = self._commit(tip, files, message)
            pushed = self._git("push", "--quiet", "--", self.remote, f"{new}:{self._reference}")
            if pushed.ok:
                return True
            refusals = refusals + 1 if self._tip() == tip else 0
            if refusals == REFUSALS_MAX:
                raise PlaceError(
                    f"{self.branch} cannot be pushed to {self.remote}: {_last_line(pushed)}"
                )
            time.sleep(PAUSE_S * (attempt + 1))
        raise PlaceError(
            f"others pushed to {self.branch} {ATTEMPTS_MAX} times meanwhile; run this again"
        )

    @property
    def _reference(self) -> str:
        return f"refs/heads/{self.branch}"

    def _tip(self) -> str | None:
        """Fetch the branch and return its newest commit, or None where there is no such branch."""
        self._check_names()
        mine = f"refs/forkwatch/{self.branch}"
        fetched = self._git(
            *("fetch", "--quiet", "--no-tags", "--"), self.remote, f"+{self._reference}:{mine}"
        )
        if fetched.ok:
            return self._said("rev-parse", "--verify", mine)
        listed = self._git("ls-remote", "--exit-code", "--", self.remote, self._reference)
        if listed.returncode == _NO_SUCH_REFERENCE:
            return None
        raise PlaceError(
            f"{self.branch} cannot be fetched from {self.remote}: {_last_line(fetched)}"
        )

    def _check_names(self) -> None:
        if self.remote.startswith("-"):
            raise PlaceError(f"{self.remote!r} is not a remote")
        well_formed = self._git("check-ref-format", self._reference).ok
        if self.branch.startswith("-") or not well_formed:
            raise PlaceError(f"{self.branch!r} cannot be the name of a branch")

    def _files(self, tip: str, names: Collection[str]) -> dict[str, str]:
        if not names:
            return {}
        there = self._said("ls-tree", "-r", "-z", "--name-only", tip, "--", *sorted(names))
        return {
            name: self._git_ok("cat-file", "blob", f"{tip}:{name}").stdout
            for name in there.split("\0")
            if name
        }

    def _commit(self, tip: str | None, files: Mapping[str, str], message: str) -> str:
        """Write a commit that has these files in the place of those of the tip; return its hash."""
        with tempfile.TemporaryDirectory(prefix="forkwatch-") as scratch:
            index = Path(scratch) / "index"
            if tip is not None:
                self._said("read-tree", tip, index=index)
            for number, (name, text) in enumerate(files.items()):
                path = Path(scratch) / str(number)
                path.write_text(text, encoding="utf-8")
                blob = self._said("hash-object", "-w", "--no-filters", "--", str(path))
                entry = f"100644,{blob},{name}"
                self._said("update-index", "--add", "--cacheinfo", entry, index=index)
            # A partial clone need not have what nobody looked at.
            tree = self._said("write-tree", "--missing-ok", index=index)
        parents = () if tip is None else ("-p", tip)
        return self._said(*_WHO, "commit-tree", tree, *parents, "-m", message)

    def _said(self, *words: str, index: Path | None = None) -> str:
        return self._git_ok(*words, index=index).stdout.strip()

    def _git_ok(self, *words: str, index: Path | None = None) -> shell.Completed:
        done = self._git(*words, index=index)
        if not done.ok:
            verb = next(word for word in words if word not in _WHO)
            raise PlaceError(f"git {verb} failed in {self.repository}: {_last_line(done)}")
        return done

    def _git(self, *words: str, index: Path | None = None) -> shell.Completed:
        """Run git without the repository's hooks, and without a question to a person."""
        program = shell.require("git", package="git")
        settings = ["GIT_TERMINAL_PROMPT=0", "LC_ALL=C"]
        if index is not None:
            settings.append(f"GIT_INDEX_FILE={index}")
        where = ["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null"]
        return shell.run(
            ["env", *settings, program, *where, "-C", str(self.repository), *words],
            timeout_s=GIT_TIMEOUT_S,
        )


def _text_of(path: Path) -> str | None:
    """Return what is in a file, or None where there is none."""
    try:
        size = path.stat().st_size
        text = path.read_text(encoding="utf-8") if size <= FILE_BYTES_MAX else ""
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise PlaceError(f"{path} cannot be read: {error}") from error
    if size > FILE_BYTES_MAX:
        raise PlaceError(f"{path} has {size} bytes; a history has at most {FILE_BYTES_MAX}")
    return text


def _last_line(done: shell.Completed) -> str:
    """Return what git says at the end, which is mostly what was the matter."""
    if done.timed_out:
        return f"it took more than {GIT_TIMEOUT_S} s"
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else "git said nothing"

"""Build: a commit and a build variant in, an installed artifact out.

An artifact is identified by (tree hash, variant, toolchain) and built once: a second request finds
it ready. CMake configures, builds and installs inside the sandbox, with ccache in front of the
compilers. A build that fails raises BuildError with the tail of its log; the caller records that as
an outcome.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ByteSize, TypeAdapter

from results.document import Artifact, Commit, Toolchain
from runner import checkout, leavings, locks, shell
from runner.errors import BuildError
from runner.sandbox import INSIDE, Bind, Sandbox, hand_over, hand_over_top
from workloads.plan import digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runner.settings import Home, RunnerSettings
    from workloads.plan import BuildVariant

MANIFEST: Final = "forkwatch-artifact.json"
#: Part of every artifact's identity: raise it when the way of building changes.
RECIPE: Final = "1"
_LINKER_FLAG: Final = {"mold": "-fuse-ld=mold", "lld": "-fuse-ld=lld", "gold": "-fuse-ld=gold"}
#: A tenth of the usual share where others want the processors too, all of them where not.
_NICENESS: Final = 10
#: Installed, but never part of what a server runs: a change here is no change of the software.
_NOT_RUN: Final = ("include", "man", "mysql-test", "share/doc", "share/info", "share/man")


@dataclass(frozen=True, kw_only=True)
class Installed:
    """An artifact with the folder that holds its installed files."""

    facts: Artifact
    folder: Path


class Builder:
    """Builds commits of one repository, or finds them built."""

    def __init__(
        self,
        *,
        home: Home,
        settings: RunnerSettings,
        repository: Path,
        trusted: bool = True,
        minute_s: float = 60.0,
    ) -> None:
        """Remember where things are.

        Args:
            home: Where artifacts and caches are kept.
            settings: Limits of builds.
            repository: The commits.
            trusted: Whether what these builds put into the compiler cache may reach others. Builds
                of a pull request only read from it.
            minute_s: Seconds in a minute of a build's time limit; tests have shorter ones.
        """
        self._home = home
        self._settings = settings
        self._repository = repository
        self._trusted = trusted
        self._minute_s = minute_s

    def build(self, commit: Commit, variant_name: str, variant: BuildVariant) -> Installed:
        """Return the artifact of `commit`, building it if it is not there yet.

        Raises:
            BuildError: A step failed; carries the step and the tail of the log.
            StageError: The commit could not be checked out.
        """
        toolchain = find_toolchain(variant)
        identity = artifact_id(tree=commit.tree, variant=variant, toolchain=toolchain)
        folder = self._home.folder("artifacts") / identity
        # One process at a time builds an artifact; the second finds it ready.
        with locks.exclusive(self._home.folder("artifacts") / f"{identity}.lock"):
            ready = _read_manifest(folder)
            if ready is not None:
                return Installed(facts=ready.model_copy(update={"cached": True}), folder=folder)
            began = time.monotonic()
            partial = folder.with_suffix(".partial")
            leavings.remove(partial)
            partial.mkdir()
            try:
                self._make(commit, variant, identity, partial)
                leavings.inspect(partial, inside=str(INSIDE / "artifact"))
                facts = Artifact(
                    id=identity,
                    variant=variant_name,
                    tree=commit.tree,
                    toolchain=toolchain,
                    content_hash=content_hash(partial),
                    installed_bytes=_size(partial),
                    build_seconds=round(time.monotonic() - began, 3),
                    cached=False,
                )
                _write_manifest(partial, facts)
                partial.rename(folder)
            finally:
                leavings.remove(partial)
            return Installed(facts=facts, folder=folder)

    def _make(self, commit: Commit, variant: BuildVariant, identity: str, into: Path) -> None:
        """Check out, configure, build and install."""
        source = self._home.folder("worktrees") / identity
        build = self._home.folder("builds") / identity
        leavings.remove(build)
        build.mkdir()
        log = self._home.folder("logs") / f"build-{identity}.log"
        log.unlink(missing_ok=True)
        try:
            # A killed runner's worktree, which git itself could fail to remove.
            leavings.remove(source)
            with checkout.worktree(self._repository, commit, source):
                for folder in (source, build, into):
                    hand_over(folder)
                try:
                    self._run_stages(self._sandbox(source, build, into), variant, log)
                    _require_server(into, variant, log)
                finally:
                    leavings.remove(source)
        finally:
            leavings.remove(build)

    def _sandbox(self, source: Path, build: Path, into: Path) -> Sandbox:
        ccache = self._home.folder("ccache")
        if self._trusted:
            hand_over_top(ccache)
        environment = {
            "CCACHE_DIR": str(INSIDE / "ccache"),
            "CCACHE_MAXSIZE": self._settings.ccache_size,
        }
        if not self._trusted:
            environment |= {"CCACHE_READONLY": "1", "CCACHE_TEMPDIR": "/tmp/ccache"}  # noqa: S108  inside
        return Sandbox(
            binds=(
                Bind(host=source, inside="source", writable=True),
                Bind(host=build, inside="build", writable=True),
                Bind(host=into, inside="artifact", writable=True),
                Bind(host=ccache, inside="ccache", writable=self._trusted),
            ),
            environment=environment,
            limits=self._settings.sandbox_limits(),
            niceness=_NICENESS,
            counts_all=True,
            ceilings={ccache: self._ccache_ceiling()} if self._trusted else {},
        )

    def _ccache_ceiling(self) -> int:
        """Return what the compiler cache may hold; ccache itself keeps to its size only roughly."""
        text = self._settings.ccache_size
        # ccache writes 20Gi where others write 20GiB, and 0 for a cache without a limit.
        size = TypeAdapter(ByteSize).validate_python(f"{text}B" if text.endswith("i") else text)
        return 2 * int(size) or 1 << 62

    def _run_stages(self, sandbox: Sandbox, variant: BuildVariant, log: Path) -> None:
        jobs = self._settings.build_jobs or os.cpu_count() or 1
        deadline = time.monotonic() + variant.build_minutes_max * self._minute_s
        for stage, words in (
            ("configure", _configure(variant)),
            ("build", _build(variant, jobs)),
            *[("install", words) for words in _installs(variant)],
        ):
            left = max(0.1, deadline - time.monotonic())
            done = sandbox.run(words, timeout_s=left, log=log)
            if not done.ok:
                for folder, ceiling in sandbox.ceilings.items():
                    # What is in there is of no use to anybody, and would end the next build too.
                    if done.stopped_by and leavings.size(folder).bytes > ceiling:
                        leavings.remove(folder)
                raise BuildError(
                    stage, _why(stage, done, variant, shell.tail(log)), shell.tail(log)
                )


def _require_server(into: Path, variant: BuildVariant, log: Path) -> None:
    """Raise BuildError unless the server program is a file of the artifact."""
    server = into / variant.server
    if not (server.is_file() and server.resolve().is_relative_to(into.resolve())):
        raise BuildError("install", f"the build installed no {variant.server}", shell.tail(log))


#: What programs say when a limit that the kernel keeps itself has stopped them.
_SIGNS: Final = {
    "File size limit exceeded": "FORKWATCH_SANDBOX_FILE_SIZE",
    "File too large": "FORKWATCH_SANDBOX_FILE_SIZE",
    "No space left on device": "FORKWATCH_SANDBOX_TMP_SIZE, or make room on the disk",
    "Too many open files": "FORKWATCH_SANDBOX_OPEN_FILES",
    "Resource temporarily unavailable": "FORKWATCH_SANDBOX_PROCESSES",
}


def _why(stage: str, done: shell.Completed, variant: BuildVariant, tail: str) -> str:
    if done.timed_out:
        return (
            f"{stage} was not done within {variant.build_minutes_max} minutes; "
            "if it needs more, raise build_minutes_max of the build variant"
        )
    if done.stopped_by:
        return f"{stage} was ended: {done.stopped_by}"
    for sign, setting in _SIGNS.items():
        if sign in tail:
            return f"{stage} failed: {sign}; if it needs more, raise {setting}"
    return f"{stage} failed with status {done.returncode}"


def find_toolchain(variant: BuildVariant) -> Toolchain:
    """Return what would build `variant` on this machine.

    Raises:
        HostError: A compiler or tool is not installed.
        BuildError: A compiler does not tell its version.
    """
    shell.require("ninja", package="ninja-build")
    shell.require("ccache", package="ccache")
    linker = "ld" if variant.linker == "default" else _LINKER_PROGRAM[variant.linker]
    versions = {
        "c_compiler": _version(variant.c_compiler, package="gcc"),
        "cxx_compiler": _version(variant.cxx_compiler, package="g++"),
        "cmake": _version("cmake", package="cmake"),
        "linker": _version(linker, package=variant.linker),
    }
    text = "\n".join(f"{name}={value}" for name, value in sorted(versions.items()))
    return Toolchain(**versions, digest=hashlib.sha256(text.encode()).hexdigest()[:16])


_LINKER_PROGRAM: Final = {"mold": "mold", "lld": "ld.lld", "gold": "ld.gold"}


def _version(program: str, *, package: str) -> str:
    done = shell.run([shell.require(program, package=package), "--version"], timeout_s=30)
    first = done.stdout.strip().splitlines()
    if not done.ok or not first:
        raise BuildError("configure", f"{program} --version failed", done.stderr)
    return first[0][:200]


def artifact_id(*, tree: str, variant: BuildVariant, toolchain: Toolchain) -> str:
    """Return the identity of an artifact: 32 hex digits."""
    text = "\x1f".join((RECIPE, tree, digest(variant), toolchain.digest))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def content_hash(folder: Path) -> str:
    """Return a digest over every installed file that a running server may read.

    Documentation, headers, test suites and files at the top of the prefix (README, COPYING) are
    left out: they cannot change how the server runs.
    """
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        name = relative.as_posix()
        if len(relative.parts) == 1 and not path.is_dir():
            continue
        if any(name == skip or name.startswith(f"{skip}/") for skip in _NOT_RUN):
            continue
        if path.is_symlink():
            total.update(f"{name}\0link\0{path.readlink()}\0".encode())
        elif path.is_file():
            with path.open("rb") as file:
                part = hashlib.file_digest(file, "sha256").hexdigest()
            executable = bool(path.stat().st_mode & 0o111)
            total.update(f"{name}\0{executable}\0{part}\0".encode())
    return total.hexdigest()


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _write_manifest(folder: Path, facts: Artifact) -> None:
    """Write what the artifact is, whatever the build has put in that place."""
    path = folder / MANIFEST
    if os.path.lexists(path):
        leavings.remove(path)
    # Exclusively: never through a link.
    with path.open("x") as file:
        file.write(facts.model_dump_json(indent=2))


def _read_manifest(folder: Path) -> Artifact | None:
    path = folder / MANIFEST
    return Artifact.model_validate_json(path.read_text()) if path.exists() else None


def _option(name: str, value: str | float | bool) -> str:  # noqa: FBT001  a value, not a flag
    if isinstance(value, bool):
        value = "ON" if value else "OFF"
    return f"-D{name}={value}"


def _configure(variant: BuildVariant) -> list[str]:
    options: dict[str, str | int | float | bool] = {
        "CMAKE_INSTALL_PREFIX": str(INSIDE / "artifact"),
        "CMAKE_C_COMPILER": variant.c_compiler,
        "CMAKE_CXX_COMPILER": variant.cxx_compiler,
        "CMAKE_C_COMPILER_LAUNCHER": "ccache",
        "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
    }
    if variant.c_flags:
        options["CMAKE_C_FLAGS"] = " ".join(variant.c_flags)
    if variant.cxx_flags:
        options["CMAKE_CXX_FLAGS"] = " ".join(variant.cxx_flags)
    if variant.linker != "default":
        for kind in ("EXE", "SHARED", "MODULE"):
            options[f"CMAKE_{kind}_LINKER_FLAGS"] = _LINKER_FLAG[variant.linker]
    options |= variant.cmake_options
    words = [_option(name, value) for name, value in options.items()]
    return ["cmake", "-G", "Ninja", "-S", "source", "-B", "build", *words]


def _build(variant: BuildVariant, jobs: int) -> list[str]:
    return ["cmake", "--build", "build", "--parallel", str(jobs), "--target", *variant.targets]


def _installs(variant: BuildVariant) -> Sequence[list[str]]:
    words = ["cmake", "--install", "build"]
    if not variant.install_components:
        return [words]
    return [[*words, "--component", name] for name in variant.install_components]

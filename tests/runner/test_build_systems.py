"""Build systems: lists of commands, built for real by make in the sandbox."""

from __future__ import annotations

import pytest

from runner import checkout
from runner.build import Builder, find_toolchain
from runner.build_systems import recipe_of
from runner.errors import BuildError
from workloads.plan import BuildVariant

#: What configure scripts do: take the compiler and flags from the environment.
CONFIGURE = """\
#!/bin/sh
echo "CC=${CC}" > settings.mk
echo "CFLAGS=${CFLAGS-untouched}" >> settings.mk
echo "PREFIX=${1#--prefix=}" >> settings.mk
"""
MAKEFILE = """\
include settings.mk
all: server
server: launcher.c
\t$(CC) -o server launcher.c
install: server
\tmkdir -p $(PREFIX)/bin
\tcp server $(PREFIX)/bin/server
\tcp settings.mk $(PREFIX)/bin/settings
\tcommand -v gcc > $(PREFIX)/bin/compiler
\tpwd > $(PREFIX)/bin/folder
"""
COMMANDS = (
    ("./configure", "--prefix={prefix}"),
    ("make", "-j{jobs}"),
    ("make", "install"),
    ("sh", "-c", "echo {jobs} {source} ${HOME} > {prefix}/bin/words; touch {build}/scratch"),
)
MAKE = BuildVariant(system="command", commands=COMMANDS, server="bin/server")


@pytest.fixture
def fork(tiny_fork):
    (tiny_fork.folder / "configure").write_text(CONFIGURE)
    (tiny_fork.folder / "configure").chmod(0o755)
    tiny_fork.commit("make", {"Makefile": MAKEFILE})
    return tiny_fork


@pytest.fixture
def build(own_home, settings, fork):
    settings = settings.model_copy(update={"build_jobs": 3})
    builder = Builder(home=own_home, settings=settings, repository=fork.folder)

    def build(variant: BuildVariant = MAKE, revision: str = "HEAD"):
        return builder.build(checkout.resolve(fork.folder, revision), "rel", variant)

    return build


def test_configure_and_make_build_an_artifact_once(build, own_home):
    first = build()

    files = {path.name: path.read_text() for path in first.folder.glob("bin/[!s]*")}
    assert files["words"] == "3 /forkwatch/source /tmp\n"
    assert files["folder"] == "/forkwatch/source\n"
    # Whatever calls the compiler by its name goes through the cache.
    assert "ccache" in files["compiler"]
    assert "CFLAGS=untouched" in (first.folder / "bin" / "settings").read_text()
    assert build().facts.cached
    assert list(own_home.folder("builds").iterdir()) == []
    assert list(own_home.folder("worktrees").iterdir()) == []


def test_flags_compilers_and_linker_reach_configure(build):
    variant = MAKE.model_copy(update={"c_flags": ("-O2", "-DX"), "linker": "mold"})

    settings = (build(variant).folder / "bin" / "settings").read_text()

    assert "CFLAGS=-O2 -DX" in settings
    assert recipe_of(variant, jobs=1).environment["LDFLAGS"] == "-fuse-ld=mold"


def test_a_compiler_without_a_link_gets_the_cache_before_it():
    variant = MAKE.model_copy(update={"c_compiler": "no-such-compiler-12"})

    assert recipe_of(variant, jobs=1).environment["CC"] == "ccache no-such-compiler-12"


def test_a_failed_command_is_named_with_the_end_of_its_log(build, fork, own_home):
    fork.commit("broken", {"launcher.c": "int main(void) { return undeclared; }\n"})

    with pytest.raises(BuildError) as caught:
        build()

    assert caught.value.stage == "build"
    assert str(caught.value) == "build (command 2 of 4: make -j3) failed with status 2"
    assert "undeclared" in caught.value.log_tail
    assert [path.suffix for path in own_home.folder("artifacts").iterdir()] == [".lock"]


def test_a_command_that_is_not_there_says_so(build):
    variant = MAKE.model_copy(update={"commands": (("no-such-tool", "{prefix}"),)})

    with pytest.raises(BuildError, match=r"command 1 of 1: no-such-tool /forkwatch/artifact") as no:
        build(variant)

    assert "No such file or directory" in no.value.log_tail


def test_commands_that_install_no_server_have_failed(build):
    variant = MAKE.model_copy(update={"commands": (("true",),)})

    with pytest.raises(BuildError, match="installed no bin/server"):
        build(variant)


def test_a_server_at_the_top_of_the_prefix_counts_as_content(build, fork):
    variant = BuildVariant(
        system="command",
        commands=(("cp", "launcher.c", "{prefix}/server"),),
        server="server",
    )
    one = build(variant)
    fork.commit("other", fork.launcher("2"))

    assert build(variant).facts.content_hash != one.facts.content_hash


def test_what_is_no_cmake_build_needs_no_cmake_or_ninja(monkeypatch, tmp_path):
    for name in ("gcc", "g++", "ld", "ccache"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} 1.0\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_toolchain(MAKE).cmake == "not installed"

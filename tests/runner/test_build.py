from __future__ import annotations

import pytest

from runner import checkout
from runner.build import Builder, artifact_id, content_hash, find_toolchain
from runner.errors import BuildError, HostError, OperatorError
from workloads.plan import BuildVariant, parse_plan

RELEASE = BuildVariant(server="sbin/mariadbd", cmake_options={"CMAKE_BUILD_TYPE": "Release"})


@pytest.fixture
def build(own_home, settings, tiny_fork):
    builder = Builder(home=own_home, settings=settings, repository=tiny_fork.folder)

    def build(revision: str, variant: BuildVariant = RELEASE):
        return builder.build(checkout.resolve(tiny_fork.folder, revision), "rel", variant)

    return build


def test_the_second_request_builds_nothing(build, tiny_fork, own_home):
    first = build(tiny_fork.first)
    log = next(own_home.folder("logs").iterdir())
    log.unlink()

    second = build(tiny_fork.first)

    assert (first.folder / "sbin" / "mariadbd").exists()
    assert not first.facts.cached
    assert second.facts.cached
    assert second.facts.content_hash == first.facts.content_hash
    assert not log.exists()


def test_a_commit_of_documentation_installs_the_same_content(build, tiny_fork):
    docs = tiny_fork.commit("words", {"README.md": "other words\n"})

    before, after = build(tiny_fork.first), build(docs)

    assert after.facts.id != before.facts.id
    assert after.facts.content_hash == before.facts.content_hash


def test_a_change_of_code_installs_other_content(build, tiny_fork):
    other = tiny_fork.commit("code", tiny_fork.launcher("2"))

    assert build(other).facts.content_hash != build(tiny_fork.first).facts.content_hash


def test_binaries_do_not_tell_where_or_when_they_were_built(build, tiny_fork, own_home):
    # __DATE__, __TIME__ and __FILE__ are what makes equal sources differ.
    stamp = "const char *when = __DATE__ __TIME__ __FILE__;\nint main(void) { return when == 0; }\n"
    sha = tiny_fork.commit("stamped", {"launcher.c": stamp})
    first = build(sha)
    binary = (first.folder / "sbin" / "mariadbd").read_bytes()

    assert str(own_home.root).encode() not in binary
    assert b"/forkwatch/source/launcher.c" in binary
    assert b"Sep 13 2020" in binary


def test_a_failed_build_says_why_and_leaves_nothing(build, tiny_fork, own_home):
    broken = tiny_fork.commit("broken", {"launcher.c": "int main(void) { return undeclared; }\n"})

    with pytest.raises(BuildError) as caught:
        build(broken)

    assert caught.value.stage == "build"
    assert "undeclared" in caught.value.log_tail
    assert [path.suffix for path in own_home.folder("artifacts").iterdir()] == [".lock"]
    assert list(own_home.folder("worktrees").iterdir()) == []
    assert list(own_home.folder("builds").iterdir()) == []


def test_a_build_that_installs_no_server_is_a_failed_one(build, tiny_fork):
    with pytest.raises(BuildError, match="installed no bin/mysqld"):
        build(tiny_fork.first, RELEASE.model_copy(update={"server": "bin/mysqld"}))


def test_a_build_cannot_reach_the_history_or_the_network(build, tiny_fork):
    lists = tiny_fork.folder / "CMakeLists.txt"
    probe = (
        "execute_process(COMMAND git log RESULT_VARIABLE found OUTPUT_QUIET ERROR_QUIET)\n"
        "if(found EQUAL 0)\n  message(FATAL_ERROR can-see-history)\nendif()\n"
    )
    sha = tiny_fork.commit("nosy", {"CMakeLists.txt": lists.read_text() + probe})

    assert build(sha).facts.content_hash


def test_variant_and_tree_and_toolchain_make_the_identity():
    toolchain = find_toolchain(RELEASE)
    other = RELEASE.model_copy(update={"c_flags": ("-O3",)})
    ids = {
        artifact_id(tree="1" * 40, variant=RELEASE, toolchain=toolchain),
        artifact_id(tree="2" * 40, variant=RELEASE, toolchain=toolchain),
        artifact_id(tree="1" * 40, variant=other, toolchain=toolchain),
        artifact_id(
            tree="1" * 40,
            variant=RELEASE,
            toolchain=toolchain.model_copy(update={"digest": "another"}),
        ),
    }

    assert len(ids) == 4


def test_flags_and_options_reach_the_compiler(build, tiny_fork):
    source = "#ifndef FORK_OPTION\n#error no option\n#endif\nint main(void) { return FORK_FLAG; }\n"
    lists = (tiny_fork.folder / "CMakeLists.txt").read_text()
    lists += "if(WITH_OPTION)\n  add_compile_definitions(FORK_OPTION)\nendif()\n"
    # Definitions have to come before the target that uses them.
    head, target = lists.split("add_executable", 1)
    option = "if(WITH_OPTION)\n  add_compile_definitions(FORK_OPTION)\nendif()\n"
    sha = tiny_fork.commit(
        "options", {"launcher.c": source, "CMakeLists.txt": f"{head}{option}add_executable{target}"}
    )
    variant = BuildVariant(
        server="sbin/mariadbd",
        cmake_options={"WITH_OPTION": True},
        c_flags=("-DFORK_FLAG=0",),
        linker="mold",
    )

    assert build(sha, variant).facts.installed_bytes > 0


def test_an_unknown_compiler_names_what_to_install():
    variant = parse_plan(
        '[fork]\nname="x"\nengine="mariadb"\n[builds.rel]\nc_compiler="gcc-nothing"\n'
        '[suites.commit]\nworkloads=["scan"]\n'
    ).builds["rel"]

    with pytest.raises(HostError, match="gcc-nothing is not installed"):
        find_toolchain(variant)


def test_an_unknown_revision_is_a_clear_error(tiny_fork):
    with pytest.raises(OperatorError, match="no commit 'nothing-such'"):
        checkout.resolve(tiny_fork.folder, "nothing-such")
    with pytest.raises(OperatorError, match="not a revision"):
        checkout.resolve(tiny_fork.folder, "--output=/etc/passwd")


def test_links_and_modes_count_as_content(tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "server"
    program.write_text("x")
    plain = content_hash(tmp_path)
    program.chmod(0o755)
    executable = content_hash(tmp_path)
    (tmp_path / "bin" / "link").symlink_to("server")
    linked = content_hash(tmp_path)
    (tmp_path / "README").write_text("at the top, not run")

    assert len({plain, executable, linked}) == 3
    assert content_hash(tmp_path) == linked

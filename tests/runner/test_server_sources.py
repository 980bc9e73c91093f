"""Which sources a built server is not made of, asked of CMake and Ninja in the sandbox."""

from __future__ import annotations

import pytest

from runner import checkout, server_sources
from runner.build import Builder
from runner.sides import Sides
from workloads.plan import BuildVariant, parse_plan

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(two_programs LANGUAGES C)
add_executable(lexer_maker lexer_maker.c)
add_custom_command(OUTPUT lexer.c
  COMMAND lexer_maker ${CMAKE_SOURCE_DIR}/lexer.l lexer.c DEPENDS lexer.l lexer_maker)
add_library(engine STATIC engine/row.c)
target_include_directories(engine PUBLIC include)
add_executable(mariadbd server.c ${CMAKE_CURRENT_BINARY_DIR}/lexer.c)
target_link_libraries(mariadbd engine)
add_library(auth MODULE plugin/auth.c)
add_executable(client client/main.c)
target_include_directories(client PRIVATE include)
add_executable(row_test engine/row_test.c)
target_link_libraries(row_test engine)
install(TARGETS mariadbd RUNTIME DESTINATION sbin)
install(TARGETS client RUNTIME DESTINATION bin)
install(TARGETS auth LIBRARY DESTINATION lib/plugin)
"""
CMAKE_USING_IT = CMAKE.replace("STATIC engine/row.c", "STATIC engine/row.c engine/unused.c")
MAIN = "int main(void) { return 0; }\n"
FILES = {
    "CMakeLists.txt": CMAKE,
    "lexer.l": "rules\n",
    "lexer_maker.c": (
        '#include <stdio.h>\nint main(int n, char **v) { FILE *f = fopen(v[n - 1], "w");'
        ' fputs("int lexed;\\n", f); return fclose(f); }\n'
    ),
    "server.c": '#include "engine/row.h"\nint main(void) { return row(); }\n',
    "include/engine/row.h": '#include "engine/row_inl.ic"\nint row(void);\n',
    "include/engine/row_inl.ic": "static inline int one(void) { return 1; }\n",
    "engine/row.c": '#include "engine/row.h"\nint row(void) { return one() - 1; }\n',
    "engine/row_test.c": MAIN,
    "engine/unused.c": "int nobody_compiles_this;\n",
    "plugin/auth.c": "int auth;\n",
    "client/main.c": '#include "client/options.h"\n' + MAIN,
    "include/client/options.h": "\n",
    "share/errors.txt": "data\n",
}
VARIANT = BuildVariant(server="sbin/mariadbd")


@pytest.fixture
def build(own_home, settings, tiny_fork):
    builder = Builder(home=own_home, settings=settings, repository=tiny_fork.folder)

    def build(variant: BuildVariant = VARIANT, *, again: bool = False, **changed: str):
        for name, text in (FILES | changed).items():
            path = tiny_fork.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if not again:
            tiny_fork.commit("sources", {})
        return builder.build(checkout.resolve(tiny_fork.folder, "HEAD"), "rel", variant)

    return build


def test_sources_of_other_programs_are_told_and_those_of_the_server_are_not(build):
    installed = build()

    # `launcher.c` is the tiny fork's own, and no program is made of it here. The maker of a part of
    # the server, what it reads, headers and a library that is installed are all inside.
    assert server_sources.read(installed.folder) == {
        "client/main.c",
        "engine/row_test.c",
        "engine/unused.c",
        "include/client/options.h",
        "launcher.c",
    }


def test_the_list_is_no_part_of_the_content_and_the_artifact_stays_whole(build):
    first = build()
    listed = server_sources.read(first.folder)
    second = build(**{"engine/another.c": "int another;\n"})

    assert server_sources.read(second.folder) == listed | {"engine/another.c"}
    assert second.facts.id != first.facts.id
    assert second.facts.content_hash == first.facts.content_hash
    assert build(again=True).facts.cached


def test_links_are_followed_and_a_list_of_the_builds_own_is_not_believed(build, tiny_fork):
    link = tiny_fork.folder / "include" / "engine" / "linked.h"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../real/row_types.h")
    liar = "install(FILES lie.txt DESTINATION . RENAME forkwatch-sources.txt)\n"
    changed = {
        "CMakeLists.txt": CMAKE + liar,
        "lie.txt": "server.c\n",
        "real/row_types.h": "\n",
        "engine/row.c": '#include "engine/linked.h"\nint row(void) { return 0; }\n',
    }

    listed = server_sources.read(build(**changed).folder)

    assert "real/row_types.h" not in listed, "a compiler names the link"
    assert "server.c" not in listed
    assert "client/main.c" in listed


def test_what_is_built_behind_ninjas_back_makes_the_list_unsure(build, caplog):
    caplog.set_level("INFO", logger="forkwatch.build")
    external = (
        "include(ExternalProject)\n"
        "ExternalProject_Add(bundled SOURCE_DIR ${CMAKE_SOURCE_DIR}/bundled\n"
        '  CONFIGURE_COMMAND "" BUILD_COMMAND "" INSTALL_COMMAND "")\n'
        "add_dependencies(mariadbd bundled)\n"
    )

    installed = build(**{"CMakeLists.txt": CMAKE + external, "bundled/zip.c": "int zip;\n"})

    assert server_sources.read(installed.folder) == frozenset()
    assert "an external project is a part of it" in caplog.text


def test_other_build_systems_tell_nothing(build):
    commands = (("sh", "-c", "mkdir -p {prefix}/sbin && cc -o {prefix}/sbin/mariadbd launcher.c"),)
    variant = BuildVariant(system="command", commands=commands, server="sbin/mariadbd")

    assert server_sources.read(build(variant).folder) == frozenset()


def test_what_cannot_be_read_is_no_list(tmp_path):
    assert server_sources.read(tmp_path) == frozenset()
    (tmp_path / server_sources.FILE).write_bytes(b"\xff\xfe")
    assert server_sources.read(tmp_path) == frozenset()


def test_a_pair_tells_what_neither_server_is_made_of_where_that_is_asked(
    build, tiny_fork, own_home, settings
):
    build()
    first = checkout.resolve(tiny_fork.folder, "HEAD").sha
    build(**{"engine/unused.c": "int now_used;\n", "CMakeLists.txt": CMAKE_USING_IT})
    second = checkout.resolve(tiny_fork.folder, "HEAD").sha

    def outside(**chosen):
        order = tiny_fork.order(second, **chosen)
        plan = parse_plan(order.plan)
        builder = Builder.of_job(order, home=own_home, settings=settings, cache=None)
        sides = Sides(order, plan, plan.suite("commit"), builder)
        for side in sides.commits:
            sides.build(side)
        return sides.outside()

    found = outside(baseline=first, tell_sources=True)

    assert found.names == (
        "client/main.c",
        "engine/row_test.c",
        "include/client/options.h",
        "launcher.c",
    )
    assert found.count == 4
    assert outside(baseline=first) is None
    assert outside(tell_sources=True) is None

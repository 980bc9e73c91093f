"""Prebuilt variants: trees of this host as artifacts, and jobs that build nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from results.document import Outcome
from results.job import JobOrder
from results.slice import SideName
from runner import checkout, prebuilt, shell
from runner.build import Builder
from runner.errors import BuildError, OperatorError
from runner.job import run_job
from runner.servers.engine import ServerSpec
from runner.servers.engines import engine_of
from tests.runner.processes import servers, until
from tests.runner.tiny_fork import PLAN
from workloads.plan import BuildVariant, parse_plan


def a_tree(folder: Path, *, version: str) -> Path:
    """Make an installed tree: a launcher of the system's server, and what nobody runs."""
    program = folder / "sbin" / "mariadbd"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\n# {version}\nexec /usr/sbin/mariadbd "$@"\n')
    program.chmod(0o755)
    os.utime(program, (1_500_000_000, 1_500_000_000))
    (folder / "README").write_text("read me\n")
    (folder / "share" / "doc").mkdir(parents=True)
    (folder / "share" / "doc" / "manual").write_text(version)
    (folder / "lib").mkdir()
    (folder / "lib" / "link").symlink_to("../sbin/mariadbd")
    return folder


def variant_of(folder: Path, **chosen: object) -> BuildVariant:
    facts = {"system": "prebuilt", "prefix": str(folder), "server": "sbin/mariadbd"}
    return BuildVariant.model_validate({**facts, **chosen})


@pytest.fixture
def tree(tmp_path):
    return a_tree(tmp_path / "tree", version="1")


def test_a_tree_is_copied_once_and_stays_when_its_folder_changes(tree, own_home, settings):
    builder = Builder(home=own_home, settings=settings, repository=Path("/nonexistent"))
    variant = variant_of(tree)
    commit = prebuilt.commit_of("my-tree", variant)

    first = builder.build(commit, "my-tree", variant)
    second = builder.build(commit, "my-tree", variant)

    assert (first.facts.cached, second.facts.cached) == (False, True)
    assert first.facts.content_hash == first.facts.tree == commit.sha
    assert first.facts.toolchain == prebuilt.TOOLCHAIN
    assert prebuilt.is_prebuilt(first.facts)
    (tree / "sbin" / "mariadbd").write_text("other")
    program = first.folder / "sbin" / "mariadbd"
    assert program.read_text().startswith("#!/bin/sh\n# 1\n")
    assert program.stat().st_mode & 0o777 == 0o755
    assert (first.folder / "lib" / "link").resolve() == program.resolve()
    other = builder.build(commit, "my-tree", variant)
    assert other.folder != first.folder


def test_equal_trees_are_the_same_candidate_whatever_they_are_called(tree, tmp_path, own_home):
    twin = a_tree(tmp_path / "twin", version="1")
    (twin / "README").write_text("nobody runs this\n")
    (twin / "share" / "doc" / "manual").write_text("nor this\n")
    other = a_tree(tmp_path / "other", version="2")

    one = prebuilt.take(own_home, "one", variant_of(tree))
    two = prebuilt.take(own_home, "two", variant_of(twin))

    assert two.folder == one.folder
    assert (one.facts.variant, two.facts.variant) == ("one", "two")
    assert prebuilt.take(own_home, "other", variant_of(other)).folder != one.folder


def test_the_commit_of_a_tree_says_what_the_tree_says(tree):
    silent = prebuilt.commit_of("my-tree", variant_of(tree))
    (tree / "engine.json").write_text('{"engine": "mariadb", "version": "10.11.5"}')
    told = prebuilt.commit_of("my-tree", variant_of(tree))
    (tree / "engine.json").write_text("[]")
    garbled = prebuilt.commit_of("my-tree", variant_of(tree))

    assert silent.subject == garbled.subject == "prebuilt my-tree: tree"
    assert told.subject == "prebuilt my-tree: mariadb 10.11.5"
    assert silent.sha == silent.tree == told.sha
    assert len(silent.sha) == 64
    assert silent.committed_at.isoformat() == "2017-07-14T02:40:00+00:00"


def test_a_server_at_the_top_of_a_tree_counts_as_content(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "db_bench").write_text("1")
    one = prebuilt.commit_of("x", variant_of(tree, server="db_bench"))
    (tree / "db_bench").write_text("2")

    assert prebuilt.commit_of("x", variant_of(tree, server="db_bench")).sha != one.sha


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (
            {"prefix": "/nonexistent/tree"},
            "build 'x': there is no folder /nonexistent/tree; put an",
        ),
        ({"server": "bin/mysqld"}, "has no bin/mysqld; set its server"),
        ({"loader": "lib64/ld.so"}, "has no lib64/ld.so; set its loader"),
    ],
)
def test_a_tree_that_is_not_as_the_plan_says_is_one_line(tree, own_home, chosen, said):
    variant = variant_of(tree, **chosen)

    with pytest.raises(OperatorError, match=said):
        prebuilt.commit_of("x", variant)
    with pytest.raises(OperatorError, match=said):
        prebuilt.take(own_home, "x", variant)


def test_a_program_that_lies_elsewhere_is_none_of_the_tree(tree):
    (tree / "sbin" / "linked").symlink_to("/usr/sbin/mariadbd")

    with pytest.raises(OperatorError, match="has no sbin/linked"):
        prebuilt.commit_of("x", variant_of(tree, server="sbin/linked"))


def test_a_tree_with_what_no_build_may_install_is_refused(tree, own_home):
    (tree / "etc").symlink_to("/etc")

    with pytest.raises(BuildError, match="etc is a link that leads out of the artifact"):
        prebuilt.take(own_home, "x", variant_of(tree))
    (tree / "etc").unlink()
    os.mkfifo(tree / "lib" / "pipe")
    with pytest.raises(
        BuildError, match="cannot be copied: 'lib/pipe' is a socket, pipe or device"
    ):
        prebuilt.take(own_home, "x", variant_of(tree))
    assert [path.suffix for path in own_home.folder("artifacts").iterdir()] == [".lock", ".lock"]


PLAN_OF_TREES = """\
[fork]
name = "trees"
engine = "mariadb"

[builds.one]
system = "prebuilt"
prefix = "{one}"
server = "sbin/mariadbd"

[builds.two]
system = "prebuilt"
prefix = "{two}"
server = "sbin/mariadbd"

[configs.default.options]
innodb_buffer_pool_size = "64M"
innodb_log_file_size = "16M"

[configs.pages.options]
innodb_buffer_pool_size = "64M"
innodb_log_file_size = "16M"
innodb_page_size = "8k"

[datasets.small]
rows = 2000

[suites.commit]
workloads = ["point-query"]
build = "one"
slices = 1
seconds = 1
warmup_seconds = 0
"""


@pytest.fixture
def do(tmp_path, tree, home, settings, progress):
    """Do a job on two trees, in a folder that is no repository."""
    two = a_tree(tmp_path / "two", version="2")
    text = PLAN_OF_TREES.format(one=tree, two=two)
    builds = parse_plan(text).builds

    def do(**chosen: object):
        facts = {
            "job": f"job-{tmp_path.name}-{len(chosen)}",
            "run": "run-1",
            "repository": tmp_path,
            "plan": text,
            "branch": "main",
            "suite": "commit",
            "host_class": "default",
            "baseline": prebuilt.commit_of("one", builds["one"]).sha,
            "candidate": prebuilt.commit_of("two", builds["two"]).sha,
            "variants": {"baseline": "one", "candidate": "two"},
            "starts": 2,
        }
        order = JobOrder.model_validate({**facts, **chosen})
        folder = home.folder("jobs", order.job)
        return run_job(order, folder, home=home, settings=settings, progress=progress)

    return do


def test_two_trees_are_a_pair_without_a_repository(do, home):
    document = do()

    assert document.outcome is Outcome.MEASURED, document.failure
    assert document.candidate.commit.subject == "prebuilt two: two"
    assert (document.baseline.variant, document.candidate.variant) == ("one", "two")
    assert document.candidate.artifact.content_hash == document.candidate.commit.sha
    assert "MariaDB" in document.candidate.artifact.server_version
    for side in SideName:
        assert len(document.samples("point-query", "throughput_ops_s", side)) == 2
    # Equal formats share one snapshot, and nothing is said about it.
    assert not any("snapshot" in note or "loaded itself" in note for note in document.warnings)
    until(lambda: servers(home.root) == [])


def test_sides_of_different_formats_each_have_their_own_data(do):
    document = do(configs={"candidate": "pages"})

    assert document.outcome is Outcome.MEASURED, document.failure
    assert any(
        "data that it loaded itself (baseline mariadb-" in note for note in document.warnings
    )
    assert document.dataset is not None
    for side in SideName:
        assert len(document.samples("point-query", "throughput_ops_s", side)) == 2


def test_a_tree_against_itself_is_unchanged(do, tree):
    same = prebuilt.commit_of("one", variant_of(tree)).sha

    document = do(candidate=same, variants={"baseline": "one", "candidate": "one"})

    assert document.outcome is Outcome.UNCHANGED


def test_a_tree_that_changed_since_it_was_ordered_is_refused(do):
    with pytest.raises(
        OperatorError, match=r"build .two. is prebuilt and its folder holds .* name it"
    ):
        do(candidate="a" * 64)


def test_a_release_is_compared_with_a_commit(do, tiny_fork, tree):
    text = PLAN_OF_TREES.format(one=tree, two=tree)
    rel = PLAN[PLAN.index("[builds.rel]") : PLAN.index("[configs.")]

    document = do(
        plan=text + rel,
        repository=tiny_fork.folder,
        candidate=tiny_fork.first,
        variants={"candidate": "rel"},
    )

    assert document.outcome is Outcome.MEASURED, document.failure
    assert document.candidate.commit == checkout.resolve(tiny_fork.folder, "HEAD")
    assert prebuilt.is_prebuilt(document.baseline.artifact)
    assert not prebuilt.is_prebuilt(document.candidate.artifact)


def test_a_program_starts_through_the_loader_that_its_tree_brings(tmp_path, home, settings):
    # The system's own server and libraries, in a tree as packages of another system unpack.
    tree = tmp_path / "unpacked"
    loader = Path("/lib64/ld-linux-x86-64.so.2").resolve()
    (tree / "usr" / "sbin").mkdir(parents=True)
    (tree / "usr" / "lib").mkdir()
    shutil.copy(loader, tree / "usr" / "lib" / "ld.so")
    shutil.copy("/usr/sbin/mariadbd", tree / "usr" / "sbin")
    for line in shell.run(["ldd", "/usr/sbin/mariadbd"], timeout_s=30).stdout.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and rest.startswith("/"):
            shutil.copy(rest.split(" (")[0], tree / "usr" / "lib" / name)
    variant = variant_of(
        tree, server="usr/sbin/mariadbd", loader="usr/lib/ld.so", library_paths=["usr/lib"]
    )

    installed = prebuilt.take(home, "unpacked", variant)

    assert prebuilt.commit_of("unpacked", variant).sha == installed.facts.content_hash
    spec = ServerSpec(
        engine="mariadb",
        installed=installed,
        program=variant.server,
        install_db=None,
        options={},
        loader=variant.loader,
        library_paths=variant.library_paths,
    )
    assert "MariaDB" in engine_of("mariadb").version(spec)

"""The fetcher of real engines, without a network: archives, suites, links and plans made here."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.engines import crates, fetch, jars, plans, prefixes, suites
from tests.engines.wanted import WANTED, Jar, NotHadError, Packages, Wanted
from workloads.plan import parse_plan

SOURCES = """\
Types: deb
# where it really comes from
URIs: http://mirror.example.com/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example.com/debian-security
Suites: bookworm-security
Components: main
"""


def test_another_suite_comes_from_the_same_place_with_the_same_keys():
    assert suites.other_suite(SOURCES, "sid").splitlines() == [
        "Types: deb",
        "URIs: http://mirror.example.com/debian",
        "Suites: sid",
        "Components: main",
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg",
    ]
    other = "Types: deb\nURIs: https://mirror.example.com/node_20.x\nSuites: nodistro\n"
    assert suites.other_suite(other, "sid") == ""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("deb http://a.example.com/debian bookworm main", "http://a.example.com/debian sid main"),
        ("deb [signed-by=/k] http://a.example.com/debian bookworm main contrib", "main contrib"),
        ("deb http://a.example.com/debian-security bookworm-security main", ""),
        ("# deb http://a.example.com/debian bookworm main", ""),
        ("deb https://a.example.com/apt cloud-sdk-bookworm main", ""),
    ],
)
def test_another_suite_of_an_old_list(line, found):
    told = suites.other_suite_of_lines(line + "\n", "sid")

    assert told.endswith(f"{found}\n") if found else told == ""
    assert "bookworm" not in told


def test_links_of_an_unpacked_tree_stay_inside(tmp_path):
    tree = tmp_path / "tree"
    (tree / "usr" / "lib").mkdir(parents=True)
    (tree / "usr" / "lib" / "real").write_text("x")
    (tree / "lib").symlink_to("usr/lib")
    links = {
        "absolute": "/usr/lib/real",
        "relative": "../lib/real",
        "winding": "../../lib/real",
        "nowhere": "/usr/lib/none",
        "outside": "/../../../etc/passwd",
        "outside-too": "../../../../../../etc/passwd",
    }
    for name, text in links.items():
        (tree / "usr" / "lib" / name).symlink_to(text)

    for name in links:
        suites.straighten(tree / "usr" / "lib" / name, tree)

    kept = {
        path.name: str(path.readlink())
        for path in (tree / "usr" / "lib").iterdir()
        if path.is_symlink()
    }
    assert kept == {"absolute": "real", "relative": "real", "winding": "real"}


def a_jar(path: Path, members: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as jar:
        for name, content in members.items():
            jar.writestr(name, content)


def a_tar(members: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


JAR = Jar(group="org.example", artifact="engine", version="1.0")


@pytest.fixture
def unpacked(tmp_path):
    """Unpack a jar that is in the cache already."""

    def unpacked(members: dict[str, bytes]) -> Path:
        a_jar(tmp_path / "cache" / "jars" / "engine-1.0.jar", members)
        jars.unpack(JAR, tmp_path / "tree", cache=tmp_path / "cache")
        return tmp_path / "tree"

    return unpacked


def test_a_jar_with_an_archive_for_each_machine_gives_the_one_for_linux(unpacked):
    tree = unpacked(
        {
            "mysql-Mac_OS_X-x86_64.tar.gz": b"not even an archive",
            "mysql-Linux-amd64.tar.xz": a_tar({"top/bin/mysqld": "#!", "top/share/errmsg": "e"}),
        }
    )

    assert (tree / "share" / "errmsg").read_text() == "e"
    assert (tree / "bin" / "mysqld").stat().st_mode & 0o777 == 0o755
    assert not tree.with_suffix(".unpacking").exists()


def test_a_jar_that_is_the_tree_itself_gives_the_part_with_the_server(unpacked):
    tree = unpacked(
        {
            "ch/example/mariadb-11.4.5/linux/bin/mariadbd": b"#!",
            "ch/example/mariadb-11.4.5/linux/scripts/mariadb-install-db": b"#!",
            "META-INF/MANIFEST.MF": b"",
        }
    )

    assert sorted(path.name for path in tree.iterdir()) == ["bin", "scripts"]
    assert os.access(tree / "scripts" / "mariadb-install-db", os.X_OK)


def test_a_jar_without_a_server_is_not_had(unpacked, tmp_path):
    with pytest.raises(NotHadError, match="holds no bin/mysqld"):
        unpacked({"readme": b""})
    assert not (tmp_path / "tree").exists()


def test_an_archive_cannot_write_outside_its_folder(unpacked, tmp_path):
    with pytest.raises(tarfile.TarError):
        unpacked({"x-linux.txz": a_tar({"../../escaped": "x", "bin/postgres": "#!"})})
    assert not (tmp_path / "escaped").exists()


def a_server(folder: Path, name: str, says: str) -> Path:
    program = folder / "bin" / name
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    return folder


def wanted(version: str, engine: str = "mariadb") -> Wanted:
    return Wanted(name="x", engine=engine, version=version, source=JAR)


def test_a_tree_says_what_it_is(tmp_path):
    tree = a_server(tmp_path / "tree", "mysqld", "echo mysqld  Ver 10.2.11-MariaDB for Linux")
    (tree / "scripts").mkdir()
    (tree / "scripts" / "mysql_install_db").write_text("")

    facts = prefixes.describe(wanted("10.2"), tree)

    assert facts == {
        "name": "x",
        "engine": "mariadb",
        "version": "10.2.11",
        "server": "bin/mysqld",
        "install_db": "scripts/mysql_install_db",
        "loader": None,
        "library_paths": [],
    }
    assert prefixes.known(tree) == facts
    assert prefixes.known(tmp_path) is None


@pytest.mark.parametrize(
    ("version", "says", "reason"),
    [
        ("10.2", "echo Ver 10.11.5-MariaDB", "is another version: Ver 10.11.5-MariaDB"),
        ("1.5", "echo Ver 11.5.2", "is another version"),
        ("10.2", "echo libaio.so.1: cannot open >&2; exit 127", "does not start here: libaio.so.1"),
    ],
)
def test_a_server_of_no_use_is_not_had(tmp_path, version, says, reason):
    tree = a_server(tmp_path / "tree", "mariadbd", says)

    with pytest.raises(NotHadError, match=reason):
        prefixes.describe(wanted(version), tree)
    assert not (tree / "engine.json").exists()


def test_what_cannot_be_had_is_said_and_the_rest_goes_on(tmp_path, monkeypatch, capsys):
    def unpack(jar: Jar, into: Path, *, cache: Path) -> None:
        if jar.version != "5.7.22-1":
            raise NotHadError(f"Maven has no {jar.coordinates}")
        a_server(into, "mysqld", "echo Ver 5.7.22")

    monkeypatch.setattr(jars, "unpack", unpack)

    status = fetch.main(["my5719", "my5722", "--into", str(tmp_path / "engines")])

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[0].startswith(
        "my5719           not had: Maven has no io.airlift:testing-mysql-ser"
    )
    assert lines[1] == "my5722           mysql 5.7.22, fetched"
    assert lines[2].endswith("engines/mysql.toml: my5722")
    assert not (tmp_path / "engines" / "my5719").exists()
    assert fetch.main(["my5722", "--into", str(tmp_path / "engines")]) == 0
    assert "there already" in capsys.readouterr().out


def test_nothing_at_all_is_a_failure(tmp_path, monkeypatch, capsys):
    def unpack(packages: Packages, into: Path, *, cache: Path) -> None:
        raise NotHadError("apt: no such suite")

    monkeypatch.setattr(suites, "unpack", unpack)

    assert fetch.main(["my97", "--into", str(tmp_path / "engines")]) == 1
    assert "not had: apt: no such suite" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        fetch.main(["my9999"])
    assert left.value.code == 2


@pytest.mark.parametrize("engine", ["mysql", "mariadb", "postgres"])
def test_a_plan_has_a_variant_and_a_cell_for_each_version(engine, tmp_path):
    facts = {"install_db": None, "loader": None, "library_paths": [], "server": "bin/x"}
    packed = {**facts, "loader": "usr/lib64/ld.so", "library_paths": ["usr/lib"]}
    trees = {
        one.name: (
            tmp_path / one.name,
            {**(packed if isinstance(one.source, Packages) else facts), "version": one.version},
        )
        for one in WANTED
        if one.engine == engine
    }

    plan = parse_plan(plans.plan_text(engine, trees))

    assert plan.matrix("versions").builds == tuple(trees)
    if engine == "mysql":
        assert [len(plan.matrix("switches").builds), len(plan.matrix("switches").configs)] == [1, 4]
    assert set(plan.builds) == set(trees)
    assert all(variant.is_prebuilt for variant in plan.builds.values())
    loaders = {name for name, variant in plan.builds.items() if variant.loader}
    assert loaders == {one.name for one in WANTED if isinstance(one.source, Packages)} & set(trees)


def test_the_plan_of_rocksdb_is_one():
    plan = parse_plan(crates.plan_text())

    assert plan.matrix("lto").builds == ("rel", "rel_lto")
    assert plan.builds["rel"].server == "bin/db_bench"


def test_a_release_becomes_a_commit_once(tmp_path, monkeypatch):
    source = tmp_path / "crate" / "rocksdb"
    source.mkdir(parents=True)
    (source / "CMakeLists.txt").write_text("project(rocksdb)\n")
    (source / ".gitignore").write_text("kept\n")
    (source / "kept").write_text("")
    monkeypatch.setattr(crates, "_source", lambda release: source)
    repository = tmp_path / "rocksdb"

    for _ in range(2):
        crates.commit(crates.Release(version="8.1.1", crate="0.11.0"), repository)
    (source / "kept").unlink()
    crates.commit(crates.Release(version="8.6.7", crate="0.13.0"), repository)

    tags = crates.checkout.git(repository, "tag").stdout.split()
    assert tags == ["v8.1.1", "v8.6.7"]
    log = crates.checkout.git(repository, "log", "--format=%s").stdout.splitlines()
    assert log == ["RocksDB 8.6.7", "RocksDB 8.1.1"]
    files = crates.checkout.git(repository, "ls-tree", "--name-only", "v8.1.1").stdout.split()
    assert files == [".gitignore", "CMakeLists.txt", "forkwatch.toml", "kept"]
    assert not (repository / "kept").exists()


def test_a_crate_that_carries_another_release_is_noticed(tmp_path):
    header = tmp_path / "include" / "rocksdb" / "version.h"
    header.parent.mkdir(parents=True)
    lines = [
        f"#define ROCKSDB_{part} {n}" for part, n in (("MAJOR", 8), ("MINOR", 6), ("PATCH", 7))
    ]
    header.write_text("\n".join(lines))

    assert crates.version_of(tmp_path) == "8.6.7"
    assert crates.version_of(tmp_path / "nothing") == ""


def test_facts_are_json(tmp_path):
    tree = a_server(tmp_path / "tree", "postgres", "echo postgres '(PostgreSQL)' 17.11")

    prefixes.describe(wanted("17.11", "postgres"), tree)

    assert json.loads((tree / "engine.json").read_text())["version"] == "17.11"


def test_a_tree_of_packages_has_its_programs_below_usr(tmp_path):
    tree = tmp_path / "tree"
    (tree / "usr" / "sbin").mkdir(parents=True)
    (tree / "sbin").symlink_to("usr/sbin")
    program = tree / "usr" / "sbin" / "mysqld"
    program.write_text('#!/bin/sh\necho "Ver 9.7.4-2 for Linux"\n')
    program.chmod(0o755)
    # What lies beside a server is found from where it is said to be.
    facts = prefixes.describe(wanted("9.7", "mysql"), tree)

    assert (facts["server"], facts["version"]) == ("usr/sbin/mysqld", "9.7.4")

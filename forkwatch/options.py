"""How a first plan builds each engine: options of CMake per server family, or a list of commands.

Each option names the file or folder of the source tree that makes it meaningful, and why it is
set. Sources: what distributions and the Small Datum builds use, and what needs the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class CMakeOption:
    """One option with the reason for its value."""

    name: str
    value: str | bool
    #: The option is set where this file or folder exists.
    sign: str
    reason: str


_NOT_MEASURED: Final = "not measured, so not built"


def _plugin(name: str, sign: str) -> CMakeOption:
    return CMakeOption(name=f"PLUGIN_{name}", value="NO", sign=sign, reason=_NOT_MEASURED)


def _off(name: str, sign: str) -> CMakeOption:
    return CMakeOption(name=name, value=False, sign=sign, reason=_NOT_MEASURED)


def _system(name: str, sign: str, package: str) -> CMakeOption:
    return CMakeOption(
        name=name,
        value="system",
        sign=sign,
        reason=f"builds have no network; needs the package {package}",
    )


_NO_TEST_SUITE: Final = CMakeOption(
    name="INSTALL_MYSQLTESTDIR",
    value="",
    sign="mysql-test",
    reason="an artifact need not carry the test suite",
)

MARIADB_OPTIONS: Final = (
    CMakeOption(
        name="UPDATE_SUBMODULES",
        value=False,
        sign="cmake/submodules.cmake",
        reason="builds have neither network nor history; submodules have to be in the commit",
    ),
    _NO_TEST_SUITE,
    _off("WITH_UNIT_TESTS", "unittest"),
    _off("WITH_WSREP", "cmake/wsrep.cmake"),
    _off("WITH_MARIABACKUP", "extra/mariabackup"),
    _off("WITH_EMBEDDED_SERVER", "libmysqld"),
    CMakeOption(
        name="WITHOUT_DYNAMIC_PLUGINS",
        value=True,
        sign="cmake/plugin.cmake",
        reason="one server program, no plugins beside it",
    ),
    _system("WITH_LIBFMT", "cmake/libfmt.cmake", "libfmt-dev"),
    _system("WITH_PCRE", "cmake/pcre.cmake", "libpcre2-dev"),
    _system("WITH_SSL", "cmake/ssl.cmake", "libssl-dev"),
    _system("WITH_ZLIB", "cmake/zlib.cmake", "zlib1g-dev"),
    _plugin("ARCHIVE", "storage/archive"),
    _plugin("AUTH_GSSAPI", "plugin/auth_gssapi"),
    _plugin("BLACKHOLE", "storage/blackhole"),
    _plugin("COLUMNSTORE", "storage/columnstore"),
    _plugin("CONNECT", "storage/connect"),
    _plugin("EXAMPLE", "storage/example"),
    _plugin("FEDERATED", "storage/federated"),
    _plugin("FEDERATEDX", "storage/federatedx"),
    _plugin("HANDLERSOCKET", "plugin/handler_socket"),
    _plugin("MROONGA", "storage/mroonga"),
    _plugin("OQGRAPH", "storage/oqgraph"),
    _plugin("ROCKSDB", "storage/rocksdb"),
    _plugin("S3", "storage/maria/ha_s3.cc"),
    _plugin("SPHINX", "storage/sphinx"),
    _plugin("SPIDER", "storage/spider"),
    _plugin("TOKUDB", "storage/tokudb"),
)

MYSQL_OPTIONS: Final = (
    CMakeOption(
        name="MYSQL_MAINTAINER_MODE",
        value=False,
        sign="cmake/maintainer.cmake",
        reason="a warning is no reason to leave a commit unmeasured",
    ),
    _NO_TEST_SUITE,
    _off("WITH_UNIT_TESTS", "unittest"),
    _off("WITH_ROUTER", "router"),
    _off("WITH_MYSQLX", "plugin/x"),
    _off("WITH_GROUP_REPLICATION", "plugin/group_replication"),
    _system("WITH_SSL", "cmake/ssl.cmake", "libssl-dev"),
    CMakeOption(
        name="WITH_ZLIB", value="bundled", sign="extra/zlib", reason="the version the fork carries"
    ),
)


@dataclass(frozen=True, kw_only=True)
class CommandList:
    """Commands of a build that CMake alone does not do, with the reason."""

    commands: tuple[tuple[str, ...], ...]
    reason: str


POSTGRES_COMMANDS: Final = CommandList(
    commands=(
        ("./configure", "--prefix={prefix}", "--without-icu", "--without-readline"),
        ("make", "--silent", "-j{jobs}"),
        ("make", "--silent", "install"),
    ),
    reason="configure and make; needs the packages bison, flex, perl and zlib1g-dev",
)

_INSTALL_DB_BENCH: Final = ("install", "-D", "{build}/db_bench", "{prefix}/bin/db_bench")
_MAKE_DB_BENCH: Final = (
    "cmake",
    "--build",
    "{build}",
    "--parallel",
    "{jobs}",
    "--target",
    "db_bench",
)

ROCKSDB_COMMANDS: Final = CommandList(
    commands=(
        (
            *("cmake", "-G", "Ninja", "-S", ".", "-B", "{build}", "-DCMAKE_BUILD_TYPE=Release"),
            *("-DWITH_TESTS=OFF", "-DWITH_TOOLS=OFF", "-DWITH_CORE_TOOLS=OFF"),
            # RocksDB 8.6 takes ON for the name of a processor, and does not compile.
            *("-DWITH_BENCHMARK_TOOLS=ON", "-DROCKSDB_BUILD_SHARED=OFF", "-DPORTABLE=1"),
            *("-DWITH_LZ4=ON", "-DFAIL_ON_WARNINGS=OFF"),
        ),
        _MAKE_DB_BENCH,
        _INSTALL_DB_BENCH,
    ),
    reason="no install rule has db_bench; needs the packages libgflags-dev and liblz4-dev",
)

LEVELDB_COMMANDS: Final = CommandList(
    commands=(
        (
            *("cmake", "-G", "Ninja", "-S", ".", "-B", "{build}", "-DCMAKE_BUILD_TYPE=Release"),
            *("-DLEVELDB_BUILD_TESTS=OFF", "-DLEVELDB_BUILD_BENCHMARKS=ON"),
        ),
        _MAKE_DB_BENCH,
        _INSTALL_DB_BENCH,
    ),
    reason="no install rule has db_bench; its submodules have to be in the commit",
)

"""Bases: the options that a server has where the plan says nothing, per engine.

A spec comes in, options go out. They are the same for every version of a family, because a default
that changed between two versions is not what a comparison of their code is about; each with its
reason in docs/engines.md. Sizes follow the machine's memory in powers of two, so that a kernel
which keeps a few megabytes more for itself changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner.limits import GIB, MIB, machine_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner.servers.engine import OptionValue, ServerSpec

#: Two servers of a pair are up at once, and the kernel and the clients want something too.
CACHE_SHARE: Final = 0.25
#: No dataset of a suite that is measured on every commit needs more, and page tables, hashes and
#: the first touch of every page cost each start some time.
CACHE_BYTES_MAX: Final = 4 * GIB
CACHE_BYTES_MIN: Final = 128 * MIB
#: A plan may ask for 1024 clients; a few more connections look in from outside.
CONNECTIONS: Final = 1100

_MYSQL_FAMILY: Final[Mapping[str, OptionValue]] = {
    "character_set_server": "latin1",
    "collation_server": "latin1_swedish_ci",
    "innodb_flush_log_at_trx_commit": 2,
    "log_bin": False,
    "loose-ssl": False,
    "server_id": 1,
    "max_connections": CONNECTIONS,
}
#: `loose-` before what one of the versions does not have.
_OF_ENGINE: Final[Mapping[str, Mapping[str, OptionValue]]] = {
    "mariadb": {
        **_MYSQL_FAMILY,
        "innodb_log_file_size": "96M",
        "loose-innodb_log_files_in_group": 1,
    },
    "mysql": {
        **_MYSQL_FAMILY,
        "loose-innodb_redo_log_capacity": "96M",
        "loose-innodb_log_file_size": "48M",
        "loose-innodb_log_files_in_group": 2,
        "innodb_flush_method": "O_DIRECT",
        "innodb_io_capacity": 10_000,
        "innodb_io_capacity_max": 20_000,
        "innodb_adaptive_hash_index": False,
        "loose-innodb_change_buffering": "none",
        "gtid_mode": "OFF",
        "enforce_gtid_consistency": "OFF",
    },
    "postgres": {
        "autovacuum": True,
        "checkpoint_timeout": "30min",
        "huge_pages": "off",
        "max_connections": CONNECTIONS,
        "max_parallel_workers_per_gather": 0,
        "max_wal_size": "1GB",
        "synchronous_commit": False,
    },
}
#: With tables in MyRocks; Facebook's MySQL has it built in.
_ROCKSDB: Final[Mapping[str, Mapping[str, OptionValue]]] = {
    "mariadb": {"plugin_load_add": "ha_rocksdb", "default_storage_engine": "rocksdb"},
    "mysql": {"loose-rocksdb": True, "default_storage_engine": "rocksdb"},
}
#: Options that speak of one thing: a plan that sets one of them sets that thing.
_TOGETHER: Final = (
    frozenset({"innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_files_in_group"}),
    frozenset({"character_set_server", "collation_server"}),
    frozenset({"gtid_mode", "enforce_gtid_consistency"}),
    frozenset({"innodb_io_capacity", "innodb_io_capacity_max"}),
)


def cache_bytes() -> int:
    """Return the size of a server's own cache: a share of this machine's memory, in bounds."""
    share = int(machine_memory() * CACHE_SHARE)
    return min(CACHE_BYTES_MAX, max(CACHE_BYTES_MIN, 1 << (share.bit_length() - 1)))


def plain(name: str) -> str:
    """Return an option's name in one spelling: `--loose-skip-log-bin` is about `log_bin`."""
    return name.lower().replace("-", "_").removeprefix("loose_").removeprefix("skip_")


def options(spec: ServerSpec) -> dict[str, OptionValue]:
    """Return the base's options that the plan leaves open, and then the plan's, as they are spelt.

    The last word counts with every server of these, and so the plan's does.
    """
    chosen = {plain(name) for name in spec.options}
    for group in _TOGETHER:
        chosen |= group if group & chosen else frozenset()
    base = {name: value for name, value in _base(spec).items() if plain(name) not in chosen}
    return {**base, **spec.options}


def _base(spec: ServerSpec) -> dict[str, OptionValue]:
    cache = f"{cache_bytes() // MIB}M"
    if spec.engine == "postgres":
        return {**_OF_ENGINE["postgres"], "shared_buffers": f"{cache}B"}
    if spec.engine not in _OF_ENGINE:
        return {}
    base = dict(_OF_ENGINE[spec.engine])
    if spec.storage_engine == "rocksdb":
        # What is left of InnoDB then is the dictionary.
        caches = {"loose-rocksdb_block_cache_size": cache, "innodb_buffer_pool_size": "128M"}
        flush = {"loose-rocksdb_flush_log_at_trx_commit": 2}
        return {**base, **_ROCKSDB[spec.engine], **caches, **flush}
    return {**base, "innodb_buffer_pool_size": cache}


def chosen(spec: ServerSpec, names: Iterable[str]) -> dict[str, OptionValue]:
    """Return those of these options that the server has, by their plain names."""
    wanted = frozenset(names)
    found = {plain(name): value for name, value in options(spec).items()}
    return {name: found[name] for name in sorted(wanted & found.keys())}

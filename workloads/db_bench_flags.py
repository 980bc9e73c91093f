"""Flags of db_bench: the field's settings for both engines, and what kind of flag is which.

Plain values. The sizes are the field's for 8 processors and 32 GB (memtables of 16 MB, level 1 of
64 MB), which also fit a small machine; docs/rocksdb.md says which flag stands for what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

Flag = str | int | float | bool

_MIB: Final = 1024**2
#: Bytes per second of everything that writes.
RATE: Final = "benchmark_write_rate_limit"

#: What both engines' programs understand.
_BOTH: Final[Mapping[str, Flag]] = {
    "block_size": 8192,
    "bloom_bits": 10,
    "cache_size": 1024 * _MIB,
    "compression_ratio": 0.5,
    "write_buffer_size": 16 * _MIB,
}

#: The settings of each engine that a server config's options override.
BASE: Final[Mapping[str, Mapping[str, Flag]]] = {
    "rocksdb": {
        **_BOTH,
        "bytes_per_sync": _MIB,
        "cache_high_pri_pool_ratio": 0.5,
        "cache_index_and_filter_blocks": True,
        "cache_numshardbits": 6,
        "compression_type": "none",
        "level0_file_num_compaction_trigger": 4,
        "level0_slowdown_writes_trigger": 20,
        "level0_stop_writes_trigger": 30,
        "level_compaction_dynamic_level_bytes": True,
        "max_background_jobs": 4,
        "max_bytes_for_level_base": 64 * _MIB,
        "max_bytes_for_level_multiplier": 8,
        "max_write_buffer_number": 8,
        "min_level_to_compress": 3,
        "num_levels": 8,
        "open_files": -1,
        "pin_l0_filter_and_index_blocks_in_cache": True,
        "statistics": False,
        "subcompactions": 1,
        "sync": False,
        "target_file_size_base": 16 * _MIB,
        "verify_checksum": True,
    },
    "leveldb": {**_BOTH, "max_file_size": 16 * _MIB, "open_files": 10_000},
}

#: What forkwatch sets by the plan's other tables, or reads the result from.
OURS: Final = frozenset(
    {
        "benchmarks",
        "db",
        "duration",
        "histogram",
        "key_size",
        "num",
        "reads",
        "report_file",
        "report_interval_seconds",
        "seed",
        "stats_interval",
        "stats_interval_seconds",
        "stats_per_interval",
        "use_existing_db",
        "value_size",
        "wal_dir",
        "writes",
    }
)

#: Flags that change how a database is read and written while it runs, and not what lies in it
#: afterwards: configs that differ in these alone share a dataset.
FORMAT_FREE: Final = frozenset(
    {
        "async_io",
        RATE,
        "bytes_per_sync",
        "cache_high_pri_pool_ratio",
        "cache_index_and_filter_blocks",
        "cache_low_pri_pool_ratio",
        "cache_numshardbits",
        "cache_size",
        "cache_type",
        "compaction_readahead_size",
        "mmap_read",
        "multiread_batched",
        "open_files",
        "perf_level",
        "pin_l0_filter_and_index_blocks_in_cache",
        "readahead_size",
        "row_cache_size",
        "seek_nexts",
        "statistics",
        "threads",
        "use_direct_io_for_flush_and_compaction",
        "use_direct_reads",
        "verify_checksum",
        "wal_bytes_per_sync",
    }
)

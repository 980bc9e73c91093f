"""The text of a first plan: what was found in a source tree, as commented TOML.

Each choice says where it comes from, so that the reader can tell what was seen in the tree from
what was assumed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from workloads.catalog import SUITES
from workloads.workload import LSM_ENGINES, MYSQL_FAMILY

if TYPE_CHECKING:
    from forkwatch.source_trees import SourceTree

#: Suite of a first plan for engines that have no SQL.
_LSM_SUITES: Final = {"rocksdb": "lsm-4", "leveldb": "leveldb-3"}

_MYSQL_CONFIG: Final = """\
# Options of the server. Commits to disk are left out, because disks are noisier than code.
[configs.default.options]
innodb_buffer_pool_size = "512M"
innodb_flush_log_at_trx_commit = 2
performance_schema = false
# Purge waits for the pauses: in bursts it makes updates scatter by 10 % (docs/measuring.md).
innodb_purge_batch_size = 1
"""
_POSTGRES_CONFIG: Final = """\
# Options of the server; what they leave open is the engine's base (docs/engines.md).
[configs.default.options]
"""
_LSM_CONFIG: Final = """\
# Flags of db_bench; what they leave open is the base (docs/rocksdb.md).
[configs.default.options]
"""
_SQL_DATASET: Final = """\
# Has to fit into the buffer pool, or the disk is what gets measured.
[datasets.small]
tables = 1
rows = 200000
"""
_LSM_DATASET: Final = """\
# A million keys with values of 400 bytes: 0.4 GB, which has to fit into memory twice.
[datasets.small]
kind = "lsm"
rows = 1000000
value_bytes = 400
"""
_SQL_WARMUP: Final = "warmup_seconds = 2  # repeated until two runs in a row agree"
_LSM_WARMUP: Final = "warmup_seconds = 0  # there is no server to warm up"
_SUITE: Final = """\
# Known workloads and lists of them: docs/workloads.md.
[suites.commit]
workloads = {workloads}
build = "rel"
config = "default"
dataset = "small"
starts = 3          # server starts per commit; differences between starts are the largest noise
slices = 2          # slices of each workload in each start
seconds = 10        # length of a slice
{warmup}
confirm_starts = 10 # at most, per side, of a pair; it ends when every workload is decided
budget_minutes = 30 # a pair begins no further start after so much measuring

# The smallest loss that matters: 0.05 is 5 %.
[gates]
default = 0.05

# [gates.workloads]
# {first} = 0.08
"""


def plan_lines(tree: SourceTree, *, name: str, branch: str, branch_seen: str) -> list[str]:
    """Return the lines of a plan for a fork called `name`."""
    return [
        "# What forkwatch builds and measures for this fork. `forkwatch plan` checks it.",
        "",
        "[fork]",
        f"name = {_toml(name)}  # the folder's name",
        f"branch = {_toml(branch)}  # {branch_seen}",
        f"engine = {_toml(tree.engine)}  # {tree.engine_seen}",
        "",
        *(_command_lines(tree) if tree.commands else _cmake_lines(tree)),
        *_measuring(tree.engine).splitlines(),
        "",
    ]


def _toml(value: str | bool) -> str:  # noqa: FBT001  a value, not a flag
    # A JSON string or boolean is a TOML one too.
    return json.dumps(value)


def _cmake_lines(tree: SourceTree) -> list[str]:
    lines = [
        *_variant_lines(tree),
        "",
        "[builds.rel.cmake_options]",
        f"CMAKE_BUILD_TYPE = {_toml(tree.build_type)}",
    ]
    for option in tree.options:
        lines.append(f"# {option.sign}: {option.reason}")
        lines.append(f"{option.name} = {_toml(option.value)}")
    return [*lines, ""]


def _command_lines(tree: SourceTree) -> list[str]:
    assert tree.commands is not None, "only called for such"
    words = (f"  {json.dumps(list(command))}," for command in tree.commands.commands)
    return [
        *_variant_lines(tree),
        f"# {tree.commands.reason}",
        'system = "command"',
        "commands = [",
        *words,
        "]",
        "",
    ]


def _variant_lines(tree: SourceTree) -> list[str]:
    flags = (("c_flags", tree.c_flags), ("cxx_flags", tree.cxx_flags))
    return [
        "# A build variant. Cheap symbols (-g1) let profiles name functions and cost no speed.",
        "[builds.rel]",
        f"server = {_toml(tree.server)}  # {tree.server_seen}",
        *(f"{key} = {json.dumps(list(value))}" for key, value in flags if value),
        '# linker = "mold"  # links in seconds, on hosts that have it',
    ]


def _measuring(engine: str) -> str:
    lsm = engine in LSM_ENGINES
    config = _MYSQL_CONFIG if engine in MYSQL_FAMILY else _POSTGRES_CONFIG
    names = SUITES[_LSM_SUITES.get(engine, "commit")]
    suite = _SUITE.format(
        workloads=json.dumps(list(names)),
        first=names[0],
        warmup=_LSM_WARMUP if lsm else _SQL_WARMUP,
    )
    return "\n".join((_LSM_CONFIG if lsm else config, _LSM_DATASET if lsm else _SQL_DATASET, suite))

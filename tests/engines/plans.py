"""A plan for what was fetched of one engine: a prebuilt variant for each version, and a matrix.

Facts of the trees come in, TOML that `parse_plan` accepts goes out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Purge in bursts makes update-index scatter (docs/workloads.md).
_PURGE: Final = "innodb_purge_batch_size = 1\n"
#: The default config of each engine, and what is worth asking of it besides its versions.
_CONFIGS: Final = {
    "mysql": f"""\
[configs.default.options]
{_PURGE}
[configs.ps0.options]
{_PURGE}performance_schema = false

[configs.binlog.options]
{_PURGE}log_bin = true
sync_binlog = 0

[configs.ps0-binlog.options]
{_PURGE}performance_schema = false
log_bin = true
sync_binlog = 0

# What do the performance schema and the binary log take?
[matrices.switches]
builds = ["{{switches}}"]
configs = ["default", "ps0", "binlog", "ps0-binlog"]
suite = "commit"
""",
    "mariadb": f"""\
[configs.default.options]
{_PURGE}
[configs.ps1.options]
{_PURGE}performance_schema = true

# For the trees that carry the plugin; the engine's base loads it.
[datasets.rocks]
rows = 200000
storage_engine = "rocksdb"

[suites.myrocks]
workloads = ["commit"]
build = "{{newest}}"
dataset = "rocks"
""",
    "postgres": "[configs.default]\n",
}


def plan_text(engine: str, trees: Mapping[str, tuple[Path, Mapping[str, Any]]]) -> str:
    """Return a plan for the trees by name: where each lies, and what it says of itself.

    The first is the base of the matrix, so the oldest goes first.
    """
    names = list(trees)
    newest = names[-1]
    lines = [
        "# Written by `make engines` for what it could fetch; it is written anew each time.",
        "# forkwatch compare build:OLD build:NEW --plan THIS",
        "# forkwatch matrix versions --plan THIS",
        "",
        "[fork]",
        f'name = "{engine}-releases"',
        f'engine = "{engine}"',
        "",
    ]
    for name, (folder, facts) in trees.items():
        lines += _build_lines(name, folder, facts)
    lines += [
        "[datasets.small]",
        "rows = 200000",
        "",
        *_suite_lines("commit", newest, starts=3, seconds=10),
        *_suite_lines("core-8", newest, starts=3, seconds=10),
        *_suite_lines("full-42", newest, starts=2, seconds=10),
        "[matrices.versions]",
        f"builds = {json.dumps(names)}",
        'suite = "commit"',
        "",
        "# What a config leaves open is the engine's base: docs/engines.md.",
        _CONFIGS[engine].replace("{newest}", newest).replace("{switches}", _switches(trees)),
    ]
    text = "\n".join(lines)
    parse_plan(text)
    return text


def _switches(trees: Mapping[str, tuple[Path, Mapping[str, Any]]]) -> str:
    """Return the tree whose switches are tried: the last of 8.0, which the field asked it of."""
    of_80 = [name for name, (_, facts) in trees.items() if facts["version"].startswith("8.0.")]
    return (of_80 or list(trees))[-1]


def _build_lines(name: str, folder: Path, facts: Mapping[str, Any]) -> list[str]:
    lines = [
        f"[builds.{name}]  # {facts['version']}",
        'system = "prebuilt"',
        f"prefix = {json.dumps(str(folder))}",
        f"server = {json.dumps(facts['server'])}",
    ]
    more = [key for key in ("install_db", "loader", "library_paths") if facts[key]]
    return [*lines, *(f"{key} = {json.dumps(facts[key])}" for key in more), ""]


def _suite_lines(name: str, build: str, *, starts: int, seconds: int) -> list[str]:
    return [
        f"[suites.{name}]",
        f'workloads = ["{name}"]',
        f'build = "{build}"',
        f"starts = {starts}",
        f"seconds = {seconds}",
        "",
    ]

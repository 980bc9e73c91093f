"""The engines by the plan's names. A new family of servers is a module and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner.errors import OperatorError
from runner.servers import lsm, mysql_family, postgres

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.servers.engine import Engine

ENGINES: Final[Mapping[str, Engine]] = {
    "mariadb": mysql_family,
    "mysql": mysql_family,
    "postgres": postgres,
    "rocksdb": lsm.ROCKSDB,
    "leveldb": lsm.LEVELDB,
}


def engine_of(name: str) -> Engine:
    """Return the engine that the plan calls `name`.

    Raises:
        OperatorError: There is none.
    """
    if name not in ENGINES:
        raise OperatorError(f"no engine {name!r}; known: {', '.join(ENGINES)}")
    return ENGINES[name]

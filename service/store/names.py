"""Many names in one question: a column and names come in, the condition that it is one of them.

They go to the database as one value, an array on PostgreSQL and JSON on SQLite: so the text of a
question is the same however many names there are, and no limit of parameters is met.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ARRAY, Text, TypeDecorator, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement
    from sqlalchemy.engine import Dialect
    from sqlalchemy.orm import InstrumentedAttribute
    from sqlalchemy.sql.compiler import SQLCompiler
    from sqlalchemy.types import TypeEngine

_POSTGRESQL: Final = "postgresql"


def one_of(column: InstrumentedAttribute[str], names: Iterable[str]) -> ColumnElement[bool]:
    """Return the condition that a column holds one of these names; with none it never does."""
    return _OneOf(column, bindparam(None, list(names), type_=_Names(), unique=True))


class _Names(TypeDecorator[list[str]]):
    """Names as one value."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return an array where the database has some."""
        kind: Any = ARRAY(Text()) if dialect.name == _POSTGRESQL else Text()
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: list[str] | None, dialect: Dialect) -> Any:
        """Return the names as the database takes them."""
        assert value is not None, "no names are an empty list"
        return value if dialect.name == _POSTGRESQL else json.dumps(value)


class _OneOf(FunctionElement[bool]):
    """A column, and the names.

    Of no type: SQLAlchemy would ask SQLite whether a boolean is 1, which no index answers.
    """

    name = "one_of"
    inherit_cache = True


@compiles(_OneOf)
def _in_json(element: _OneOf, compiler: SQLCompiler, **words: Any) -> str:
    column, names = (compiler.process(clause, **words) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({names}))"  # noqa: S608  compiled clauses


@compiles(_OneOf, _POSTGRESQL)
def _in_array(element: _OneOf, compiler: SQLCompiler, **words: Any) -> str:
    column, names = (compiler.process(clause, **words) for clause in element.clauses)
    return f"{column} = ANY({names})"

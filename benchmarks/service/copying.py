"""The same store on another database: every row of one is written into the other as it is.

Two migrated stores come in, the second one empty and on PostgreSQL. So both have the same history,
and it is made once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Table, select

from service.store.schema import METADATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Connection
    from sqlalchemy.orm import Session

    from service.store.database import Database

#: Rows that are held in memory at once.
ROWS_HELD: Final = 2_000


def copy_store(source: Database, target: Database) -> None:
    """Copy every row, and have PostgreSQL look at what came, as it would by itself in time."""
    for table in METADATA.sorted_tables:
        with source.reading() as reading, target.writing() as writing:
            _copy_table(reading, writing.connection(), table)
    vacuuming = target.engine.execution_options(isolation_level="AUTOCOMMIT")
    with vacuuming.connect() as connection:
        connection.exec_driver_sql("VACUUM ANALYZE")


def _copy_table(reading: Session, connection: Connection, table: Table) -> None:
    binders = [_binder(column.type, connection) for column in table.columns]
    quote = connection.dialect.identifier_preparer.quote
    names = ", ".join(quote(column.name) for column in table.columns)
    rows = reading.execute(select(table).execution_options(yield_per=ROWS_HELD))
    # SQLAlchemy has no word for COPY, which is ten times as fast as inserts.
    cursor: Any = connection.connection.cursor()
    with cursor.copy(f"COPY {quote(table.name)} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row([bind(value) for bind, value in zip(binders, row, strict=True)])
    counter = table.autoincrement_column
    if counter is not None:
        place = f"pg_get_serial_sequence('{table.name}', '{counter.name}')"
        newest = f"(SELECT max({quote(counter.name)}) FROM {quote(table.name)})"  # noqa: S608  our own tables' names
        connection.exec_driver_sql(f"SELECT setval({place}, {newest})")


def _binder(kind: Any, connection: Connection) -> Callable[[Any], Any]:
    """Return what turns a value of a column into what the driver takes."""
    found = kind.dialect_impl(connection.dialect).bind_processor(connection.dialect)
    return found or _unchanged


def _unchanged(value: Any) -> Any:
    return value

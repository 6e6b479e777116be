"""Many rows at once: raw tuples through ``executemany``, ids reserved in blocks, lists of ids in chunks.

Knows how each database writes a placeholder. No ORM and no per-row objects on this path. All functions run inside
the caller's transaction. Statements stay under 500 bound values beyond those of one row (bug case B20).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count, islice
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Row

CHUNK: Final = 500

T = TypeVar("T")


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Lists of up to ``size`` items, in order; the last may be shorter, none is empty."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def insert_rows(conn: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert tuples in the order of ``columns``. No rows: no statement."""
    if rows:
        conn.exec_driver_sql(_insert_sql(table, tuple(columns), _mark(conn)), list(rows))


def insert_rows_returning_ids(
    conn: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> range:
    """Insert tuples (without ``id``) under contiguous ids; returns those ids, in the order of the rows.

    Ids are reserved by reading the highest one, which is safe in a write transaction: there is one writer at a time.
    """
    first = 1 + (conn.exec_driver_sql(f'SELECT max(id) FROM "{table}"').scalar() or 0)
    if rows:
        numbered = [(number, *row) for number, row in zip(count(first), rows, strict=False)]
        conn.exec_driver_sql(_insert_sql(table, ("id", *columns), _mark(conn)), numbered)
    return range(first, first + len(rows))


def update_rows(
    conn: Connection,
    table: str,
    key_columns: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Set ``columns`` of the rows found by ``key_columns``. Each tuple holds THE NEW VALUES FIRST, then the key."""
    if rows:
        sql = _update_sql(table, tuple(key_columns), tuple(columns), _mark(conn))
        conn.exec_driver_sql(sql, list(rows))


def update_at_once(
    conn: Connection, table: str, key: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """As ``update_rows`` with one key column, THE NEW VALUES FIRST, but in one statement through a temporary table.

    On a table with many indexes that takes a third of the time. Keys that are not there are passed over.
    """
    if not rows:
        return
    temporary = f"values_of_{table}_{len(columns)}"
    names = _names((*columns, key))
    conn.exec_driver_sql(f'CREATE TEMP TABLE IF NOT EXISTS "{temporary}" AS SELECT {names} FROM "{table}" WHERE 1 = 0')
    insert_rows(conn, temporary, (*columns, key), rows)
    changes = ", ".join(f'"{column}" = v."{column}"' for column in columns)
    conn.exec_driver_sql(f'UPDATE "{table}" SET {changes} FROM "{temporary}" v WHERE v."{key}" = "{table}"."{key}"')
    conn.exec_driver_sql(f'DROP TABLE "{temporary}"')


def upsert_rows(
    conn: Connection,
    table: str,
    key_columns: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert, or set ``columns`` where the key is there. Each tuple holds the key first, then the values."""
    if rows:
        sql = _upsert_sql(table, tuple(key_columns), tuple(columns), _mark(conn))
        conn.exec_driver_sql(sql, list(rows))


def select_in(
    conn: Connection, sql: str, values: Iterable[Any], *, before: tuple[Any, ...] = (), after: tuple[Any, ...] = ()
) -> Iterator[Row[Any]]:
    """Rows of ``sql`` with ``{values}`` standing for the list, chunk by chunk; each chunk is fetched whole.

    ``before`` and ``after`` are the parameters on both sides of the list. A value given twice may give its rows twice.
    """
    for chunk in chunks(values):
        text = bind(conn, sql.replace("{values}", ", ".join("?" * len(chunk))))
        yield from conn.exec_driver_sql(text, (*before, *chunk, *after)).fetchall()


def bind(conn: Connection, sql: str) -> str:
    """SQL written with ``?`` for the database at hand. The text must hold no other question or percent mark."""
    mark = _mark(conn)
    return sql if mark == "?" else sql.replace("?", mark)


def _mark(conn: Connection) -> str:
    return "?" if conn.dialect.paramstyle == "qmark" else "%s"


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


@lru_cache
def _insert_sql(table: str, columns: tuple[str, ...], mark: str) -> str:
    return f'INSERT INTO "{table}" ({_names(columns)}) VALUES ({", ".join([mark] * len(columns))})'


@lru_cache
def _update_sql(table: str, keys: tuple[str, ...], columns: tuple[str, ...], mark: str) -> str:
    changes = ", ".join(f'"{column}" = {mark}' for column in columns)
    tests = " AND ".join(f'"{key}" = {mark}' for key in keys)
    return f'UPDATE "{table}" SET {changes} WHERE {tests}'


@lru_cache
def _upsert_sql(table: str, keys: tuple[str, ...], columns: tuple[str, ...], mark: str) -> str:
    changes = ", ".join(f'"{column}" = excluded."{column}"' for column in columns)
    return f"{_insert_sql(table, (*keys, *columns), mark)} ON CONFLICT ({_names(keys)}) DO UPDATE SET {changes}"

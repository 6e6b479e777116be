"""One remover per place: contention, death of a holder, stale tokens."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta

import pytest
from sqlalchemy.exc import DatabaseError

from lifecycle.catalog.lease import FileLock, lock_path, release_leases, take_lease
from lifecycle.catalog.store import Catalog
from lifecycle.errors import LeaseHeld, LeaseLost
from tests.builders import NOON
from tests.contract.catalog.rows import Rows

HOLD = """
import sys, time
from datetime import UTC, datetime
from lifecycle.catalog.lease import take_lease
from lifecycle.catalog.places import place_by_id
from lifecycle.catalog.store import open_catalog
catalog = open_catalog(sys.argv[1])
with catalog.read() as conn:
    place = place_by_id(conn, int(sys.argv[2]))
lease = take_lease(catalog, place, holder="run 1882", now=datetime(2026, 3, 1, 11, 30, tzinfo=UTC))
print("held", flush=True)
sys.stdin.read()
lease.release()
"""


@contextmanager
def another_process_holds(catalog: Catalog, place_id: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, catalog.url, str(place_id)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_second_is_told_who_where_and_since_when(catalog: Catalog, rows: Rows) -> None:
    with another_process_holds(catalog, rows.source.id) as process:
        with pytest.raises(LeaseHeld) as caught:
            take_lease(catalog, rows.source, holder="run 1883", now=NOON)
        for part in ("source lustre", "run 1882", socket.gethostname(), f"pid {process.pid}", "2026-03-01 11:30 UTC"):
            assert part in str(caught.value)
        assert caught.value.exit_code == 5
        process.communicate("")  # lets it release
        take_lease(catalog, rows.source, holder="run 1883", now=NOON).release()


def test_another_place_is_free_meanwhile(catalog: Catalog, rows: Rows) -> None:
    with another_process_holds(catalog, rows.source.id):
        take_lease(catalog, rows.warm, holder="run 2", now=NOON).release()


def test_a_killed_holder_frees_the_place(catalog: Catalog, rows: Rows) -> None:
    with another_process_holds(catalog, rows.source.id) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with take_lease(catalog, rows.source, holder="run 2", now=NOON) as lease, catalog.write(lease):
            pass


def test_waiting_takes_it_once_the_holder_is_gone(catalog: Catalog, rows: Rows) -> None:
    with another_process_holds(catalog, rows.source.id) as process:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        take_lease(catalog, rows.source, holder="run 2", now=NOON, wait=timedelta(seconds=20)).release()


def test_waiting_is_bounded(catalog: Catalog, rows: Rows) -> None:
    with take_lease(catalog, rows.source, holder="run 1", now=NOON):
        started = time.monotonic()
        with pytest.raises(LeaseHeld, match="run 1 "):
            take_lease(catalog, rows.source, holder="run 2", now=NOON, wait=timedelta(milliseconds=300))
        assert 0.3 <= time.monotonic() - started < 5


def test_a_stale_token_cannot_commit(catalog: Catalog, rows: Rows) -> None:
    lease = take_lease(catalog, rows.source, holder="run 1", now=NOON)
    with catalog.write() as conn:  # what another host's taking does to the row
        conn.exec_driver_sql("UPDATE leases SET token = token + 1")
    with pytest.raises(LeaseLost), catalog.write(lease) as conn:
        catalog.set_fact(conn, "generation", "9")
    assert catalog.facts().generation == 1
    lease.release()


def test_one_lost_lease_of_two_undoes_the_whole_commit(catalog: Catalog, rows: Rows) -> None:
    first = take_lease(catalog, rows.source, holder="run 1", now=NOON)
    second = take_lease(catalog, rows.warm, holder="run 1", now=NOON)
    second.release()
    with pytest.raises(LeaseLost, match="tier warm"), catalog.write(first, second):
        pass
    with catalog.write(first):
        pass
    first.release()


def test_tokens_grow_and_are_never_used_again(catalog: Catalog, rows: Rows) -> None:
    tokens = []
    for _ in range(3):
        with take_lease(catalog, rows.source, holder="run", now=NOON) as lease:
            tokens.append(lease.token)
    assert tokens == sorted(set(tokens))


def test_a_commit_renews_the_lease(catalog: Catalog, rows: Rows) -> None:
    with take_lease(catalog, rows.source, holder="run 1", now=NOON) as lease:
        with catalog.write(lease):
            pass
        with catalog.read() as conn:
            acquired, renewed, expires = conn.exec_driver_sql(
                "SELECT acquired_ns, renewed_ns, expires_ns FROM leases"
            ).one()
    assert acquired < renewed < expires


def test_a_release_twice_is_a_release_once(catalog: Catalog, rows: Rows) -> None:
    lease = take_lease(catalog, rows.source, holder="run 1", now=NOON)
    lease.release()
    other = take_lease(catalog, rows.source, holder="run 2", now=NOON)
    lease.release()
    with catalog.write(other), pytest.raises(LeaseHeld, match="run 2"):
        take_lease(catalog, rows.source, holder="run 3", now=NOON)
    other.release()


def test_leases_released_together_are_all_free_and_one_that_was_lost_is_left_to_its_holder(
    catalog: Catalog, rows: Rows
) -> None:
    places = (rows.source, rows.warm, rows.place("nvme"))
    mine, lost, over = (take_lease(catalog, place, holder="run 1", now=NOON) for place in places)
    over.release()
    with catalog.write() as conn:  # what another host's taking does to the row
        conn.exec_driver_sql(
            "UPDATE leases SET token = token + 1, holder = 'run 2' WHERE place_id = ?", (lost.place_id,)
        )
    release_leases(catalog, [mine, lost, over])
    assert not (mine.is_held or lost.is_held or over.is_held)
    with catalog.read() as conn:
        holders = dict(conn.exec_driver_sql("SELECT place_id, holder FROM leases").fetchall())
    assert holders == {mine.place_id: "", lost.place_id: "run 2", over.place_id: ""}
    for place in places:
        take_lease(catalog, place, holder="run 3", now=NOON).release()


def test_locks_go_although_the_catalog_cannot_be_written(catalog: Catalog, rows: Rows) -> None:
    leases = [take_lease(catalog, place, holder="run 1", now=NOON) for place in (rows.source, rows.warm)]
    with closing(sqlite3.connect(catalog.path)) as raw, raw:
        raw.execute("ALTER TABLE leases RENAME TO elsewhere")
    with pytest.raises(DatabaseError):
        release_leases(catalog, leases)
    for lease in leases:
        lock = FileLock(lock_path(catalog.path), start=lease.place_id, length=1)
        assert lock.try_take()
        lock.free()


def test_a_forked_worker_that_outlives_the_holder_holds_nothing(catalog: Catalog, rows: Rows) -> None:
    path = lock_path(catalog.path)
    lock = FileLock(path, start=rows.source.id, length=1)
    assert lock.try_take()
    reader, writer = os.pipe()
    ready, say_ready = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.write(say_ready, b"!")
        os.read(reader, 1)  # until the parent is done
        os._exit(0)
    try:
        assert os.read(ready, 1) == b"!"
        lock.forsake()  # the descriptor goes as it does when a process is killed: without an unlock
        take_lease(catalog, rows.source, holder="run 2", now=NOON).release()
    finally:
        for end in (reader, writer, ready, say_ready):
            os.close(end)
        os.waitpid(child, 0)

"""The chain of events shows every change that somebody makes to the past."""

from __future__ import annotations

import pytest

from lifecycle.catalog.events import append_event, first_link, iter_events, members_digest, verify_chain
from lifecycle.catalog.store import Catalog
from tests.builders import NOON_NS
from tests.contract.catalog.rows import Rows


@pytest.fixture
def place(catalog: Catalog, rows: Rows) -> int:
    """A place with five events."""
    with catalog.write() as conn:
        for number in range(1, 6):
            append_event(
                conn, place_id=rows.source.id, at_ns=NOON_NS + number, kind="marked", body={"n": number, "ü": "é"}
            )
    return rows.source.id


def broken_at(catalog: Catalog, place_id: int, *statements: str) -> int | None:
    with catalog.write() as conn:
        for statement in statements:
            conn.exec_driver_sql(statement)
        return verify_chain(conn, place_id).broken_seq


def test_a_chain_that_nobody_touched_is_whole(catalog: Catalog, place: int) -> None:
    with catalog.read() as conn:
        report = verify_chain(conn, place)
        head = conn.exec_driver_sql("SELECT chain_head FROM places WHERE id = ?", (place,)).scalar()
    assert (report.is_whole, report.events, report.head) == (True, 5, head)


def test_a_place_without_events_is_whole(catalog: Catalog, rows: Rows) -> None:
    with catalog.read() as conn:
        assert verify_chain(conn, rows.warm.id).is_whole
    assert first_link(rows.warm.uid) != first_link(rows.source.uid)


@pytest.mark.parametrize(
    "column", ["at_ns = at_ns + 1", "kind = 'purged'", "body = '{}'", "run_id = 1", "batch_id = 9", "digest = x'00'"]
)
def test_a_changed_event_shows(catalog: Catalog, rows: Rows, place: int, column: str) -> None:
    rows.run()
    assert broken_at(catalog, place, f"UPDATE events SET {column} WHERE seq = 3") == 3


def test_a_removed_event_shows(catalog: Catalog, place: int) -> None:
    assert broken_at(catalog, place, "DELETE FROM events WHERE seq = 2") == 2


def test_a_removed_last_event_shows(catalog: Catalog, place: int) -> None:
    assert broken_at(catalog, place, "DELETE FROM events WHERE seq = 5") == 5


def test_a_removed_event_shows_even_when_the_others_are_renumbered(catalog: Catalog, place: int) -> None:
    closing_up = (f"UPDATE events SET seq = {n} WHERE seq = {n + 1}" for n in range(2, 5))
    assert broken_at(catalog, place, "DELETE FROM events WHERE seq = 2", *closing_up) == 2


def test_events_in_another_order_show(catalog: Catalog, place: int) -> None:
    swap = [f"UPDATE events SET seq = {new} WHERE seq = {old}" for old, new in ((2, 99), (3, 2), (99, 3))]
    assert broken_at(catalog, place, *swap) == 2


def test_a_chain_cut_and_forged_anew_agrees_with_itself_but_not_with_the_head_in_the_marker(
    catalog: Catalog, place: int
) -> None:
    with catalog.write() as conn:
        in_marker = verify_chain(conn, place).head
        conn.exec_driver_sql("DELETE FROM events WHERE seq > 4")
        conn.exec_driver_sql("UPDATE places SET chain_seq = 4, chain_head = (SELECT digest FROM events WHERE seq = 4)")
        append_event(conn, place_id=place, at_ns=NOON_NS + 5, kind="marked", body={"n": "forged"})
        report = verify_chain(conn, place)
    assert (report.is_whole, report.events) == (True, 5)
    assert report.head != in_marker


def test_an_event_goes_with_its_transaction(catalog: Catalog, place: int) -> None:
    with pytest.raises(ZeroDivisionError), catalog.write() as conn:
        append_event(conn, place_id=place, at_ns=1, kind="x", body={})
        raise ZeroDivisionError
    with catalog.read() as conn:
        assert verify_chain(conn, place).events == 5


def test_chains_of_two_places_do_not_mix(catalog: Catalog, rows: Rows, place: int) -> None:
    with catalog.write() as conn:
        append_event(conn, place_id=rows.warm.id, at_ns=1, kind="other", body={})
        assert verify_chain(conn, rows.warm.id).events == 1
        assert verify_chain(conn, place).events == 5
    assert [event.kind for event in iter_events(catalog, place_id=rows.warm.id)] == ["other"]
    assert [event.seq for event in iter_events(catalog, place_id=place)] == [1, 2, 3, 4, 5]
    assert [event.body["n"] for event in iter_events(catalog, place_id=place, after_id=3)] == [4, 5]


def test_a_long_chain_is_read_in_pages(catalog: Catalog, rows: Rows) -> None:
    with catalog.write() as conn:
        for number in range(1201):
            append_event(conn, place_id=rows.warm.id, at_ns=number, kind="k", body={})
        assert verify_chain(conn, rows.warm.id).events == 1201
    assert [event.seq for event in iter_events(catalog, place_id=rows.warm.id)] == list(range(1, 1202))


def test_a_body_that_json_cannot_hold_is_refused(catalog: Catalog, place: int) -> None:
    with pytest.raises(ValueError), catalog.write() as conn:
        append_event(conn, place_id=place, at_ns=1, kind="x", body={"share": float("nan")})


def test_a_digest_over_members_minds_content_and_not_order() -> None:
    rows = [(1, b"a\xff", None), (2, "b", 5)]
    assert members_digest(rows) == members_digest(reversed(rows))
    assert len({members_digest(rows), members_digest(rows[:1]), members_digest([(1, "61ff", None), rows[1]])}) == 3

"""Keys: safe components, one prefix per team, and no two names in one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.errors import UsageError
from lifecycle.tiers.keys import check_key, check_temporary, encode_part, make_key


def test_a_key_reads_as_team_class_day_name() -> None:
    assert make_key("vision", "training", 20_513, "3f2a.tar.zst") == "vision/training/2026-03-01/3f2a.tar.zst"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("nlp_core-2", "nlp_core-2"),
        ("a.b", "a.b"),
        (".lifecycle", "=2elifecycle"),
        ("..", "=2e."),
        ("a/b", "a=2fb"),
        ("a b=c", "a=20b=3dc"),
        ("", "="),
        ("é", "=c3=a9"),
        ("\\xff", "=5cxff"),
    ],
)
def test_other_characters_are_written_as_their_bytes(text: str, part: str) -> None:
    assert encode_part(text) == part


@given(st.text(max_size=300), st.text(max_size=300))
def test_two_names_never_share_a_component(one: str, other: str) -> None:
    assert (encode_part(one) == encode_part(other)) == (one == other)


@given(st.text(max_size=400), st.text(max_size=400), st.integers(-(10**9), 10**9), st.text(max_size=400))
def test_every_key_made_is_a_key(team: str, class_name: str, day: int, unique: str) -> None:
    key = make_key(team, class_name, day, unique)
    assert len(check_key(key)) == 4
    assert key.isascii() and len(key) < 1024


def test_long_names_that_begin_alike_stay_apart() -> None:
    assert encode_part("x" * 200) != encode_part("x" * 201)
    assert len(encode_part("é" * 300)) <= 100


@pytest.mark.parametrize("key", ["a" * 255 + "/" + "b" * 255 + "/" + "c" * 255 + "/" + "d" * 255 + "/e" * 3])
def test_a_key_longer_than_any_store_takes_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="longer than 1024 bytes"):
        check_key(key)


def test_a_temporary_of_one_component_is_taken_as_it_is() -> None:
    assert check_temporary("b17-1.part") == "b17-1.part"

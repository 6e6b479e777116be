"""The name of a companion: its source's, with an ending that no layout takes for a log."""

from __future__ import annotations

from lifecycle.names import companion_name
from lifecycle.policy.never import is_never_claimed


def test_it_is_the_name_of_its_source_with_an_ending() -> None:
    assert companion_name(b"rank_3.log") == b"rank_3.log#errors"
    assert companion_name(b"rank_\xff.log.1.gz") == b"rank_\xff.log.1.gz#errors"


def test_a_file_can_have_it_however_long_its_source_is_called() -> None:
    longest, other = b"a" * 255, b"a" * 254 + b"b"
    assert len(companion_name(longest)) == len(companion_name(other)) == 255
    assert companion_name(longest) != companion_name(other)
    assert companion_name(b"a" * 248) == b"a" * 248 + b"#errors"


def test_no_layout_takes_it_for_a_log() -> None:
    assert is_never_claimed(companion_name(b"rank_3.log"))
    assert is_never_claimed(companion_name(b"a" * 255))
    assert not is_never_claimed(b"rank_3.log")

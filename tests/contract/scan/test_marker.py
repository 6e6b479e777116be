"""The marker of a place: written whole, read by anybody who may, never through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lifecycle.errors import Damaged, PlaceUnavailable
from lifecycle.scan.marker import Marker, read_marker, write_marker

MARKER = Marker(place_uid="u1", catalog_id="c1", generation=3, chain_head="ab12", kind="source", name="lustre")


def test_a_marker_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_marker(str(tmp_path), MARKER)
    assert read_marker(str(tmp_path)) == MARKER
    assert read_marker(os.fsencode(tmp_path)) == MARKER


def test_our_folder_is_written_by_us_alone_and_its_marker_is_read_by_all(tmp_path: Path) -> None:
    write_marker(str(tmp_path), MARKER)
    write_marker(str(tmp_path), MARKER)
    folder = tmp_path / ".lifecycle"
    assert folder.stat().st_mode & 0o777 == 0o755
    assert (folder / "place.json").stat().st_mode & 0o777 == 0o644
    assert os.listdir(folder) == ["place.json"]


def test_a_place_without_a_marker_has_none_and_gets_none_by_looking(tmp_path: Path) -> None:
    assert read_marker(str(tmp_path)) is None
    assert os.listdir(tmp_path) == []


def test_a_place_that_is_gone_is_not_one_without_a_marker(tmp_path: Path) -> None:
    with pytest.raises(PlaceUnavailable):
        read_marker(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": 1}', '{"format": 99}', '{"format": 1, "place_uid": 7}', "x" * 70_000]
)
def test_a_marker_that_is_none_is_damage(tmp_path: Path, text: str) -> None:
    write_marker(str(tmp_path), MARKER)
    (tmp_path / ".lifecycle/place.json").write_text(text)
    with pytest.raises(Damaged, match="marker"):
        read_marker(str(tmp_path))


def test_what_a_crash_left_half_written_is_not_read_and_goes_with_the_next_write(tmp_path: Path) -> None:
    write_marker(str(tmp_path), MARKER)
    (tmp_path / ".lifecycle/place.json.new").write_text('{"form')
    assert read_marker(str(tmp_path)) == MARKER
    write_marker(str(tmp_path), MARKER)
    assert os.listdir(tmp_path / ".lifecycle") == ["place.json"]


def test_a_link_in_the_place_of_our_folder_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / ".lifecycle").symlink_to(outside)
    with pytest.raises(PlaceUnavailable):
        write_marker(str(root), MARKER)
    with pytest.raises(PlaceUnavailable):
        read_marker(str(root))
    assert os.listdir(outside) == []


def test_a_link_in_the_place_of_the_temporary_is_not_written_through(tmp_path: Path) -> None:
    write_marker(str(tmp_path), MARKER)
    victim = tmp_path / "victim"
    victim.write_text("keep")
    (tmp_path / ".lifecycle/place.json.new").symlink_to(victim)
    with pytest.raises(PlaceUnavailable):
        write_marker(str(tmp_path), MARKER)
    assert victim.read_text() == "keep"


def test_a_folder_that_others_may_write_to_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / ".lifecycle").mkdir()
    (tmp_path / ".lifecycle").chmod(0o777)
    write_marker(str(tmp_path), MARKER)
    assert (tmp_path / ".lifecycle").stat().st_mode & 0o022 == 0


def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs another user")
    (tmp_path / ".lifecycle").mkdir()
    os.chown(tmp_path / ".lifecycle", 65534, 65534)
    with pytest.raises(PlaceUnavailable, match="belongs to user 65534"):
        write_marker(str(tmp_path), MARKER)

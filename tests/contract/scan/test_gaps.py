"""Rotated files that went before they were stored are said once, by set; nothing else is."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lifecycle.report.audit import gather_audit
from tests.crash.world import World

FOLDER = "vision/train-1"
FILES = tuple((f"{FOLDER}/rank_0.log{end}", "2h", 100 + n) for n, end in enumerate(("", ".1", ".2")))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", files=FILES).make()


def gaps(world: World) -> list[tuple[str, int, str]]:
    sql = "SELECT detail, files, example FROM findings WHERE kind = 'rotation_gap' ORDER BY detail"
    return [(row[0], row[1], row[2]) for row in world.rows(sql)]


def rotate(world: World, keep: int, content: bytes) -> None:
    """As logrotate does, with so many rotated files kept."""
    folder = world.logs / FOLDER
    (folder / f"rank_0.log.{keep}").unlink(missing_ok=True)
    for number in range(keep - 1, 0, -1):
        if (folder / f"rank_0.log.{number}").exists():
            os.rename(folder / f"rank_0.log.{number}", folder / f"rank_0.log.{number + 1}")
    os.rename(folder / "rank_0.log", folder / "rank_0.log.1")
    (folder / "rank_0.log").write_bytes(content)


def test_a_set_that_turns_over_between_two_runs_is_named_once(world: World) -> None:
    world.run("1h")
    for number in range(4):
        rotate(world, 2, b"round %d\n" % number * 9)
    world.run("2h")
    ((detail, files, example),) = gaps(world)
    assert (detail, files) == (f"{FOLDER}/rank_0.log", 3) and example.startswith(f"{FOLDER}/rank_0.log")
    world.run("3h")
    assert gaps(world) == []  # said once


def test_a_rotation_that_loses_nothing_is_none(world: World) -> None:
    world.run("1h")
    rotate(world, 9, b"round\n")
    rotate(world, 9, b"again\n")
    world.run("2h")
    assert gaps(world) == []


def test_what_was_stored_before_it_went_is_none(world: World) -> None:
    world.run("30h")
    for number in range(4):
        world.write(f"{FOLDER}/rank_0.log", b"x\n")
        rotate(world, 2, b"round %d\n" % number)
    world.run("31h")
    assert gaps(world) == []


def pack(world: World, name: str, to: str, *, keeps_time: bool = True) -> None:
    """As gzip does it for logrotate; kubelet's own leaves a time of its own."""
    plain, packed = world.logs / FOLDER / name, world.logs / FOLDER / to
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    if keeps_time:
        shutil.copystat(plain, packed)
    plain.unlink()


def test_what_a_rotator_has_compressed_did_not_go(world: World) -> None:
    """logrotate with delaycompress: yesterday's .1 is today's .2.gz; and kubelet, which keeps the name."""
    world.write(f"{FOLDER}/0.log", b"a container\n", age="2h")
    world.write(f"{FOLDER}/0.log.20260312-101010", b"a container before\n", age="3h")
    world.run("1h")
    rotate(world, 9, b"round\n")
    pack(world, "rank_0.log.3", "rank_0.log.3.gz")
    pack(world, "rank_0.log.2", "rank_0.log.2.gz")
    pack(world, "0.log.20260312-101010", "0.log.20260312-101010.gz", keeps_time=False)
    world.run("2h")
    assert gaps(world) == []


def test_a_log_that_went_on_and_was_compressed_at_once_did_not_go(world: World) -> None:
    """logrotate without delaycompress: the file that was live is .1.gz, and newer than it was seen."""
    world.run("1h")
    with (world.logs / FOLDER / "rank_0.log").open("ab") as out:
        out.write(b"more\n")
    rotate(world, 9, b"round\n")
    pack(world, "rank_0.log.1", "rank_0.log.1.gz")
    world.run("2h")
    assert gaps(world) == []


def test_what_was_compressed_covers_no_more_than_one_each(world: World) -> None:
    world.run("1h")
    rotate(world, 9, b"round\n")
    pack(world, "rank_0.log.2", "rank_0.log.2.gz")
    (world.logs / FOLDER / "rank_0.log.1").unlink()
    (world.logs / FOLDER / "rank_0.log.3").unlink()
    world.run("2h")
    assert [(detail, files) for detail, files, _ in gaps(world)] == [(f"{FOLDER}/rank_0.log", 2)]


def test_a_log_that_is_no_rotation_and_went_is_none(world: World) -> None:
    world.write(f"{FOLDER}/other.log", b"alone\n", age="2h")
    world.run("1h")
    (world.logs / FOLDER / "other.log").unlink()
    world.write(f"{FOLDER}/other.log", b"a job that began anew\n")
    (world.logs / FOLDER / "other.log").unlink()
    world.run("2h")
    assert gaps(world) == []


def test_a_whole_set_that_went_is_no_gap_of_it(world: World) -> None:
    world.write("nlp/train-2/rank_0.log", b"goes on\n", age="2h")
    world.run("1h")
    for path in (world.logs / FOLDER).iterdir():
        path.unlink()
    world.run("2h")
    assert gaps(world) == []


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="no logrotate here")
def test_logrotate_itself_is_seen_through(world: World, tmp_path: Path) -> None:
    world.run("1h")
    config = tmp_path / "logrotate.conf"
    config.write_text(f"{world.logs}/{FOLDER}/rank_0.log {{\n rotate 2\n size 1\n create 0644\n su root root\n}}\n")
    config.chmod(0o644)
    for number in range(4):
        command = ["logrotate", "--force", "--state", str(tmp_path / "state"), str(config)]
        subprocess.run(command, check=True, capture_output=True)
        (world.logs / FOLDER / "rank_0.log").write_bytes(b"round %d\n" % number * 50)
    world.run("2h")
    assert [(detail, files) for detail, files, _ in gaps(world)] == [(f"{FOLDER}/rank_0.log", 3)]
    with world.app("2h") as app:
        lines = gather_audit(app.catalog, app.policy, now=app.now()).attention
    assert any("rotates faster than runs come" in line.text for line in lines)

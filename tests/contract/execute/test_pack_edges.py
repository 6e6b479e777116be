"""An archive holds whole, verified members or is not there at all; what could not be stored stays where it is (B11)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lifecycle import acting
from lifecycle.catalog.places import Place
from lifecycle.errors import ExitCode
from lifecycle.execute import pack
from lifecycle.model import TierName
from lifecycle.ports import TierSpec
from lifecycle.report.figures import RunReport
from tests.contract.execute.meddling import once_before
from tests.crash.world import World, digest_of, work_done

FILES = tuple((f"vision/train-1/rank_{rank}.log", "3d", 2000 + rank) for rank in range(20))
FIRST = FILES[0][0]


def path(rank: int) -> str:
    return FILES[rank][0]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", files=FILES).make()


def present(world: World) -> set[str]:
    return {name for name, original in world.originals().items() if original in ("open", "settled", "missing")}


class TestMembersThatChangeBeforeTheyAreRead:
    BAD = (7, 9, 13, 15, 17)

    @pytest.fixture
    def report(self, world: World, monkeypatch: pytest.MonkeyPatch) -> RunReport:
        files = {rank: world.logs / path(rank) for rank in self.BAD}
        broken = files[13].stat().st_ino
        real = os.read

        def read(fd: int, size: int) -> bytes:
            if os.fstat(fd).st_ino == broken:
                raise OSError(5, "Input/output error")
            return real(fd, size)

        def spoil() -> None:
            os.truncate(files[7], 100)
            files[9].unlink()
            with files[15].open("ab") as file:
                file.write(b"and more\n")
            os.truncate(files[17], 0)
            monkeypatch.setattr(os, "read", read)

        once_before(monkeypatch, "run_pack", FIRST, spoil)
        report = world.run("2h")
        monkeypatch.setattr(os, "read", real)
        return report

    def test_stay_and_all_others_are_stored(self, world: World, report: RunReport) -> None:
        assert report.exit_code is ExitCode.PARTIAL
        assert present(world) == {path(rank) for rank in self.BAD}
        good = [path(rank) for rank in range(20) if rank not in self.BAD]
        assert world.broken_books() == []
        for name in good:
            assert world.segments()[name].tier is TierName.WARM

    def test_are_each_reported(self, world: World, report: RunReport) -> None:
        told = [problem for problem in report.problems if problem.phase == "merge"]
        assert len(told) == len(self.BAD)
        assert "Input/output error" in str(told)

    def test_go_the_next_time_if_they_can_be_read(self, world: World, report: RunReport) -> None:
        world.run("50h")  # what changed must be a day old, what failed has rested
        assert present(world) == {path(9)}
        assert world.broken_books() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root sees everything")
def test_a_member_that_may_not_be_read_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    once_before(monkeypatch, "run_pack", FIRST, lambda: (world.logs / path(11)).chmod(0))
    report = world.run("2h")
    assert report.exit_code is ExitCode.PARTIAL
    assert present(world) == {path(11)}


def test_a_link_in_the_place_of_a_member_is_not_followed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = world.folder / "secret"
    secret.write_bytes(b"S" * FILES[3][2])

    def swap() -> None:
        (world.logs / path(3)).unlink()
        (world.logs / path(3)).symlink_to(secret)

    once_before(monkeypatch, "run_pack", FIRST, swap)
    world.run("2h")
    assert (path(3), digest_of(secret.read_bytes())) not in {
        pair for pair in world.readable() if world.segments()[pair[0]].tier is not TierName.HOT
    }
    assert (world.logs / path(3)).is_symlink()
    assert secret.exists()


def test_a_large_member_that_shrinks_while_it_is_read_costs_the_archive_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (*FILES[:3], ("vision/train-1/rank_99.log", "3d", 6_000_000))
    world = World(tmp_path / "world", files=files, below="16MiB").make()
    large = world.logs / files[3][0]
    real = pack.chunks_of

    def chunks(fd: int) -> Iterator[bytes]:
        for number, chunk in enumerate(real(fd)):
            if number == 1:
                os.truncate(large, 2_500_000)
            yield chunk

    monkeypatch.setattr(pack, "chunks_of", chunks)
    report = world.run("2h")
    assert report.exit_code is ExitCode.PARTIAL
    assert present(world) == {name for name, _, _ in files}
    assert world.objects()[TierName.WARM] == []
    assert world.broken_books() == []

    monkeypatch.setattr(pack, "chunks_of", real)
    world.run("4h")
    assert present(world) == {files[3][0]}  # it was written just now
    assert world.broken_books() == []


class TestATargetWithoutSpace:
    @pytest.fixture(params=["create", "write", "seal", "publish"])
    def step(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        real: Callable[[Place], TierSpec] = vars(acting)["tier_spec"]

        def spec(place: Place) -> TierSpec:
            found = real(place)
            if not found.root.endswith("warm"):
                return found
            options = (("inner", "local"), ("fault", f"{request.param}:full:1"))
            return TierSpec(kind="faulty", root=found.root, options=options)

        monkeypatch.setattr(acting, "tier_spec", spec)
        return str(request.param)

    def test_keeps_the_originals_and_stops_nothing_else(
        self, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files = (*FILES, ("nlp/train-2/rank_0.log", "10d", 900), ("speech/train-3/rank_0.log", "3d", 900))
        world = World(tmp_path / "world", files=files).make()
        report = world.run("2h")

        assert report.exit_code is ExitCode.PARTIAL
        assert present(world) == {name for name, age, _ in files if age == "3d"}
        assert world.objects()[TierName.WARM] == []
        assert len(world.objects()[TierName.COLD]) == 1  # what is old enough for cold goes there
        assert world.readable() == world.manifest()
        assert world.broken_books() == []

        monkeypatch.undo()
        assert world.run("2h").exit_code is ExitCode.DONE
        assert present(world) == set()
        assert world.readable() == world.manifest()
        assert world.broken_books() == []
        assert work_done(world.run("2h")) == 0


class TestADamagedArchive:
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        files = (*FILES[:4], ("nlp/train-2/rank_0.log", "3d", 900))
        world = World(tmp_path / "world", files=files).make()
        world.run("2h")
        (key,) = [key for key in world.objects()[TierName.WARM] if key.startswith("vision")]
        self.damaged = world.folder / "warm" / key
        body = bytearray(self.damaged.read_bytes())
        body[40] ^= 0x10
        self.damaged.write_bytes(body)
        return world

    def test_is_quarantined_while_others_go_on(self, world: World) -> None:
        report = world.run("8d")

        assert report.exit_code is ExitCode.DAMAGE
        assert world.rows("SELECT tier, state FROM archives ORDER BY tier, state") == [
            ("cold", "live"), ("warm", "quarantined"), ("warm", "removed"),
        ]  # fmt: skip
        assert self.damaged.exists()
        assert world.segments()["nlp/train-2/rank_0.log"].tier is TierName.COLD
        assert world.broken_books() == []

    def test_is_never_removed_later(self, world: World) -> None:
        world.run("8d")
        for day in ("9d", "45d", "50d", "60d"):
            world.run(day)
        assert self.damaged.exists()
        assert world.segments()[FIRST].tier is TierName.WARM
        assert world.broken_books() == []

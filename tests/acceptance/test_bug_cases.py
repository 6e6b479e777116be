"""Real faults of other tools, each as a small input to the real command: the kind of fault in the test's name.

What is damaged, killed or full in the middle of a batch stands in ``tests/contract/execute`` and ``tests/crash``;
networks, object stores and shared databases come with their tiers.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.site import CHECKOUT, DAY, Site

LINES = b"".join(b"%06d loss 1.25\n" % step for step in range(200))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "logs").mkdir()
    return Site(tmp_path)


def make(site: Site, *options: str) -> None:
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal", *options)


def rows(site: Site, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(site("ls", "--json", *arguments))["rows"]
    return found


def hot(site: Site) -> set[bytes]:
    """Files below the source but our own, relative to it."""
    found = set()
    for folder, folders, names in os.walk(site.logs):
        folders[:] = [name for name in folders if name != b".lifecycle"]
        found.update(os.path.relpath(os.path.join(folder, name), site.logs) for name in names)
    return found


def readable(site: Site) -> Counter[tuple[bytes, str]]:
    """Name and digest of all that is in hot or can be restored: the set that only policy may make smaller."""
    back = site.folder / f"back-{time.monotonic_ns()}"
    done = site.run("restore", "--all", "--to", str(back)) if _has_stored(site) else None
    assert done is None or done.returncode == 0
    found: Counter[tuple[bytes, str]] = Counter()
    for path in hot(site):
        found[os.path.basename(path), _digest(os.path.join(site.logs, path))] += 1
    for folder, _, names in os.walk(os.fsencode(back)):
        for name in names:
            found[name, _digest(os.path.join(folder, name))] += 1
    return found


def _has_stored(site: Site) -> bool:
    done = site.run("ls", "--tier", "warm", "--tier", "cold", "--by", "tier", code=None)
    return done.returncode == 0


def _digest(path: bytes) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


# --- scan -------------------------------------------------------------------------------------------------------------


def test_b01_an_unmounted_or_shrunken_root_is_not_taken_for_deleted(site: Site) -> None:
    for rank in range(40):
        site.write(b"vision/job/rank_%d.log" % rank, LINES, days=0.3)
    make(site)
    site("run")
    before = {row["id"]: row["last_write"] for row in rows(site)}
    away = site.folder / "away"
    (site.folder / "logs").rename(away)
    (site.folder / "logs").mkdir()
    assert "no marker" in site("run", "--now", "+1h", code=3)
    assert "is it mounted?" in site("init", code=3)
    assert not (site.folder / "logs/.lifecycle").exists()
    (site.folder / "logs").rmdir()
    away.rename(site.folder / "logs")
    gone = [site.folder / f"logs/vision/job/rank_{rank}.log" for rank in range(24)]
    for file in gone:
        file.rename(site.folder / file.name)
    assert "shrank by 60%" in site("run", "--now", "+2h", code=3)
    for file in gone:
        (site.folder / file.name).rename(file)
    site("run", "--now", "+3h")
    assert {row["id"]: row["last_write"] for row in rows(site)} == before


ODD_NAMES = (
    b"rank\xff.log", b"\xc0\xaf.log", b"a\nb.log", b"-rf.log", b"=1+1.log", b"x" * 251 + b".log",
    "训练日志".encode() * 20 + "训练日".encode() + b".log", b"z_normal_1.log", b"z_normal_2.log", b"z_normal_3.log",
)  # fmt: skip


def test_b02_an_odd_name_goes_all_the_way_and_stops_no_other(site: Site) -> None:
    for at, name in enumerate(ODD_NAMES):
        site.write(b"vision/job/" + name, b"%d\n" % at, days=2)
    before = None
    make(site)
    before = readable(site)
    site("run", "--now", "+2h")
    assert {os.path.basename(path) for path in hot(site)} == set()
    site("run", "--now", "+8d")
    assert readable(site) == before and len(before) == len(ODD_NAMES)
    table = list(csv.DictReader(io.StringIO(site("ls", "--format", "csv"))))
    assert len(table) == len(ODD_NAMES) == len(rows(site))
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in table for cell in row.values() if cell)


# --- classes and policy -----------------------------------------------------------------------------------------------


def test_b03_the_letters_error_in_a_text_or_a_name_make_no_error_class(site: Site) -> None:
    texts = {
        b"a.log": b"INFO step=10 grad_error=0.001\n",
        b"b.log": b'{"level":"info","message":"0 errors"}\n',
        b"d_error_rate.log": b"clean\n",
        b"terror.log": b"clean\n",
        b"e.log": "错误\n".encode("gbk"),
        b"error_3.log": b"Traceback\n",
    }
    for name, text in texts.items():
        site.write(b"vision/train/" + name, text, days=2)
    make(site)
    site("run", "--now", "+2h")
    found = {row["path"].rpartition("/")[2]: row["class"] for row in rows(site)}
    assert found == {name.decode(): "training" for name in texts} | {"error_3.log": "error"}
    assert "platform.yaml" in site("explain", "logs/vision/train/error_3.log")  # the rule that decided


def test_b04_a_second_block_of_one_class_is_refused_with_both_lines(site: Site) -> None:
    make(site)
    site.edit_policy("  - name: eval\n", "  - name: eval\n    match: [x]\n")
    said = site.run("run", code=2).stderr
    assert len(set(re.findall(r"platform\.yaml:(\d+)|line (\d+)", said))) >= 2 and "match" in said
    assert hot(site) == set()


def test_b07_a_policy_that_changes_during_the_run_counts_from_the_next(site: Site) -> None:
    site.write(b"vision/job-1/rank_0.log", LINES, days=2)
    make(site)
    policy = site.folder / "policies/platform.yaml"
    hook = (
        "import pathlib, lifecycle.session as s\nreal = s.scan_place\n"
        f"def scan(*a, **k):\n    p = pathlib.Path({str(policy)!r}); t = p.read_text()\n"
        "    p.write_text(t.replace('warm_after: 24h', 'warm_after: 6d'))\n"
        "    return real(*a, **k)\ns.scan_place = scan\n"
    )
    done = _hooked(site, hook, "run", "--now", "+2h")
    assert done.returncode == 0 and "hot → warm" in done.stdout
    assert "warm_after: 6d" in policy.read_text()
    used = json.loads(done.stderr.splitlines()[-1])["policy_digest"]
    assert used[:6] not in site("policy", "show").splitlines()[0]


def test_b07_a_root_that_becomes_another_volume_in_mid_run_is_left_alone(site: Site) -> None:
    for rank in range(5):
        site.write(b"vision/job-1/rank_%d.log" % rank, LINES, days=2)
    make(site)
    other = site.folder / "other"
    other.joinpath("vision/job-1").mkdir(parents=True)
    for rank in range(5):
        other.joinpath(f"vision/job-1/rank_{rank}.log").write_bytes(b"somebody else's\n")
    logs = site.folder / "logs"
    hook = (
        "import os, lifecycle.session as s\nreal = s.scan_place\n"
        f"def scan(*a, **k):\n    got = real(*a, **k); os.rename({str(logs)!r}, {str(logs)!r} + '.away')\n"
        f"    os.symlink({str(other)!r}, {str(logs)!r}); return got\ns.scan_place = scan\n"
    )
    done = _hooked(site, hook, "run", "--now", "+2h")
    assert done.returncode in (1, 3), done.stdout
    assert [path.read_bytes() for path in sorted(other.rglob("*.log"))] == [b"somebody else's\n"] * 5
    assert len(list(Path(f"{logs}.away").rglob("*.log"))) == 5


def _hooked(site: Site, hook: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = ["lifecycle", *arguments]
    code = f"{hook}\nimport sys\nsys.argv = {words!r}\nfrom lifecycle.cli.main import main\nmain()"
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=site.folder, env=environ, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip


# --- moves ------------------------------------------------------------------------------------------------------------


class Writer(threading.Thread):
    """Appends a numbered line each millisecond and sets the time of last write back, until told to stop."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.lines = 0
        self._path = path
        self._stop_it = threading.Event()

    def run(self) -> None:
        old = time.time() - 40 * DAY
        with self._path.open("ab", buffering=0) as file:
            while not self._stop_it.is_set():
                file.write(b"%08d\n" % self.lines)
                self.lines += 1
                os.utime(self._path, (old, old))
                time.sleep(0.001)

    def finish(self) -> int:
        self._stop_it.set()
        self.join()
        return self.lines


def test_b08_of_a_log_that_is_still_written_every_line_exists_once(site: Site) -> None:
    for rank in range(3):
        site.write(b"vision/job/rank_%d.log" % rank, LINES, days=2)
    path = site.folder / "logs/vision/job/rank_7.log"
    path.touch()
    make(site)
    writer = Writer(path)
    writer.start()
    try:
        for hour in (2, 3, 4):
            site("run", "--now", f"+{hour}h")
            assert path.exists()
    finally:
        lines = writer.finish()
    site("run", "--now", "+6h")
    site("run", "--now", "+9h")
    site("restore", "--job", "job", "--rank", "7", "--to", "back")
    got = b"".join(sorted(part.read_bytes() for part in (site.folder / "back").rglob("rank_7.log*")))
    got += path.read_bytes() if path.exists() else b""
    assert sorted(got.splitlines()) == [b"%08d" % line for line in range(lines)] and lines > 100


def test_b09_a_move_onto_itself_is_refused(site: Site) -> None:
    site.write(b"vision/job/rank_0.log", LINES, days=9)
    make(site)
    policy = site.folder / "policies/platform.yaml"
    text = policy.read_text()
    warm, cold = f'"{site.folder}/tiers/warm"', f'"{site.folder}/tiers/cold"'
    link = site.folder / "link"
    link.symlink_to(site.folder / "tiers/warm")
    (site.folder / "hotlink").symlink_to(site.folder / "logs")
    for wrong in (warm, f'"{site.folder}/tiers/warm/"', f'"{site.folder}/tiers/../tiers/warm"', f'"{link}"',
                  f'"{site.folder}/hotlink"', f'"{site.folder}/logs"'):  # fmt: skip
        policy.write_text(text.replace(cold, wrong))
        site.run("run", "--now", "+2h", code=2)
    policy.write_text(text)
    assert hot(site) == {b"vision/job/rank_0.log"}


# --- expiry -----------------------------------------------------------------------------------------------------------


def test_b12_an_archive_with_one_member_whose_time_has_not_come_stays(site: Site) -> None:
    site.write(b"vision/job-a/rank_0.log", LINES, days=40)
    site.write(b"vision/job-b/rank_0.log", LINES, days=40)
    site.write(b"vision/job-b/rank_1.log", LINES, days=3)  # the job still writes: its logs are kept
    make(site)
    site("run", "--now", "+2h")
    site("run", "--now", "+2d")
    site("run", "--now", "+6d")
    site("restore", "--job", "job-b", "--to", "back")
    assert (site.folder / "back/logs/vision/job-b/rank_0.log").read_bytes() == LINES
    assert "its archive has members whose time has not come" in site("plan", "--now", "+7d")


def test_b22_an_impossible_time_is_no_great_age(site: Site) -> None:
    times = {b"zero.log": 0, b"before.log": -1, b"later.log": 2_903_000_000, b"sound.log": time.time() - 40 * DAY}
    for name, when in times.items():
        site.write(b"vision/job-%s/" % name[:2] + name, LINES, days=1)
        os.utime(os.path.join(site.logs, b"vision/job-%s/" % name[:2] + name), (when, when))
    make(site)
    for now in ("+2h", "+3d", "+8d", "+60d"):
        site("run", "--now", now)
    assert {os.path.basename(path) for path in hot(site)} == {b"zero.log", b"before.log", b"later.log"}
    assert "age unknown 3" in site("audit")


def test_b23_what_never_reached_its_tier_does_not_expire(site: Site) -> None:
    site.write(b"vision/job/rank_0.log", LINES, days=0.1)
    make(site)
    site("run", "--now", "+1h")
    (site.folder / "tiers/warm").rename(site.folder / "warm-away")
    (site.folder / "tiers/cold").rename(site.folder / "cold-away")
    for day in (2, 9, 20, 35, 41, 45):
        site("run", "--now", f"+{day}d", code=3)
    assert hot(site) == {b"vision/job/rank_0.log"}
    alarm = site("audit", "--check", code=7)
    assert "!! warm" in alarm and "!! cold" in alarm


# --- usage ------------------------------------------------------------------------------------------------------------


def test_b21_usage_is_allocated_bytes_and_a_file_with_two_names_is_left_alone(site: Site) -> None:
    sparse = site.folder / "logs/vision/job/sparse.log"
    sparse.parent.mkdir(parents=True)
    with sparse.open("wb") as file:
        file.truncate(1 << 30)
        file.write(b"head\n")
    site.write(b"vision/job/linked.log", LINES * 10, days=2)
    (site.folder / "logs/nlp/job").mkdir(parents=True)
    os.link(site.folder / "logs/vision/job/linked.log", site.folder / "logs/nlp/job/linked.log")
    make(site)
    site("run", "--now", "+2h")
    report = json.loads(site("audit", "--json"))
    (vision,) = [row for row in report["teams"] if row["team"] == "vision"]
    assert vision["usage"]["logical_bytes"] == 1 << 30
    assert vision["usage"]["stored_bytes"] == sparse.stat().st_blocks * 512 < 1 << 20
    assert {b"vision/job/linked.log", b"nlp/job/linked.log"} <= hot(site)
    (site.folder / "logs/nlp/job/linked.log").unlink()
    site("run", "--now", "+2d")
    assert b"vision/job/linked.log" not in hot(site)  # one name is left: it moves like any other


def test_b30_sums_come_from_what_is_there(site: Site) -> None:
    for rank in range(10):
        site.write(b"vision/job/rank_%d.log" % rank, LINES * 50, days=2)
    make(site)
    site("run", "--now", "+2h")
    (site.folder / "tiers/warm/unknown.bin").write_bytes(b"x" * 5000)
    site.write(b"vision/job/rank_11.log", LINES, days=0.1)
    site("run", "--now", "+3h")
    (site.folder / "logs/vision/job/rank_11.log").unlink()
    site("run", "--now", "+4h")
    report = json.loads(site("audit", "--json"))
    by_tier = {row["tier"]: row["usage"] for row in report["tiers"]}
    for key in ("segments", "logical_bytes", "stored_bytes"):
        assert sum(row["usage"][key] for row in report["teams"]) == sum(usage[key] for usage in by_tier.values())
        assert all(usage[key] >= 0 for usage in by_tier.values())
    assert by_tier["warm"]["segments"] == 10 and by_tier["warm"]["stored_bytes"] < by_tier["warm"]["logical_bytes"]
    assert "missing 1" in site("audit")


# --- restore ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def stored(site: Site) -> Site:
    site.write(b"vision/job/rank_0.log", LINES, days=25)
    make(site)
    site("run", "--now", "+2h")
    return site


def test_b24_a_restore_over_something_else_gives_exactly_what_was_stored(stored: Site) -> None:
    at = stored.folder / "back/logs/vision/job/rank_0.log"
    outside = stored.folder / "outside.log"
    outside.write_bytes(b"outside\n")

    def longer() -> None:
        at.write_bytes(b"x" * 1_000_000)

    def same_size() -> None:
        at.write_bytes(b"y" * len(LINES))

    def read_only() -> None:
        at.write_bytes(b"z" * 5000)
        at.chmod(0o400)

    def link() -> None:
        at.symlink_to(outside)

    for before in (longer, same_size, read_only, link):
        at.parent.mkdir(parents=True, exist_ok=True)
        at.unlink(missing_ok=True)
        before()
        shown = os.readlink(at) if at.is_symlink() else at.read_bytes()
        done = stored.run("restore", "--all", "--to", "back", code=3)
        assert (os.readlink(at) if at.is_symlink() else at.read_bytes()) == shown, done.stdout
        stored("restore", "--all", "--to", "back", "--overwrite")
        assert not at.is_symlink() and at.read_bytes() == LINES
    assert outside.read_bytes() == b"outside\n"
    at.unlink()
    at.mkdir()
    stored.run("restore", "--all", "--to", "back", "--overwrite", code=3)
    assert at.is_dir()


def test_b25_a_restored_file_is_not_swept_again_and_an_edit_is_a_segment_of_its_own(stored: Site) -> None:
    file = stored.folder / "logs/vision/job/rank_0.log"
    before = file.parent / "note.txt"
    assert not file.exists()
    stored("restore", "--job", "job", "--in-place")
    written = file.stat().st_mtime_ns
    objects = {path.name for path in (stored.folder / "tiers").rglob("*.zst")}
    stored("run", "--now", "+4h")
    assert file.exists() and file.stat().st_mtime_ns == written
    stored("run", "--now", "+9d")  # the stay is over and it is unchanged: dropped, and nothing is stored anew
    assert not file.exists() and not before.exists()
    assert {path.name for path in (stored.folder / "tiers").rglob("*.zst")} == objects


def test_b25_an_edited_file_keeps_its_edit(stored: Site) -> None:
    file = stored.folder / "logs/vision/job/rank_0.log"
    stored("restore", "--job", "job", "--in-place")
    with file.open("ab") as log:
        log.write(b"a note of 03:00\n")
    stored("run", "--now", "+9d")
    stored("run", "--now", "+10d")
    stored("restore", "--job", "job", "--to", "back")
    texts = {path.read_bytes() for path in (stored.folder / "back").rglob("*") if path.is_file()}
    texts |= {file.read_bytes()} if file.exists() else set()
    assert {LINES, LINES + b"a note of 03:00\n"} <= texts


# --- schedule and exit codes ------------------------------------------------------------------------------------------


@pytest.fixture
def paused(site: Site) -> Iterator[subprocess.Popen[str]]:
    """A run that stops itself after its scan, lease in hand."""
    for rank in range(5):
        site.write(b"vision/job/rank_%d.log" % rank, LINES, days=2)
    make(site)
    code = (
        "import os, signal, lifecycle.session as s\nreal = s.scan_place\n"
        "def scan(*a, **k):\n    got = real(*a, **k); os.kill(os.getpid(), signal.SIGSTOP); return got\n"
        "s.scan_place = scan\nimport sys\nsys.argv = ['lifecycle', 'run', '--now', '+2h']\n"
        "from lifecycle.cli.main import main\nmain()"
    )
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=site.folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()


def test_b27_a_run_that_was_paused_does_its_work_once(site: Site, paused: subprocess.Popen[str]) -> None:
    said = site.run("run", "--now", "+3h", code=5).stderr
    assert f"pid {paused.pid}" in said and "since" in said
    paused.send_signal(signal.SIGCONT)
    out, err = paused.communicate(timeout=60)
    assert paused.returncode == 0, out + err
    site("run", "--now", "+4h")
    assert hot(site) == set() and len(list((site.folder / "tiers").rglob("*.zst"))) == 1


def test_b29_each_phase_counts_in_the_exit_code(site: Site) -> None:
    make(site)
    site("run", code=0)  # nothing to do
    os.mkfifo(site.folder / "logs/pipe.log")
    os.mknod(site.folder / "logs/sock.log", 0o140600)
    site("run", "--now", "+1h", code=0)  # special files are no errors
    (site.folder / "tiers/warm/.lifecycle/place.json").unlink()
    done = site.run("run", "--now", "+2h", code=3)
    assert json.loads(done.stderr.splitlines()[-1])["exit_code"] == 3
    site.edit_policy("expire_after: 7d", "expires_after: 7d")
    done = site.run("run", "--now", "+3h", code=2)
    assert json.loads(done.stderr.splitlines()[-1])["exit_code"] == 2


def test_b31_links_and_other_names_lead_nowhere(site: Site) -> None:
    outside = site.folder / "outside"
    outside.mkdir()
    secret = outside / "secret.log"
    secret.write_bytes(b"key\n")
    os.utime(secret, (time.time() - 40 * DAY,) * 2)
    site.write(b"vision/job/rank_0.log", LINES, days=2)
    team = site.folder / "logs/vision"
    (team / "keys").symlink_to(outside)
    (team / "secret.log").symlink_to(secret)
    (team / "loop").symlink_to(team)
    os.link(secret, team / "hard.log")
    make(site)
    for now in ("+2h", "+9d", "+50d", "+60d"):
        site("run", "--now", now)
    assert secret.read_bytes() == b"key\n" and secret.stat().st_nlink == 2
    assert {b"vision/keys", b"vision/loop"} <= {
        os.path.relpath(os.fsencode(path), site.logs) for path in team.iterdir()
    }


# --- what a case run of the whole list found ------------------------------------------------------------------------


def test_b22_a_time_that_no_database_can_hold_stops_nobody(site: Site) -> None:
    site.write(b"vision/job-1/rank_0.log", LINES, days=2)
    far = site.folder / "logs/vision/job-2/far.log"
    far.parent.mkdir(parents=True)
    far.write_bytes(LINES)
    os.utime(far, ns=(13_000_000_000 * 10**9,) * 2)
    make(site)
    assert "age unknown" in site("plan", "--now", "+2h")
    site("run", "--now", "+2h")
    site("run", "--now", "+3h")
    assert hot(site) == {b"vision/job-2/far.log"}


def test_b22_a_time_ten_years_before_first_sight_is_not_believed(site: Site) -> None:
    old = site.folder / "logs/vision/job/y2009.log"
    old.parent.mkdir(parents=True)
    old.write_bytes(LINES)
    os.utime(old, (time.time() - 11 * 365 * DAY,) * 2)
    make(site)
    for now in ("+2h", "+3d", "+60d"):
        site("run", "--now", now)
    assert old.exists() and "age unknown 1" in site("audit")


def test_b22_a_time_that_lay_ahead_counts_once_it_is_past(site: Site) -> None:
    ahead = site.folder / "logs/vision/job/ahead.log"
    ahead.parent.mkdir(parents=True)
    ahead.write_bytes(LINES)
    os.utime(ahead, (time.time() + 3 * DAY,) * 2)
    make(site)
    site("run", "--now", "+2h")
    assert "age unknown 1" in site("audit")
    site("run", "--now", "+5d")
    assert "age unknown 0" in site("audit") and not ahead.exists()


def test_b01_a_mount_over_known_logs_is_reported(site: Site) -> None:
    for rank in range(5):
        site.write(b"vision/job/rank_%d.log" % rank, LINES, days=0.1)
    site.write(b"nlp/job/rank_0.log", LINES, days=0.1)
    make(site)
    site("run")
    hook = (  # what the kernel says once something is mounted there; a test cannot mount
        "import lifecycle.scan.handles as h\nreal = h._mount_points_below\n"
        "h._mount_points_below = lambda path: real(path) | ({b'vision'} if path.endswith(b'/logs') else set())\n"
    )
    done = _hooked(site, hook, "run", "--now", "+1h")
    assert done.returncode == 3 and "mounted over it: 5 known files are hidden" in done.stdout, done.stdout
    site("run", "--now", "+2h")


def test_b07_files_of_a_tree_that_came_back_are_seen_again(site: Site) -> None:
    for rank in range(3):
        site.write(b"vision/job/rank_%d.log" % rank, LINES, days=2)
    make(site)
    site("scan", "--now", "+2h")
    real, decoy = site.folder / "logs", site.folder / "decoy"
    subprocess.run(["cp", "-a", str(real), str(decoy)], check=True)
    real.rename(site.folder / "kept")
    decoy.rename(real)
    site("run", "--now", "+3h")  # the copies go
    real.rename(site.folder / "gone")
    (site.folder / "kept").rename(real)
    assert "3 new" in site("run", "--now", "+4h")
    assert len(rows(site)) == 6 and hot(site) == set()


def test_b18_a_catalog_out_of_a_backup_acts_again_once_it_was_accepted(site: Site) -> None:
    site.write(b"vision/job/rank_0.log", LINES, days=2)
    make(site)
    site("run", "--now", "+1m")
    catalog = site.folder / "policies/catalog.db"
    backup = catalog.read_bytes()
    site("run", "--now", "+2m")
    catalog.write_bytes(backup)
    assert "until lifecycle catalog accept" in site("run", "--now", "+2h", code=3)
    assert hot(site) == {b"vision/job/rank_0.log"}
    assert "source logs: accepted" in site("catalog", "accept", "--reason", "disk of the catalog died")
    site("run", "--now", "+3h")
    assert hot(site) == set()
    assert "nothing to accept" in site("catalog", "accept", "--reason", "again")


def test_b18_a_catalog_whose_revision_is_gone_is_damage(site: Site) -> None:
    import sqlite3

    make(site)
    with sqlite3.connect(site.folder / "policies/catalog.db") as connection:
        connection.execute("DELETE FROM alembic_version")
    assert "its schema's revision is gone" in site.run("run", code=6).stderr


def test_b24_a_restore_does_not_follow_a_link_out_of_its_target(stored: Site) -> None:
    elsewhere = stored.folder / "elsewhere"
    elsewhere.mkdir()
    (stored.folder / "back").mkdir()
    (stored.folder / "back/logs").symlink_to(elsewhere)
    stored.run("restore", "--all", "--to", "back", "--overwrite", code=3)
    assert list(elsewhere.iterdir()) == []


def test_b24_a_file_that_is_there_as_it_was_is_no_problem(stored: Site) -> None:
    stored("restore", "--all", "--to", "back")
    assert "1 file there already" in stored("restore", "--all", "--to", "back")


def test_b25_a_rehearsal_s_stay_counts_from_its_own_clock(stored: Site) -> None:
    stored("run", "--now", "+3d")
    stored("restore", "--job", "job", "--in-place")
    stored("run", "--now", "+4d")
    assert hot(stored) == {b"vision/job/rank_0.log"}


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_b29_a_closed_output_is_no_failure(site: Site, closed: str) -> None:
    make(site)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        ["/bin/bash", "-c", f"{sys.executable} -m lifecycle run {closed}"], cwd=site.folder, env=environ,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr

"""The real command on a small tree: what it prints where, what it exits with, and what it leaves alone."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

CHECKOUT = Path(__file__).parents[2]
DAY = 86_400


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Site:
    """A tree, a policy, and the command on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self.environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT), "LIFECYCLE_POLICIES": "policies"}

    def __call__(self, *arguments: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "lifecycle", *arguments], cwd=self.folder, env=self.environ, capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def write(self, path: str, *, days: float, text: str = "step 1 loss 2.0\n") -> Path:
        file = self.logs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text * 20)
        at = file.stat().st_mtime - days * DAY
        os.utime(file, (at, at))
        return file

    def snapshot(self) -> dict[str, tuple[int, int, int, bytes]]:
        """Every name below the site with size, mtime, inode and content: what a preview must not change."""
        return {
            str(path): (stat.st_size, stat.st_mtime_ns, stat.st_ino, path.read_bytes() if path.is_file() else b"")
            for path in sorted(self.folder.rglob("*"))
            if not path.is_fifo() and not path.is_socket()
            for stat in [path.lstat()]
        }


def _make_site(folder: Path) -> Site:
    site = Site(folder)
    for rank in range(4):
        site.write(f"vision/train-1/rank_{rank}.log", days=2)
        site.write(f"nlp/eval-3/eval/rank_{rank}.log", days=9)
    site.write("vision/train-1/error.log", days=3)
    made = site(
        "init", "policies", "--source", "logs", "--tiers", "tiers", "--catalog", "state/catalog.db", "--rehearsal"
    )
    assert made.code == 0, made.err
    return site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return _make_site(tmp_path)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site after one run; tests that use it only read."""
    site = _make_site(tmp_path_factory.mktemp("site"))
    done = site("run", "--now", "+2h")
    assert done.code == 0, done.out + done.err
    return site


# --- a preview changes nothing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [("plan", "--now", "+2h"), ("plan", "--now", "+2h", "--list"), ("run", "--dry-run", "--now", "+2h"),
     ("plan", "--no-scan"), ("plan", "--root", "logs"), ("audit",), ("ls",), ("policy", "check"),
     ("catalog", "status")],
    ids=" ".join,
)  # fmt: skip
def test_what_only_looks_changes_nothing(arguments: tuple[str, ...], ran: Site) -> None:
    before = ran.snapshot()
    done = ran(*arguments)
    assert done.code == 0, done.err
    assert ran.snapshot() == before


def test_a_dry_run_and_a_plan_say_the_same(site: Site) -> None:
    now = "2030-01-01T00:00Z"
    plan, dry = site("plan", "--now", now), site("run", "--dry-run", "--now", now)
    assert [plan.lines[1:], plan.code] == [dry.lines[1:], dry.code]
    assert any(line.startswith("merge") for line in plan.lines)


def test_the_run_does_what_the_plan_file_lists(site: Site) -> None:
    planned = site("plan", "--now", "+2h", "--out", "tonight.plan", "--json")
    assert planned.code == 0, planned.err
    lines = json.loads(planned.out)["plan"]["lines"]
    expected = sum(line["segments"] for line in lines if line["action"] in ("merge", "transition"))
    done = site("run", "--plan", "tonight.plan", "--now", "+2h", "--json")
    assert done.code == 0, done.err
    assert sum(phase["segments"] for phase in json.loads(done.lines[-1])["phases"]) == expected > 0


def test_a_tree_without_a_policy_or_a_catalog_can_be_planned(tmp_path: Path) -> None:
    site = Site(tmp_path)
    del site.environ["LIFECYCLE_POLICIES"]
    site.write("vision/train-1/rank_0.log", days=3)
    done = site("plan", "--root", "logs", "--now", "+2h")
    assert done.code == 0, done.err
    assert "nothing changed" in done.lines[0] and "hot → warm" in done.out
    assert not (tmp_path / "policies").exists() and not (site.logs / ".lifecycle").exists()


# --- exit codes -------------------------------------------------------------------------------------------------------


def test_a_run_with_nothing_due_is_done(ran: Site) -> None:
    done = ran("plan", "--now", "+2h")
    assert (done.code, "nothing is due" in done.out) == (0, True)


def test_a_bad_policy_is_every_mistake_and_code_2(site: Site) -> None:
    platform = site.folder / "policies" / "platform.yaml"
    platform.write_text(platform.read_text() + "\nexpires: 7d\ngrace_time: 1T\n")
    for command in (("policy", "check"), ("run",), ("audit",)):
        done = site(*command)
        assert done.code == 2
        assert "expires" in done.err and "grace_time" in done.err and "2 mistakes" in done.err


def test_a_catalog_that_is_not_there_is_code_2_and_says_init(site: Site) -> None:
    (site.folder / "state" / "catalog.db").unlink()
    done = site("run")
    assert (done.code, "lifecycle init" in done.err) == (2, True)


def test_a_clock_is_moved_only_in_rehearsal(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.write("vision/train-1/rank_0.log", days=40)
    site("init", "policies", "--source", "logs", "--tiers", "tiers", "--catalog", "state/catalog.db")
    done = site("run", "--now", "+100d")
    assert done.code == 2 and "rehearsal" in done.err
    assert (site.logs / "vision/train-1/rank_0.log").exists()


def test_a_place_that_is_gone_is_reported_and_nothing_is_taken_for_deleted(site: Site) -> None:
    assert site("run", "--now", "+2h").code == 0
    site.logs.rename(site.folder / "elsewhere")
    site.logs.mkdir()
    done = site("run", "--now", "+3h")
    assert done.code == 3
    audit = site("audit", "--check")
    assert audit.code == 7 and "!!" in audit.out and " missing 0 " in audit.out


def test_special_files_are_counted_and_are_no_errors(site: Site) -> None:
    os.mkfifo(site.logs / "vision/train-1/pipe.log")
    # A socket by mknod: bind() takes 107 bytes of path, and a test's folder can be deeper.
    os.mknod(site.logs / "vision/train-1/sock.log", stat.S_IFSOCK | 0o600)
    (site.logs / "vision/train-1/link.log").symlink_to("/etc/passwd")
    done = site("scan", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.lines[-1])["scans"][0]["special"] == 3


def test_a_held_place_is_code_5_and_says_who_has_it(site: Site) -> None:
    holder = (
        "import sys, time\n"
        "from datetime import UTC, datetime\n"
        "from lifecycle.catalog.lease import take_lease\n"
        "from lifecycle.catalog.places import places\n"
        "from lifecycle.catalog.store import open_catalog\n"
        "catalog = open_catalog(sys.argv[1])\n"
        "with catalog.read() as conn: all_places = places(conn)\n"
        "leases = [take_lease(catalog, p, holder='run 99', now=datetime.now(UTC)) for p in all_places]\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    url = f"sqlite:///{site.folder}/state/catalog.db"
    with subprocess.Popen(
        [sys.executable, "-c", holder, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=site.environ
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        failed, skipped = site("run"), site("run", "--if-held", "skip")
        process.communicate()
    assert failed.code == 5 and "run 99" in failed.err
    assert json.loads(failed.err.splitlines()[-1])["exit"] == "lease_held"
    assert "passed over" in skipped.out


def test_nothing_found_is_code_8(ran: Site) -> None:
    for arguments in (("ls", "--job", "none"), ("restore", "--job", "none", "--to", "out"), ("history", "4242"),
                      ("explain", "424242"), ("explain", "/nowhere/x.log")):  # fmt: skip
        done = ran(*arguments)
        assert (done.code, done.out, done.err.startswith("lifecycle: ")) == (8, "", True), arguments


def test_a_restore_of_everything_must_be_asked_for(ran: Site) -> None:
    done = ran("restore", "--to", "out")
    assert (done.code, "--all" in done.err) == (2, True)


# --- what is printed where --------------------------------------------------------------------------------------------


def test_a_run_tells_people_on_stdout_and_machines_in_the_last_line_of_stderr(site: Site) -> None:
    done = site("run", "--now", "+2h")
    summary = json.loads(done.err.splitlines()[-1])
    assert done.lines[-1].startswith("run 1") and "done" in done.lines[-1]
    assert (summary["schema"], summary["exit_code"], summary["run_id"]) == ("lifecycle.run/1", 0, 1)


def test_a_run_in_json_is_one_line(site: Site) -> None:
    done = site("run", "--now", "+2h", "--json")
    assert len(done.lines) == 1 and json.loads(done.out)["exit"] == "done"
    assert done.err == ""


def test_a_quiet_run_in_cron_says_nothing(site: Site) -> None:
    assert site("run", "--quiet", "--now", "+2h") == Done(0, "", "")


def test_a_quiet_run_that_fails_says_all(site: Site) -> None:
    site.logs.rename(site.folder / "elsewhere")
    done = site("run", "--quiet")
    assert done.code == 3 and "exit 3" in done.out


def test_a_reader_that_leaves_early_is_no_error(ran: Site) -> None:
    script = f"{sys.executable} -m lifecycle ls --json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=ran.folder, env=ran.environ, capture_output=True, text=True, check=True
    )
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0", "")


def test_the_audit_adds_up(ran: Site) -> None:
    facts = json.loads(ran("audit", "--json").out)
    for figure in ("segments", "logical_bytes", "stored_bytes"):
        tiers = sum(tier["usage"][figure] for tier in facts["tiers"])
        teams = sum(team["usage"][figure] for team in facts["teams"])
        assert tiers == teams == facts["total"]["usage"][figure] >= 0
    assert facts["schema"] == "lifecycle.audit/1" and facts["saved"]["stored_segments"] == 9


def test_the_audit_in_csv_has_raw_bytes(ran: Site) -> None:
    rows = list(csv.DictReader(io.StringIO(ran("audit", "--section", "teams", "--format", "csv").out)))
    assert {row["team"] for row in rows} == {"nlp", "vision", "total"}
    assert int(rows[-1]["logical_bytes"]) == sum(int(row["logical_bytes"]) for row in rows[:-1])


def test_the_audit_of_one_team_counts_that_team(ran: Site) -> None:
    facts = json.loads(ran("audit", "--team", "nlp", "--json").out)
    assert {team["team"] for team in facts["teams"]} == {"nlp"} and facts["total"]["usage"]["segments"] == 4


def test_a_report_goes_to_a_file_whole(ran: Site, tmp_path: Path) -> None:
    target = tmp_path / "audit.json"
    done = ran("audit", "--json", "--out", str(target))
    assert (done.code, done.out) == (0, "")
    assert json.loads(target.read_text())["schema"] == "lifecycle.audit/1"


def _on_a_terminal(site: Site, *arguments: str) -> tuple[int, str]:
    """The command with a terminal for stdin, stdout and stderr: its exit code and all that appears there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "lifecycle", *arguments], cwd=site.folder, env=site.environ | {"TERM": "xterm"},
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # EIO is how a terminal says that nobody is left
        while part := os.read(ours, 65_536):
            seen += part
    os.close(ours)
    return process.wait(), seen.decode()


def test_a_terminal_gets_colours_and_progress_and_no_line_for_machines(site: Site) -> None:
    code, seen = _on_a_terminal(site, "run", "--now", "+2h")
    assert code == 0 and "\x1b[" in seen and "scan logs" in seen
    assert "run 1" in seen and "lifecycle.run/1" not in seen


def test_a_terminal_that_wants_quiet_gets_it(site: Site) -> None:
    assert _on_a_terminal(site, "run", "--quiet", "--now", "+2h") == (0, "")


# --- finding and getting back -----------------------------------------------------------------------------------------


def test_segments_are_found_by_label_and_time(ran: Site) -> None:
    rows = json.loads(ran("ls", "--job", "train-*", "--rank", "1-2", "--json").out)["rows"]
    assert sorted(row["rank"] for row in rows) == [1, 2]
    assert {row["tier"] for row in rows} == {"warm"}
    assert ran("ls", "--since", "-5d", "--class", "eval").code == 8


def test_segments_are_counted_by_what_is_asked(ran: Site) -> None:
    rows = json.loads(ran("ls", "--by", "class", "--json").out)["rows"]
    assert {row["class"]: row["segments"] for row in rows} == {"eval": 4, "training": 4, "error": 1}


def test_one_segment_is_explained_by_path_and_by_id(ran: Site) -> None:
    path = str(ran.logs / "vision/train-1/rank_1.log")
    by_path = ran("explain", path)
    number = by_path.lines[1].split()[1]
    assert by_path.code == 0 and ran("explain", number).out == by_path.out
    assert "stored in warm" in by_path.out and "merge to warm in run 1" in by_path.out
    assert "released" in ran("history", path).out


def test_what_is_restored_is_what_was_there(site: Site) -> None:
    originals = {path.relative_to(site.logs): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
                 for path in site.logs.rglob("*.log")}  # fmt: skip
    assert site("run", "--now", "+2h").code == 0
    done = site("restore", "--all", "--to", "out")
    assert done.code == 0 and f"restored {len(originals)} files" in done.out
    [root] = (site.folder / "out").iterdir()
    back = {path.relative_to(root): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
            for path in root.rglob("*") if path.is_file()}  # fmt: skip
    assert back == originals


def test_the_history_shows_a_run_as_the_run_itself_did(site: Site) -> None:
    done = site("run", "--now", "+2h")
    assert site("history", "1").lines[1:] == done.lines
    assert site("history", "1", "--problems").code == 8


# --- setting up -------------------------------------------------------------------------------------------------------


def test_a_second_init_changes_nothing(ran: Site) -> None:
    before = ran.snapshot()
    done = ran("init", "policies")
    assert done.code == 0 and "was there, left as it is" in done.out
    assert ran.snapshot() == before


def test_the_policy_explains_a_path_that_is_not_there(ran: Site) -> None:
    done = ran("policy", "explain", "logs/vision/eval-7/rank_3.log.gz", "--age", "2d", "--json")
    fate = json.loads(done.out)
    found = fate["explained"]
    assert (found["labels"]["team"], found["labels"]["rank"], found["class_name"]) == ("vision", 3, "eval")
    assert fate["tier_at_age"] == "warm"


def test_the_schema_is_json(ran: Site) -> None:
    assert "properties" in json.dumps(json.loads(ran("policy", "schema").out))


def test_a_backup_is_a_catalog_and_overwrites_nothing(ran: Site, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert ran("catalog", "backup", "--to", str(target)).code == 0
    assert target.read_bytes()[:15] == b"SQLite format 3"
    assert ran("catalog", "backup", "--to", str(target)).code == 2


def test_a_plan_of_a_rehearsal_goes_on_from_its_last_run(site: Site) -> None:
    assert site("run", "--now", "+20d").code == 0
    day = (datetime.now(UTC) + timedelta(days=20)).strftime("%Y-%m-%d")
    heading, said, *_, last = site("plan", "--out", "tonight.plan").lines
    assert f"now {day}" in heading
    assert said.startswith(f"rehearsal: its time is {day}") and said.endswith(", 20 d ahead of the clock")
    assert site(*_typed(last)).code == 0, last


def _typed(last: str) -> list[str]:
    return last.removeprefix("next: lifecycle ").partition(" · ")[0].split()


def test_what_a_plan_for_another_day_says_to_type_next_is_right_on_a_rehearsal(site: Site) -> None:
    last = site("plan", "--now", "+20d", "--out", "tonight.plan").lines[-1]
    assert "--now" in _typed(last) and site(*_typed(last)).code == 0, last


def test_a_plan_by_the_clock_says_nothing_of_a_rehearsal(site: Site) -> None:
    done = site("plan")
    assert "rehearsal" not in done.out and "--now" not in done.out


def test_plan_scan_and_run_count_the_same_links_and_special_files(site: Site) -> None:
    (site.logs / "vision/train-1/link.log").symlink_to("/etc/passwd")
    os.mkfifo(site.logs / "vision/train-1/pipe.log")
    assert ", 2 links and special files" in site("plan").lines[0]
    assert ", 2 links and special files" in site("plan", "--root", str(site.logs)).lines[0]
    heading, row, *_ = site("scan").lines
    counted = dict(zip(re.split(" {2,}", heading), re.split(" {2,}", row), strict=True))
    assert counted["LINKS ETC."] == "2"
    seen = site("run", "--now", "+2h").lines[0]
    assert " 2 links and special files" in seen and seen.count("links and special") == 1


def test_days_are_counted_in_their_order_and_what_is_left_is_rounded_in_one_way(site: Site) -> None:
    site.write("vision/train-7/big.log", days=12.4, text="x" * 5000)
    assert site("run", "--now", "+2h").code == 0
    days = [line.split()[0] for line in site("ls", "--by", "day").lines[1:]]
    assert days == sorted(days) and len(days) > 2
    row = next(line for line in site("ls", "--job", "train-7").lines if "big.log" in line)
    left = re.search(r"\((\d+ d) left\)", row)
    assert left is not None and f"in {left[1]};" in site("explain", str(site.logs / "vision/train-7/big.log")).out


def test_a_mark_of_a_restored_file_is_not_foretold_before_its_stay_is_over(site: Site) -> None:
    file = site.write("vision/train-8/old.log", days=29)
    assert site("run", "--now", "+2h").code == 0
    assert site("restore", "--job", "train-8", "--in-place").code == 0
    steps = re.findall(r"(release|mark|purge) +(\d{4}-\d\d-\d\d \d\d:\d\d)", site("explain", str(file)).out)
    times = [at for _, at in steps]
    assert [name for name, _ in steps] == ["release", "mark", "purge"] and times == sorted(times)


def test_no_message_names_its_place_twice(site: Site) -> None:
    site.logs.rename(site.folder / "away")
    site.logs.mkdir()
    done = site("run", "--now", "+2h")
    assert "source logs: no marker" in done.out and "source logs: source logs" not in done.out


@pytest.mark.parametrize(
    ("days_before", "day", "action"),
    [((), "+2h", "merge"), (("+2h",), "+28h", "mark"), (("+2h", "+28h"), "+5d", "purge")],
)
def test_a_plan_that_was_carried_out_is_done_already_and_nothing_of_it_changed(
    site: Site, days_before: tuple[str, ...], day: str, action: str
) -> None:
    for rank in range(3):
        site.write(f"vision/train-9/rank_{rank}.log", days=40)
    for earlier in days_before:
        site("run", "--now", earlier)
    site("plan", "--now", day, "--out", "tonight.plan")
    first = site("run", "--now", day, "--plan", "tonight.plan").out
    assert action in first and "already" not in first
    again = site("run", "--now", day, "--plan", "tonight.plan")
    assert again.code == 0 and "changed" not in again.out
    assert f"{action} " in again.out and "all that the plan lists was done already" in again.out


def test_of_a_plan_half_carried_out_only_the_rest_is_done(site: Site) -> None:
    site.write("vision/train-9/rank_0.log", days=40)
    site.write("nlp/train-9/rank_0.log", days=3)
    assert site("run", "--now", "+2h", "--only", "moves").code == 0
    late = site.write("vision/train-10/rank_0.log", days=40)
    site("plan", "--now", "+28h", "--out", "tonight.plan")
    site("run", "--now", "+28h", "--plan", "tonight.plan", "--only", "mark")
    phases = json.loads(site("run", "--now", "+28h", "--plan", "tonight.plan", "--json").out)["phases"]
    assert not late.exists()
    counts = {phase["action"]: (phase["segments"], phase["done_before"], phase["kept"]) for phase in phases}
    assert counts["mark"][0] == 0 < counts["mark"][1] and counts["mark"][2] == 0
    assert (counts.get("merge") or counts["transition"])[0] > 0

"""Holds through the real command: what is held outlives its retention, and goes by it again once the hold has ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.site import Site

LINES = b"step 1 loss 2.5\n" * 40


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Two jobs of vision and one of nlp, written some days ago, stored on the first day."""
    site = Site(tmp_path)
    for job, days in (("detr-1", 2), ("detr-2", 3)):
        for rank in range(3):
            site.write(f"vision/{job}/rank_{rank}.log".encode(), LINES, days=days)
    site.write(b"nlp/rlhf-9/rank_0.log", LINES, days=2)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    site("run", "--now", "+2h")
    return site


def rows(site: Site, *arguments: str) -> list[dict[str, Any]]:
    done = site.run("ls", "--json", *arguments, code=None)
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"] if done.returncode == 0 else []
    return found


def jobs(site: Site, *arguments: str) -> set[str]:
    return {row["job"] for row in rows(site, *arguments)}


def test_what_is_held_outlives_its_retention_and_goes_by_it_once_the_hold_has_ended(site: Site) -> None:
    said = site("hold", "add", "--job", "detr-1", "--reason", "paper, table 3", "--owner", "chen")
    assert "hold 1: 3 segments (1.88 KiB) of --job detr-1 kept until somebody ends it" in said
    for now in ("+29d", "+30d", "+34d", "+40d"):
        site("run", "--now", now)
    assert jobs(site) == {"detr-1"} and not rows(site, "--state", "marked")
    listed = json.loads(site("hold", "list", "--json"))["holds"]
    assert [(it["owner"], it["reason"], it["segments"], it["ends"]) for it in listed] == [
        ("chen", "paper, table 3", 3, None)
    ]
    site("hold", "end", "1", "--reason", "it is out")
    assert "no holds" in site("hold", "list") and "it is out" in site("hold", "list", "--all", "--format", "csv")
    site("run", "--now", "+41d")
    assert {row["job"] for row in rows(site, "--state", "marked")} == {"detr-1"}
    site("run", "--now", "+45d")
    assert jobs(site) == set()


def test_a_hold_on_what_is_marked_takes_the_mark_off_and_never_lets_it_be_purged(site: Site) -> None:
    site("run", "--now", "+29d")
    site("run", "--now", "+30d")
    assert len(rows(site, "--state", "marked")) == 7
    said = site("hold", "add", "--team", "vision", "--job", "detr-2", "--reason", "incident 4711")
    assert "3 marks among them: they come off with the next run" in said
    plan = site("plan", "--now", "+34d")
    assert "unmark" in plan and "held" in plan
    site("run", "--now", "+34d")  # the grace of all of them is over
    assert jobs(site) == {"detr-2"} and not rows(site, "--state", "marked")


def test_purge_alone_leaves_what_is_held(site: Site) -> None:
    site("run", "--now", "+29d")
    site("run", "--now", "+30d")
    site("hold", "add", "--team", "*", "--reason", "audit")
    site("run", "--now", "+34d", "--only", "purge")
    assert len(rows(site)) == 7


def test_a_plan_made_before_the_hold_removes_nothing_of_it(site: Site) -> None:
    site("run", "--now", "+29d")
    site("run", "--now", "+30d")
    assert "purge" in site("plan", "--now", "+34d", "--out", "plan.json")
    site("hold", "add", "--job", "*", "--reason", "audit")
    site("run", "--now", "+34d", "--plan", "plan.json")
    assert len(rows(site)) == 7


def test_what_comes_later_and_fits_is_held_from_its_first_scan_on(site: Site) -> None:
    site("hold", "add", "--job", "swin-*", "--reason", "no job yet", code=8)
    said = site("hold", "add", "--job", "swin-*", "--reason", "baseline", "--pending", "--ends", "+90d")
    assert "hold 1: 0 segments" in said and "pending" in site("hold", "list")
    site.write(b"vision/swin-3/rank_0.log", LINES, days=1)
    site("run", "--now", "+3h")
    assert jobs(site, "--state", "held") == {"swin-3"}
    for now in ("+29d", "+31d", "+36d", "+60d", "+89d"):
        site("run", "--now", now)
    assert jobs(site) == {"swin-3"}
    site("run", "--now", "+91d")  # its date has come
    assert {row["job"] for row in rows(site, "--state", "marked")} == {"swin-3"}
    assert "ended" in site("hold", "list", "--all")
    site("run", "--now", "+95d")
    assert jobs(site) == set()


def test_a_held_segment_moves_to_colder_tiers_all_the_same(site: Site) -> None:
    site("hold", "add", "--job", "detr-1", "--reason", "paper")
    site("run", "--now", "+8d")
    assert {row["tier"] for row in rows(site, "--job", "detr-1")} == {"cold"}


def test_one_path_or_one_rank_can_be_held(site: Site) -> None:
    path = Path(site.folder) / "logs/nlp/rlhf-9/rank_0.log"
    site("hold", "add", "--path", str(path), "--reason", "for the vendor")
    site("hold", "add", "--job", "detr-1", "--rank", "0-1", "--reason", "two ranks")
    assert {(row["job"], row["rank"]) for row in rows(site, "--state", "held")} == {
        ("rlhf-9", 0), ("detr-1", 0), ("detr-1", 1),
    }  # fmt: skip
    said = site("hold", "list")
    assert "--job detr-1 --rank 0-1" in said and "--path" in said


def test_explain_says_who_holds_it_why_and_until_when(site: Site) -> None:
    site("hold", "add", "--job", "rlhf-9", "--reason", "paper, table 3", "--owner", "chen", "--ends", "+400d")
    path = str(Path(site.folder) / "logs/nlp/rlhf-9/rank_0.log")
    said = site("explain", path)
    assert "hold 1" in said and "paper, table 3" in said and "chen" in said
    site("run", "--now", "+31d")
    said = site("explain", path, "--now", "+31d")
    assert "not held" in said and "no hold" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--reason", "x"), "nothing is selected"),
        (("--job", "detr-1", "--reason", " "), "needs a reason and an owner"),
        (("--job", "detr-1", "--reason", "x", "--ends", "-1d"), "would have ended"),
    ],
)
def test_a_hold_that_makes_no_sense_is_refused(site: Site, arguments: tuple[str, ...], words: str) -> None:
    assert words in site.run("hold", "add", *arguments, code=2).stderr
    assert "no holds" in site("hold", "list", "--all")


def test_ending_what_is_not_there_ends_nothing(site: Site) -> None:
    site("hold", "add", "--job", "detr-1", "--reason", "paper")
    assert "there is no hold 7" in site.run("hold", "end", "1", "7", code=8).stderr
    assert "detr-1" in site("hold", "list")
    site("hold", "end", "1")
    assert "hold 1 ended" in site.run("hold", "end", "1", code=2).stderr
    assert "did you mean lifecycle hold end" in site.run("hold", "release", "1", code=2).stderr


# --- holds of the policy ------------------------------------------------------------------------------------------


def with_hold(site: Site, text: str) -> None:
    site.edit_policy("\ntiers:", f"\nholds:\n  - {text}\ntiers:")


def without_holds(site: Site) -> None:
    path = site.folder / "policies/platform.yaml"
    lines = path.read_text().splitlines()
    at = lines.index("holds:")
    path.write_text("\n".join([*lines[:at], *lines[at + 2 :]]) + "\n")


def holds_of(site: Site, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(site("hold", "list", "--json", *arguments))["holds"]
    return found


def test_a_hold_of_the_policy_counts_from_the_next_run_on_and_outlives_its_line(site: Site) -> None:
    site("run", "--now", "+29d")
    with_hold(site, '{job: detr-1, reason: "paper, table 3", owner: chen, ends: 2099-01-01}')
    assert "paper, table 3" in site("policy", "show", "--all")
    assert "  held" in site("plan", "--now", "+30d")  # a preview knows it, and writes nothing of it
    assert holds_of(site) == []
    site("run", "--now", "+30d")
    (hold,) = holds_of(site)
    assert (hold["segments"], hold["source"][:20], hold["awaits"]) == (3, "policy platform.yaml", "")
    without_holds(site)
    site("run", "--now", "+34d")
    site("run", "--now", "+40d")
    assert jobs(site) == {"detr-1"}
    assert "policy no longer has it; it stands until lifecycle hold end 1" in site("hold", "list")
    digest = json.loads(site("policy", "show", "--json"))["digest"]
    said = site("policy", "accept", digest[:6], "--reason", "the paper is out")
    assert "hold 1: 3 segments" in said and "policy no longer has it" in said
    assert holds_of(site) == [] and "the paper is out" in site("hold", "list", "--all", "--format", "csv")
    site("run", "--now", "+41d")
    assert {row["job"] for row in rows(site, "--state", "marked")} == {"detr-1"}


def test_a_line_that_was_left_standing_does_not_begin_an_ended_hold_anew(site: Site) -> None:
    with_hold(site, "{job: detr-1, reason: paper, owner: chen}")
    site("run", "--now", "+3h")
    site("hold", "end", "1")
    site("run", "--now", "+4h")
    assert holds_of(site) == []
    site.edit_policy("reason: paper, owner: chen", "reason: the second paper, owner: chen")
    site("run", "--now", "+5h")
    assert [hold["reason"] for hold in holds_of(site)] == ["the second paper"]


def test_a_later_end_counts_at_once_and_an_earlier_one_when_it_is_accepted(site: Site) -> None:
    with_hold(site, "{job: detr-1, reason: paper, owner: chen, ends: 2090-01-01}")
    site("run", "--now", "+3h")
    site.edit_policy("ends: 2090-01-01", "ends: 2095-01-01")
    site("run", "--now", "+4h")
    assert holds_of(site)[0]["ends"].startswith("2095-01-01")
    site.edit_policy("ends: 2095-01-01", "ends: 2092-01-01")
    site("run", "--now", "+5h")
    assert holds_of(site)[0]["ends"].startswith("2095-01-01")
    assert "policy says until 2092-01-01" in site("hold", "list")
    digest = json.loads(site("policy", "show", "--json"))["digest"]
    site("policy", "accept", digest[:6], "--reason", "shorter")
    assert holds_of(site)[0]["ends"].startswith("2092-01-01") and holds_of(site)[0]["awaits"] == ""


def test_a_team_holds_its_own_logs_only_and_no_longer_than_its_bounds(site: Site) -> None:
    path = site.folder / "policies/platform.yaml"
    path.write_text(path.read_text() + "\nteams: [nlp, vision]\n")
    site.edit_policy("training: {expire_after: [14d, 180d]}", "training: {expire_after: [14d, 180d]}\n  hold: 50d")
    teams = site.folder / "policies/teams"
    teams.mkdir(exist_ok=True)
    (teams / "vision.yaml").write_text("team: vision\n")
    (teams / "nlp.yaml").write_text('team: nlp\nholds: [{job: "*", reason: all of it, owner: wu, ends: 2099-01-01}]\n')
    site("run", "--now", "+3h")
    assert {row["team"] for row in rows(site, "--state", "held")} == {"nlp"}
    for now in ("+29d", "+30d", "+34d", "+49d"):
        site("run", "--now", now)
    assert jobs(site) == {"rlhf-9"}
    site("run", "--now", "+51d")
    assert {row["job"] for row in rows(site, "--state", "marked")} == {"rlhf-9"}
    site("run", "--now", "+52d")  # the line is still there: 50 days are over, and it is no new wish
    assert holds_of(site) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{reason: x, owner: y}", "hold: selects nothing by itself"),
        ("{job: a, owner: y}", "no 'reason'"),
        ("{job: a, reason: x, owner: y, ends: soon}", "'soon' is not a time"),
        ("{job: a, reason: x, owner: y, rank: 7-3}", "'7-3' is not a rank"),
        ("{path: logs/a.log, reason: x, owner: y}", "is not absolute"),
        ("{jobs: a, reason: x, owner: y}", "jobs"),
        ("{job: a, reason: x, owner: y}\n  - {job: [a], reason: z, owner: y}", "the same segments are held by"),
        ("{job: a, since: 2027-01-02, until: 2027-01-01, reason: x, owner: y}", "until is not after since"),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused_with_its_line(site: Site, text: str, words: str) -> None:
    with_hold(site, text)
    said = site.run("policy", "check", code=2)
    assert words in said.stdout + said.stderr and "platform.yaml:" in said.stdout + said.stderr


# --- archives that held members keep --------------------------------------------------------------------------------


@pytest.fixture
def shared(tmp_path: Path) -> Site:
    """One archive in cold with three members of one job, marked a while ago."""
    site = Site(tmp_path)
    for rank in range(3):
        site.write(f"vision/detr-1/rank_{rank}.log".encode(), b"rank %d\n" % rank + LINES * (1 + rank), days=2)
    site("init", "--source", "logs", "--tiers", "tiers", "--rehearsal")
    for now in ("+2h", "+29d", "+30d"):
        site("run", "--now", now)
    return site


def test_an_archive_is_rewritten_for_a_held_member_and_the_rest_goes_later(shared: Site) -> None:
    shared("hold", "add", "--rank", "0", "--reason", "paper", "--owner", "chen")
    plan = shared("plan", "--now", "+34d")
    assert "rewrite" in plan and "held members leave it, the rest goes after another grace of 3d" in plan
    done = shared("run", "--now", "+34d")
    assert "1 held in cold stored anew without their neighbours" in done
    assert len(rows(shared)) == 3 and len(list(shared.folder.glob("tiers/cold/**/*.zst"))) == 2
    shared("restore", "--all", "--to", "back")
    assert (shared.folder / "back/logs/vision/detr-1/rank_0.log").read_bytes() == b"rank 0\n" + LINES
    shared("run", "--now", "+36d")
    assert len(rows(shared)) == 3
    shared("run", "--now", "+38d")
    assert [row["rank"] for row in rows(shared)] == [0]
    assert len(list(shared.folder.glob("tiers/cold/**/*.zst"))) == 1
    shared("restore", "--all", "--to", "again")
    assert (shared.folder / "again/logs/vision/detr-1/rank_0.log").read_bytes() == b"rank 0\n" + LINES
    past = shared("explain", str(shared.folder / "logs/vision/detr-1/rank_0.log"))
    assert "rewrite" in past


def test_where_less_than_half_would_go_the_archive_stays_and_the_audit_says_so(shared: Site) -> None:
    shared("hold", "add", "--rank", "2", "--rank", "1", "--reason", "paper", "--owner", "chen")
    plan = shared("plan", "--now", "+34d")
    assert "kept beside a held one: less than half of its archive would go" in plan
    shared("run", "--now", "+34d")
    assert len(rows(shared)) == 3 and len(list(shared.folder.glob("tiers/cold/**/*.zst"))) == 1
    said = shared("audit", "--section", "beyond", "--now", "+34d")
    assert "BEYOND RETENTION" in said and "beside a held one" in said
    (line,) = json.loads(shared("audit", "--section", "beyond", "--json", "--now", "+34d"))["beyond"]
    assert (line["team"], line["archives"], line["segments"]) == ("vision", 1, 1) and line["stored_bytes"] > 0
    held = shared("audit", "--section", "holds", "--format", "csv")
    assert "chen" in held and "paper" in held
    metrics = shared("audit", "--format", "prometheus", "--now", "+34d")
    assert 'lifecycle_held_segments{hold="1",owner="chen"} 2' in metrics and "lifecycle_kept_beyond_bytes{" in metrics


def test_a_hold_that_policy_dropped_is_a_line_of_the_audit(site: Site) -> None:
    with_hold(site, "{job: detr-1, reason: paper, owner: chen}")
    site("run", "--now", "+3h")
    without_holds(site)
    said = site("audit")
    assert "hold 1" in said and "policy no longer has it" in said and "policy accept" in said


# --- files that hold ------------------------------------------------------------------------------------------------


def hold_file(site: Site, folder: str, text: str) -> Path:
    path = Path(site.folder) / "logs" / folder / ".lifecycle-hold"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_in_a_job_s_folder_holds_the_job_until_it_was_gone_for_three_scans(site: Site) -> None:
    path = hold_file(site, "vision/detr-1", "reason: paper, table 3\nowner: chen\n")
    for now in ("+3h", "+29d", "+30d", "+34d"):
        site("run", "--now", now)
    assert jobs(site) == {"detr-1"} and path.exists()
    (hold,) = holds_of(site)
    assert (hold["owner"], hold["reason"], hold["segments"], hold["awaits"]) == ("chen", "paper, table 3", 3, "")
    assert "beside and below" in hold["selector"] and "vision/detr-1/.lifecycle-hold" in hold["source"]
    path.unlink()
    site("run", "--now", "+35d")
    site("run", "--now", "+36d")
    assert len(holds_of(site)) == 1  # absence proves nothing
    site("run", "--now", "+37d")
    assert holds_of(site) == [] and "not there in 3 complete scans" in site("hold", "list", "--all", "--format", "csv")
    assert {row["job"] for row in rows(site, "--state", "marked")} == {"detr-1"}


def test_a_file_that_comes_back_in_time_goes_on_holding(site: Site) -> None:
    path = hold_file(site, "vision/detr-1", "incident 4711")
    site("run", "--now", "+3h")
    text = path.read_text()
    path.unlink()
    site("run", "--now", "+4h")
    site("run", "--now", "+5h")
    path.write_text(text)
    site("run", "--now", "+6h")
    path.unlink()
    site("run", "--now", "+7h")
    site("run", "--now", "+8h")
    assert [hold["reason"] for hold in holds_of(site)] == ["incident 4711"]


def test_a_hold_file_holds_what_lies_below_it_and_nothing_beside(site: Site) -> None:
    site.write(b"vision/swin-1/gpu-1/rank_0.log", LINES, days=2)
    site.write(b"vision/swin-1/gpu-10/rank_0.log", LINES, days=2)
    hold_file(site, "vision/swin-1/gpu-1", "one node")
    site("run", "--now", "+3h")
    assert {row["path"].rpartition("/logs/")[2] for row in rows(site, "--state", "held")} == {
        "vision/swin-1/gpu-1/rank_0.log"
    }


@pytest.mark.parametrize("folder", ["", "vision"])
def test_a_hold_file_above_a_job_holds_nothing_and_is_named(site: Site, folder: str) -> None:
    hold_file(site, folder, "everything of everybody")
    done = site.run("run", "--now", "+3h", code=3)
    assert "not in a job's folder: it holds nothing" in done.stdout + done.stderr
    assert holds_of(site) == []


def test_a_hold_file_lasts_no_longer_than_its_bounds_and_may_shorten_itself(site: Site) -> None:
    site.edit_policy("training: {expire_after: [14d, 180d]}", "training: {expire_after: [14d, 180d]}\n  hold: 40d")
    path = hold_file(site, "vision/detr-1", "reason: x\nends: 2099-01-01\n")
    site("run", "--now", "+3h")
    first = holds_of(site)[0]["ends"]
    assert first < "2090"
    path.write_text("reason: x\nends: 2020-01-01\n")
    site("run", "--now", "+4h")
    assert holds_of(site) == []


def test_a_hold_file_that_cannot_be_understood_holds_all_the_same(site: Site) -> None:
    hold_file(site, "vision/detr-1", "ends: next spring\nowner: \x1b[31mchen\n")
    done = site.run("run", "--now", "+3h", code=3)
    assert "'next spring' is not a date" in done.stdout + done.stderr
    (hold,) = holds_of(site)
    assert (hold["ends"], hold["owner"], hold["segments"]) == (None, "[31mchen", 3)


def test_a_hold_file_is_no_log_and_a_preview_knows_it(site: Site) -> None:
    for now in ("+29d",):
        site("run", "--now", now)
    path = hold_file(site, "vision/detr-1", "paper")
    assert "  held" in site("plan", "--now", "+30d")
    assert holds_of(site) == [] and path.read_text() == "paper"
    site("run", "--now", "+30d")
    assert not [row for row in rows(site) if "lifecycle-hold" in row["path"]]

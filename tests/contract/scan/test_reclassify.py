"""Known segments judged again: pages, what a stopped pass leaves, what is withheld until it is whole."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lifecycle.catalog import reclassifying
from lifecycle.catalog.due import CatalogDue
from lifecycle.catalog.events import iter_events, verify_chain
from lifecycle.catalog.lease import take_lease
from lifecycle.catalog.usage import recount, rollups
from lifecycle.model import Kept, ReasonCode
from lifecycle.plan.planner import iter_batches
from lifecycle.policy.rules import MatchRule, Policy
from lifecycle.scan.reclassify import Reclassified, claims_key, reclassify_place, unclassified_places
from tests.builders import a_class, a_policy, a_rule_ref
from tests.contract.scan.tree import Tree

HOST = "n1"
RANKS = 25


def a_policy_of(tree: Tree, *errors: str, **overrides: Any) -> Policy:
    classes = (a_class("error", expire_after="90d"), a_class("training", expire_after="30d"))
    matches = (
        MatchRule(class_name="error", patterns=errors, at=a_rule_ref()),
        MatchRule(class_name="training", patterns=(), at=a_rule_ref(line=20)),
    )
    return a_policy(sources=(tree.source,), classes=classes, matches=matches, **overrides)


def reclassify(tree: Tree, policy: Policy, **options: Any) -> Reclassified:
    now = datetime.now(UTC)
    with take_lease(tree.catalog, tree.place, holder="run 1", now=now) as lease:
        return reclassify_place(
            tree.catalog, tree.place, policy.sources[0], policy, host=HOST, now=now, run_id=tree.run_id, lease=lease,
            **options,
        )  # fmt: skip


def classes(tree: Tree) -> dict[str, int]:
    sql = (
        "SELECT c.name, count(*) FROM segments s JOIN classes c ON c.id = s.class_id"
        " WHERE s.tier IS NOT NULL GROUP BY c.name"
    )
    with tree.catalog.read() as conn:
        return {row[0]: row[1] for row in conn.exec_driver_sql(sql).fetchall()}


@pytest.fixture
def scanned(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    for rank in range(RANKS):
        tree.write(f"vision/job-1/rank_{rank}.log", age="50d")
    tree.scan()
    monkeypatch.setitem(reclassifying.iter_classified.__kwdefaults__, "page", 10)
    return tree


def test_a_stopped_pass_goes_on_where_it_was_and_nothing_goes_meanwhile(scanned: Tree) -> None:
    reclassify(scanned, a_policy_of(scanned))
    policy = a_policy_of(scanned, "rank_*.log")
    asked: list[str] = []
    first = reclassify(scanned, policy, stop=lambda: asked.append("") or ("SIGTERM" if len(asked) > 1 else ""))
    assert (first.changed, first.is_whole) == (10, False)
    assert unclassified_places(scanned.catalog, policy, HOST) == {scanned.place_id}
    second = reclassify(scanned, policy)
    assert (second.changed, second.is_whole) == (RANKS - 10, True)
    assert unclassified_places(scanned.catalog, policy, HOST) == frozenset()
    assert classes(scanned) == {"error": RANKS}


def test_sums_follow_their_segments_and_the_event_says_what_changed(scanned: Tree) -> None:
    reclassify(scanned, a_policy_of(scanned))
    reclassify(scanned, a_policy_of(scanned, "rank_1*.log"))
    assert classes(scanned) == {"error": 11, "training": RANKS - 11}
    with scanned.catalog.read() as conn:
        assert rollups(conn) == recount(conn)
        assert verify_chain(conn, scanned.place_id).is_whole
    events = [event for event in iter_events(scanned.catalog) if event.kind == "reclassified"]
    assert sum(event.body["segments"] for event in events) == 11
    assert events[0].body["changes"] == {"vision/training to vision/error": events[0].body["segments"]}


def test_the_second_pass_by_the_same_rules_writes_nothing(scanned: Tree) -> None:
    policy = a_policy_of(scanned, "rank_1*.log")
    reclassify(scanned, policy)
    before = scanned.value("SELECT count(*) FROM events")
    again = reclassify(scanned, replace(policy, digest="f" * 64))
    assert again == Reclassified()
    assert scanned.value("SELECT count(*) FROM events") == before


def test_a_longer_figure_lets_what_waits_go_on(scanned: Tree) -> None:
    reclassify(scanned, a_policy_of(scanned, "rank_*.log"))
    assert reclassify(scanned, a_policy_of(scanned)).waiting == RANKS
    assert classes(scanned) == {"error": RANKS}
    longer = (a_class("error", expire_after="90d"), a_class("training", expire_after="120d"))
    policy = a_policy_of(scanned)
    policy = replace(policy, classes={rule.name: rule for rule in longer})
    assert reclassify(scanned, policy).changed == RANKS
    assert classes(scanned) == {"training": RANKS}


def test_an_original_in_a_batch_on_its_way_is_left_to_it(scanned: Tree) -> None:
    reclassify(scanned, a_policy_of(scanned))
    segment = scanned.value("SELECT max(id) FROM segments")
    scanned.execute(
        "INSERT INTO batches (run_id, action, place_id, state, token, intent, created_ns, updated_ns)"
        f" VALUES ({scanned.run_id}, 'transition', {scanned.place_id}, 'intended', 1, '{{}}', 0, 0)"
    )
    scanned.execute(
        f"INSERT INTO batch_members (batch_id, segment_id, inode, size_bytes, mtime_ns) VALUES (1, {segment}, 1, 1, 1)"
    )
    policy = a_policy_of(scanned)
    policy = replace(policy, sources=(replace(scanned.source, exclude=("rank_*.log",)),))
    done = reclassify(scanned, policy)
    assert (done.unclaimed, done.is_whole) == (RANKS - 1, False)
    assert unclassified_places(scanned.catalog, policy, HOST) == {scanned.place_id}
    scanned.execute("UPDATE batches SET state = 'abandoned'")
    assert reclassify(scanned, policy).unclaimed == 1
    assert unclassified_places(scanned.catalog, policy, HOST) == frozenset()


def test_nothing_of_a_place_not_gone_through_is_marked(scanned: Tree) -> None:
    scanned.execute("UPDATE segments SET original = 'settled', first_seen_ns = 0")
    policy = a_policy_of(scanned, tiers=())
    now = datetime.now(UTC)
    kept = [
        item
        for item in iter_batches(CatalogDue(scanned.catalog), policy, now, unclassified={scanned.place_id})
        if isinstance(item, Kept)
    ]
    assert [(item.reason.code, item.segments) for item in kept] == [(ReasonCode.RECLASSIFYING, RANKS)]
    planned = list(iter_batches(CatalogDue(scanned.catalog), policy, now))
    assert [type(item) is Kept for item in planned] == [False]


def test_neither_a_line_number_nor_another_host_is_another_rule(scanned: Tree) -> None:
    policy = a_policy_of(scanned, "rank_*.log")
    moved = replace(policy, matches=tuple(replace(rule, at=a_rule_ref(line=99)) for rule in policy.matches))
    assert claims_key(policy, scanned.source, HOST) == claims_key(moved, scanned.source, "pod-2")
    named = replace(scanned.source, labels={"node": "{host}"})
    assert claims_key(policy, named, HOST) != claims_key(policy, named, "pod-2")


def test_what_waits_is_found_by_its_index(scanned: Tree) -> None:
    sql = f"{reclassifying._SELECT} AND s.claimed_class_id IS NOT NULL ORDER BY s.id LIMIT 10"
    with scanned.catalog.read() as conn:
        plan = [row[3] for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", (1, 0)).fetchall()]
    assert any("ix_segments_waiting" in line for line in plan), os.linesep.join(plan)

"""What is over what: file systems against their marks, teams against their quotas."""

from __future__ import annotations

from lifecycle.model import TierName
from lifecycle.plan.pressure import find_broken, full_tiers, marks_of, need_of, stop_bytes
from tests.builders import a_file_system, a_fill, a_policy, a_quota, a_tier
from tests.unit.plan.pressures import MIB, a_policy_with_marks

HOT, WARM = TierName.HOT, TierName.WARM


def broken(policy_quotas: object = None, **usage_mib: int) -> list[str]:
    policy = a_policy_with_marks(quotas=policy_quotas)  # type: ignore[arg-type]
    usage = {(team, HOT): size * MIB for team, size in usage_mib.items()}
    return [f"{'!!' if b.is_alarm else '!'} {b.subject} {b.text}" for b in find_broken([], usage, policy)]


def test_the_lowest_mark_is_where_relief_starts() -> None:
    policy = a_policy(hot=a_fill(high=0.8, low=0.6, reserve="300MiB"))
    assert [mark.start_bytes // MIB for mark in marks_of(a_file_system(used="1MiB"), policy)] == [700, 800]
    assert stop_bytes(a_file_system(used="1MiB"), policy) == 600 * MIB


def test_tiers_on_one_file_system_have_the_stricter_marks() -> None:
    policy = a_policy(hot=a_fill(high=0.9, low=0.8), tiers=[a_tier(WARM, fill=a_fill(high=0.7, low=0.5))])
    shared = a_file_system("hot+warm", used="750MiB", tiers=(HOT, WARM), place_ids=(1, 2))
    assert marks_of(shared, policy)[0].start_bytes == 700 * MIB
    assert stop_bytes(shared, policy) == 500 * MIB
    assert full_tiers([shared], policy) == {WARM}


def test_a_reserve_larger_than_the_disk_is_always_broken_and_never_negative() -> None:
    policy = a_policy(hot=a_fill(high=None, low=None, reserve="2GiB"))
    file_system = a_file_system(used="1MiB")
    assert marks_of(file_system, policy)[0].start_bytes == 0
    assert len(find_broken([file_system], {}, policy)) == 1


def test_marks_and_hard_quotas_are_alarms_and_soft_ones_a_line() -> None:
    quotas = {"hot": a_quota(soft="1GiB", hard="2GiB")}
    assert broken(quotas, nlp=1025, vision=2049, speech=1024) == [
        "! nlp 1.00 GiB on hot, soft quota 1GiB",
        "!! vision 2.00 GiB on hot, hard quota 2GiB",
    ]


def test_a_total_quota_is_over_all_tiers() -> None:
    policy = a_policy_with_marks(quotas={"total": a_quota(hard="100MiB")})
    usage = {("nlp", HOT): 60 * MIB, ("nlp", WARM): 60 * MIB}
    (found,) = find_broken([], usage, policy, open_bytes={"nlp": 50 * MIB})
    assert (found.text, found.open_bytes) == ("120 MiB in all, hard quota 100MiB", 50 * MIB)


def test_open_bytes_are_named_where_they_are_what_cannot_be_reached() -> None:
    policy = a_policy_with_marks()
    hot = a_file_system(used="850MiB")
    cold = a_file_system("cold", used="850MiB", tiers=(TierName.COLD,))
    found = find_broken([hot, cold], {}, policy, open_bytes={"nlp": MIB, "vision": 2 * MIB})
    assert [(each.subject, each.open_bytes) for each in found] == [("hot", 3 * MIB)]


def test_an_unknown_file_system_is_never_said_to_be_broken() -> None:
    policy = a_policy_with_marks()
    unknown = a_file_system(used="999MiB", unknown="no answer within 60 s")
    assert find_broken([unknown], {}, policy) == ()
    assert full_tiers([unknown], policy) == frozenset()


def test_bytes_and_inodes_both_have_to_come_down() -> None:
    policy = a_policy_with_marks()
    file_system = a_file_system(used="850MiB", used_inodes=90, total_inodes=100)
    from lifecycle.plan.pressure import Pressure

    need = need_of(file_system, policy, Pressure(), used_bytes=850 * MIB, used_inodes=90)
    assert need is not None
    assert (need.stop_bytes, need.stop_inodes) == (700 * MIB, 70)

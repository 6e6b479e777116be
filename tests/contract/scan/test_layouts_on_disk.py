"""Trees as trackers and frameworks leave them: links beside folders, runs that wait, numbers that come back."""

from __future__ import annotations

import os
import shutil

import pytest

from lifecycle.catalog.store import Catalog
from lifecycle.policy.builtin import DEFAULT_LAYOUTS
from tests.contract.scan.tree import Tree, nobody_writes

SESSION = "ray/session_2026-03-12_10-10-10_123456_4711"
OFFLINE = "wandb/offline-run-20260312_101010-x7k2p9ab"
RUN = "mlruns/731/0a1b2c3d4e5f60718293a4b5c6d7e8f9"
META = b"artifact_uri: file:///a\nend_time: %s\nlifecycle_stage: active\nstatus: %d\n"


@pytest.fixture
def tree(catalog: Catalog, tmp_path: object) -> Tree:
    return Tree(catalog, tmp_path / "logs", under="", layouts=("mlflow", *DEFAULT_LAYOUTS))  # type: ignore[operator]


def scan(tree: Tree, after: str = "2h") -> None:
    """As it would be when everything has been quiet for longer than settle."""
    tree.scan(after, open_files=nobody_writes)


def test_a_ray_session_is_counted_once_though_session_latest_leads_to_it(tree: Tree) -> None:
    tree.write(f"{SESSION}/logs/raylet.out")
    tree.write(f"{SESSION}/logs/raylet.out.1")
    (tree.root / "ray/session_latest").symlink_to(tree.root / SESSION)
    figures = tree.scan()
    assert (figures.new, figures.special) == (2, 1)
    assert set(tree.states()) == {f"{SESSION}/logs/raylet.out", f"{SESSION}/logs/raylet.out.1"}


def test_links_that_trackers_repoint_are_neither_read_nor_counted_as_logs(tree: Tree) -> None:
    tree.write("wandb/run-20260312_101010-abc/logs/debug.log")
    (tree.root / "wandb/latest-run").symlink_to("run-20260312_101010-abc")
    (tree.root / "wandb/debug.log").symlink_to("run-20260312_101010-abc/logs/debug.log")
    tree.write("determined/train/logs/note.log")
    (tree.root / "determined/train/logs/stdout.log").symlink_to("/proc/self/fd/1")
    tree.scan()
    assert set(tree.states()) == {"wandb/run-20260312_101010-abc/logs/debug.log", "determined/train/logs/note.log"}


def test_binary_records_and_live_buffers_are_foreign_beside_the_logs(tree: Tree) -> None:
    names = (
        "wandb/run-20260312_101010-abc/run-abc.wandb",
        "lightning_logs/version_0/events.out.tfevents.1741774210.gpu-1.4711.0",
        "fluentd/app/buffer.b5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log",
        "fluentd/app/buffer.b5f3c61a0b9a2e5d5e1f3c0a8d7e6f5a4.log.meta",
    )
    for name in names:
        tree.write(name)  # text inside, even so
    assert (tree.scan().foreign, tree.states()) == (len(names), {})


def test_an_offline_run_is_not_settled_before_it_is_synced(tree: Tree) -> None:
    log, record = f"{OFFLINE}/files/output.log", f"{OFFLINE}/run-x7k2p9ab.wandb"
    tree.write(log, age="30d")
    tree.write("wandb/run-20260312_101010-abc/files/output.log", age="30d")
    tree.write(record, b"\x00W&B", age="30d")
    scan(tree)
    assert tree.states() == {log: "open", "wandb/run-20260312_101010-abc/files/output.log": "settled"}
    scan(tree, "3h")  # nothing changed: asked again
    assert tree.states()[log] == "open"
    tree.write(f"{record}.synced", b"")
    scan(tree, "4h")
    assert tree.states()[log] == "settled"


def test_an_offline_run_with_two_records_waits_for_both(tree: Tree) -> None:
    tree.write(f"{OFFLINE}/logs/debug.log", age="30d")
    for name in ("run-a.wandb", "run-b.wandb", "run-a.wandb.synced"):
        tree.write(f"{OFFLINE}/{name}", b"\x00")
    scan(tree)
    assert tree.states() == {f"{OFFLINE}/logs/debug.log": "open"}


def test_an_offline_run_whose_record_is_gone_is_left_alone(tree: Tree) -> None:
    tree.write(f"{OFFLINE}/logs/debug.log", age="30d")
    scan(tree)
    assert tree.states() == {f"{OFFLINE}/logs/debug.log": "open"}


def test_an_mlflow_run_is_not_settled_before_it_has_ended(tree: Tree) -> None:
    tree.write(f"{RUN}/meta.yaml", META % (b"null", 1), age="30d")
    tree.write(f"{RUN}/params/lr", b"0.1", age="30d")
    tree.write(f"{RUN}/metrics/eval/loss", b"1741774210000 0.5 1\n", age="30d")
    scan(tree)
    assert set(tree.states().values()) == {"open"}
    tree.write(f"{RUN}/meta.yaml", META % (b"1741774299000", 3), age="20d")
    scan(tree, "3h")
    assert tree.states() == {
        f"{RUN}/meta.yaml": "settled",
        f"{RUN}/params/lr": "settled",
        f"{RUN}/metrics/eval/loss": "settled",
    }


def test_a_folder_that_only_looks_like_a_run_waits_for_nothing(tree: Tree) -> None:
    tree.write("mlruns-of/731/0a1b2c3d4e5f60718293a4b5c6d7e8f9/a.log", age="30d")
    tree.write("offline-run-notes/a.log", age="30d")
    scan(tree)
    assert set(tree.states().values()) == {"settled"}


def test_a_version_that_comes_back_is_another_segment_under_the_same_path(tree: Tree) -> None:
    path = "lightning_logs/version_7/metrics.csv"
    tree.write(path, b"epoch,step,loss\n0,49,0.5\n")
    tree.scan()
    first = tree.rows()[os.fsencode(path)].id
    shutil.rmtree(tree.root / "lightning_logs/version_7")
    tree.scan()
    assert tree.states() == {path: "missing"}
    tree.write(path, b"epoch,step,loss\n0,9,0.9\n")
    tree.scan()
    assert tree.rows()[os.fsencode(path)].id != first
    assert [row.original for row in tree.all_rows() if row.id == first] == ["replaced"]
    tree.assert_sums_agree()


def test_metrics_that_are_rewritten_under_a_new_header_are_another_segment(tree: Tree) -> None:
    path = "lightning_logs/version_0/metrics.csv"
    tree.write(path, b"epoch,step,loss\n" + b"0,49,0.5\n" * 900)
    tree.scan()
    tree.write(path, b"epoch,step,loss,val_loss\n" + b"0,49,0.5,\n" * 900)
    figures = tree.scan()
    assert (figures.replaced, figures.new) == (1, 1)

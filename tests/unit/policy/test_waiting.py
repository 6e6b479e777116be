"""Which folders wait for something, and what ends the wait."""

from __future__ import annotations

import pytest

from lifecycle.policy.waiting import awaited

RUN = b"0a1b2c3d4e5f60718293a4b5c6d7e8f9"


@pytest.mark.parametrize(
    ("directory", "folder"),
    [
        (b"wandb/offline-run-20260312_101010-a/files", b"wandb/offline-run-20260312_101010-a"),
        (b"offline-run-20260312_101010-a", b"offline-run-20260312_101010-a"),
        (b"v/j/wandb/offline-run-20260312_101010-a/files/media/x", b"v/j/wandb/offline-run-20260312_101010-a"),
        (b"mlruns/7/" + RUN, b"mlruns/7/" + RUN),
        (b"mlruns/7/" + RUN + b"/metrics/eval/top", b"mlruns/7/" + RUN),
        (b"7/" + RUN + b"/tags", b"7/" + RUN),
        (b"wandb/run-20260312_101010-a/files", None),
        (b"wandb/offline-run-x", None),
        (b"mlruns/7", None),
        (b"mlruns/7/" + RUN + b"/artifacts/model", None),
        (b"", None),
    ],
)
def test_the_awaited_folder_is_cut_out_of_the_path(directory: bytes, folder: bytes | None) -> None:
    found = awaited(directory)
    assert (None if found is None else found.folder) == folder


def read_nothing(name: bytes) -> bytes:
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("names", "is_over"),
    [
        ([b"files", b"run-a.wandb"], False),
        ([b"files", b"run-a.wandb", b"run-a.wandb.synced"], True),
        ([b"run-a.wandb", b"run-b.wandb.synced"], False),
        ([b"files"], False),
    ],
)
def test_wandb_marks_each_record_that_it_has_synced(names: list[bytes], is_over: bool) -> None:
    found = awaited(b"wandb/offline-run-20260312_101010-a/files")
    assert found is not None
    assert found.rule.is_over(names, read_nothing) is is_over


@pytest.mark.parametrize(
    ("meta", "is_over"),
    [
        (b"end_time: null\nstatus: 1\n", False),
        (b"artifact_uri: x\nend_time: 1741774299000\n", True),
        (b"end_time:\n", False),
        (b"note: 'end_time: 7'\n", False),
        (b"", False),
    ],
)
def test_an_mlflow_run_has_ended_when_its_end_is_written(meta: bytes, is_over: bool) -> None:
    found = awaited(b"mlruns/7/" + RUN + b"/metrics")
    assert found is not None
    assert found.rule.is_over([b"meta.yaml", b"metrics"], lambda name: meta) is is_over

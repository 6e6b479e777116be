"""Roots: never the system, a home, one another, the catalog or the policies, whatever name leads there."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.errors import PolicyError
from lifecycle.policy.load import load_policy
from lifecycle.policy.rules import Policy

HOME = {"HOME": "/home/ops"}


def load(
    folder: Path, *, source: str = "/srv/logs", warm: str = "", cold: str = "/backup/logs", catalog: str = ""
) -> Policy:
    """A policy in ``folder``, its paths as given."""
    folder.mkdir(exist_ok=True)
    warm_line = f'  warm: {{path: "{warm}"}}\n' if warm else ""
    (folder / "platform.yaml").write_text(
        f"catalog: {catalog or 'sqlite:////srv/lc/catalog.db'}\n"
        f'sources:\n  - {{name: logs, path: "{source}"}}\n'
        f'tiers:\n{warm_line}  cold: {{path: "{cold}"}}\n'
        "defaults: seed-1\n"
    )
    return load_policy(folder, environ=HOME)


def refusal(folder: Path, **paths: str) -> str:
    with pytest.raises(PolicyError) as caught:
        load(folder, **paths)
    (mistake,) = caught.value.mistakes
    assert "  HINT: " in mistake
    return mistake.partition("/platform.yaml:")[2].partition("  HINT: ")[0]


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    return tmp_path / "policies"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/", "3: source logs: path / is a directory of the system"),
        ("//", "3: source logs: path / is a directory of the system"),
        ("/.", "3: source logs: path / is a directory of the system"),
        ("/var/", "3: source logs: path /var is a directory of the system"),
        ("/proc/1", "3: source logs: path /proc/1 is the kernel's, not a disk"),
        ("/home", "3: source logs: path /home is a directory of the system"),
        ("/home/ops", "3: source logs: path /home/ops is a home directory"),
        ("/home/other", "3: source logs: path /home/other is a home directory"),
        ("/root", "3: source logs: path /root is a directory of the system"),
        ("~", "3: source logs: path: '~' begins with ~"),
        ("~ops/logs", "3: source logs: path: '~ops/logs' begins with ~"),
        (".", "3: source logs: path: '.' is the policies folder itself"),
        ("./", "3: source logs: path: './' is the policies folder itself"),
        ("..", "3: source logs: path: '..' has '..' in it"),
        ("/srv/logs/../..", "3: source logs: path: '/srv/logs/../..' has '..' in it"),
        ("../logs", "3: source logs: path: '../logs' has '..' in it"),
        ("s3://bucket/logs", "3: source logs: path: s3:// is not yet there"),
        (r"/srv/a\nb", r"3: source logs: path: '/srv/a\nb' has a control character"),
    ],
)
def test_a_root_that_reaches_too_far_is_refused(policies: Path, path: str, message: str) -> None:
    assert refusal(policies, source=path) == message


def test_a_root_above_the_home_directory_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    load(folder)
    with pytest.raises(PolicyError, match="path /srv/logs is above the home directory /srv/logs/me"):
        load_policy(folder, environ={"HOME": "/srv/logs/me"})


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (
            {"cold": "/srv/logs"},
            "5: tier cold: path /srv/logs is the same directory as /srv/logs, the path of source logs in line 3",
        ),
        (
            {"cold": "/srv/logs/"},
            "5: tier cold: path /srv/logs is the same directory as /srv/logs, the path of source logs in line 3",
        ),
        (
            {"cold": "/srv//./logs"},
            "5: tier cold: path /srv/logs is the same directory as /srv/logs, the path of source logs in line 3",
        ),
        (
            {"cold": "/srv/logs/cold"},
            "5: tier cold: path /srv/logs/cold lies inside /srv/logs, the path of source logs in line 3",
        ),
        ({"cold": "/srv"}, "5: tier cold: path /srv holds /srv/logs, the path of source logs in line 3"),
        (
            {"warm": "/x/w", "cold": "/x/w"},
            "6: tier cold: path /x/w is the same directory as /x/w, the path of tier warm in line 5",
        ),
        (
            {"warm": "/x/w", "cold": "/x/w/c"},
            "6: tier cold: path /x/w/c lies inside /x/w, the path of tier warm in line 5",
        ),
        ({"catalog": "sqlite:////srv/logs/c.db"}, "3: source logs: path /srv/logs holds the catalog /srv/logs/c.db"),
        (
            {"catalog": "sqlite:////backup/logs/c.db"},
            "5: tier cold: path /backup/logs holds the catalog /backup/logs/c.db",
        ),
    ],
)
def test_a_self_move_and_a_root_over_another_thing_of_ours_are_refused(
    policies: Path, paths: dict[str, str], message: str
) -> None:
    catalog_is_first = paths.get("cold") == "/srv"
    if catalog_is_first:  # /srv also holds the catalog; keep that out of this case
        paths = {**paths, "catalog": "sqlite:////var/lib/lc/c.db"}
    assert refusal(policies, **paths) == message


def test_neighbours_with_a_common_beginning_are_no_nest(policies: Path) -> None:
    assert load(policies, source="/srv/logs", warm="/srv/logs-warm", cold="/srv/logs2")


def test_a_root_over_the_policies_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "policies"
    folder.parent.mkdir()
    message = refusal(folder, source=f"{tmp_path}/logs")
    assert message == f"3: source logs: path {tmp_path}/logs holds the policies folder {folder}"


def test_a_link_does_not_hide_that_two_roots_are_one(policies: Path, tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    same = refusal(policies, source=f"{tmp_path}/real", cold=f"{tmp_path}/link")
    assert "is the same directory as" in same
    inside = refusal(policies, source=f"{tmp_path}/real", cold=f"{tmp_path}/link/sub")
    assert "lies inside" in inside


def test_a_link_to_a_system_directory_is_that_directory(policies: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    assert (
        refusal(policies, source=f"{tmp_path}/link")
        == f"3: source logs: path {tmp_path}/link is a directory of the system"
    )


def test_a_link_does_not_hide_that_a_root_holds_the_catalog(policies: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    message = refusal(policies, source=f"{tmp_path}/real", catalog=f"sqlite:///{tmp_path}/link/c.db")
    assert "holds the catalog" in message

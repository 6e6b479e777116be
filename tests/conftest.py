"""What every test may ask for: a fixed noon, and an environment that is nobody's. And what CI asks of every skip."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from tests.builders import NOON

# The only reasons for which CI lets a test be skipped; a reason begins with one of these. Everything else that a test
# needs is installed by .ci/run, and a test that could have run and did not is a failure.
SKIPS_ALLOWED: Final = (
    "no FUSE",
    "logrotate is not installed",
    "needs another user",
    "root sees everything",
    "this file system",
    "this kernel",
)


@pytest.fixture
def noon() -> datetime:
    return NOON


@pytest.fixture(autouse=True)
def _nobodys_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIFECYCLE_* of the developer's shell never reaches a test, nor does a terminal's width or colour."""
    for name in [name for name in os.environ if name.startswith("LIFECYCLE_")]:
        monkeypatch.delenv(name)
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of this source tree, for tests that read its documents."""
    return Path(__file__).parent.parent


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes that nobody can read are named by their length: what holds a time (gzip) is another text in each process,
    and workers must agree on the names of tests."""
    if isinstance(val, bytes) and (len(val) > 60 or not val.isascii() or b"\0" in val):
        return f"{argname}-{len(val)}B"
    return None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With STRICT_SKIPS set, a skip for any other reason than those allowed fails the whole run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("STRICT_SKIPS") or hasattr(session.config, "workerinput") or reporter is None:
        return
    reasons = [_reason(report) for report in reporter.stats.get("skipped", [])]
    unwanted = sorted({reason for reason in reasons if not reason.startswith(SKIPS_ALLOWED)})
    for reason in unwanted:
        reporter.write_line(f"skipped for a reason that is not allowed: {reason}", red=True)
    if unwanted and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")

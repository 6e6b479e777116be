"""What every test may ask for: a fixed noon, and a HOME and environment that are nobody's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.builders import NOON


@pytest.fixture
def noon() -> datetime:
    return NOON


@pytest.fixture(autouse=True)
def _nobodys_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LIFECYCLE_* of the developer's shell never reaches a test, nor does a terminal's width or colour."""
    for name in [name for name in os.environ if name.startswith("LIFECYCLE_")]:
        monkeypatch.delenv(name)
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    yield


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of this source tree, for tests that read its documents."""
    return Path(__file__).parent.parent

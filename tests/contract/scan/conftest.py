"""A tree of two jobs' logs, and the catalog it is scanned into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lifecycle.catalog.store import Catalog, copy_for_preview
from tests.builders import NOON
from tests.contract.scan.tree import Tree


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    """A private one, which is made in a tenth of the time: durability is not what is tested here."""
    with copy_for_preview(None, now=NOON) as made:
        yield made


@pytest.fixture
def tree(catalog: Catalog, tmp_path: Path) -> Tree:
    return Tree(catalog, tmp_path / "logs")

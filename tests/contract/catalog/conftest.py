"""A fresh catalog of every kind there is, and rows to put into it. PostgreSQL will join ``CATALOG_KINDS``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from lifecycle.catalog.store import Catalog, create_catalog
from tests.builders import NOON
from tests.contract.catalog.rows import Rows


def _sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'catalog.db'}"


CATALOG_KINDS: Final[dict[str, Callable[[Path], str]]] = {"sqlite": _sqlite_url}


@pytest.fixture(params=CATALOG_KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return CATALOG_KINDS[request.param](tmp_path)


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with create_catalog(url, now=NOON) as made:
        yield made


@pytest.fixture
def rows(catalog: Catalog) -> Rows:
    return Rows(catalog)

"""From the common options to the open app: what every command does first, written once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle.cli.invocation import Invocation
from lifecycle.cli.times import When

if TYPE_CHECKING:
    from lifecycle.policy.rules import Policy
    from lifecycle.wiring import App, Settings


def make_settings(call: Invocation, now: When | None = None) -> Settings:
    """``--now`` without a zone is in the policy's, so the policy is read for it; relative times count from now."""
    from lifecycle.wiring import Settings

    return Settings(policies=call.policies, now=_resolve_now(call, now), environ=os.environ)


@contextmanager
def open_app(call: Invocation, *, read_only: bool, now: When | None = None) -> Iterator[App]:
    from lifecycle import wiring

    with wiring.open_app(make_settings(call, now), read_only=read_only) as app:
        yield app


def read_policy(call: Invocation) -> Policy:
    """The policy alone: for commands that need no catalog."""
    from lifecycle.policy.load import load_policy

    return load_policy(find_policies(call), environ=os.environ)


def find_policies(call: Invocation) -> Path:
    """The folder that the options, the environment or the usual places name."""
    from lifecycle.policy import load

    return load.find_policies(call.policies, os.environ, Path.cwd())


def _resolve_now(call: Invocation, when: When | None) -> datetime | None:
    if when is None:
        return None
    from lifecycle.clock import SystemClock

    zone = read_policy(call).timezone if when.needs_zone else "UTC"
    return when.resolve(now=SystemClock().now(), zone=zone)


@contextmanager
def open_preview(call: Invocation, *, now: When | None, root: Path | None) -> Iterator[App]:
    """A read-only app; with ``root`` one without a catalog, whose only source is that tree."""
    if root is None:
        with open_app(call, read_only=True, now=now) as app:
            yield app
        return
    from lifecycle import wiring

    with wiring.open_root(make_settings(call, now), root.absolute()) as app:
        yield app

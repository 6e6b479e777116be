"""From settings to open adapters: the one place that picks classes, opens the catalog and knows the host.

Decides nothing about logs. Whoever asks for a read-only app is never given a handle that can write.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from lifecycle.app import App as App
from lifecycle.app import host_of, put_marker
from lifecycle.catalog.places import Place, ensure_place, find_place, find_place_by_uid, rename_place
from lifecycle.catalog.store import Catalog, catalog_path, copy_for_preview, create_catalog, open_catalog
from lifecycle.clock import MovedClock, SystemClock
from lifecycle.errors import ExitCode, LifecycleError, PlaceUnavailable, PolicyError, UsageError, worst_exit
from lifecycle.model import PlaceKind, TierName
from lifecycle.policy.load import find_policies, load_policy
from lifecycle.policy.rules import Policy
from lifecycle.policy.starter import starter_files
from lifecycle.ports import Clock
from lifecycle.report.figures import InitReport, Made, ProblemLine
from lifecycle.scan.marker import Marker, read_marker
from lifecycle.units import from_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a command line and its environment say. ``now`` moves the clock."""

    policies: Path | None = None
    now: datetime | None = None
    environ: Mapping[str, str]


@contextmanager
def open_app(settings: Settings, *, read_only: bool) -> Iterator[App]:
    """Policy and catalog, opened. Raises UsageError, PolicyError, SchemaVersionError, Damaged.

    A moved clock is for previews anywhere, and for what writes only on a catalog made with ``init --rehearsal``.
    """
    policy = load_policy(find_policies(settings.policies, settings.environ, Path.cwd()), environ=settings.environ)
    clock: Clock = SystemClock() if settings.now is None else MovedClock(settings.now)
    with open_catalog(policy.catalog_url, read_only=read_only, checks_aside=True) as catalog:
        if settings.now is not None and not read_only and not catalog.facts().rehearsal:
            raise UsageError(
                f"--now {settings.now:%Y-%m-%d %H:%M} would act on real logs ahead of time: this catalog is"
                f" no rehearsal",
                hint="lifecycle plan --now shows that day; lifecycle init --rehearsal makes a catalog to practise on",
            )
        if settings.now is None:
            clock = _clock_of(catalog, clock)
        yield App(policy=policy, catalog=catalog, clock=clock, host=socket.gethostname())


def _clock_of(catalog: Catalog, clock: Clock) -> Clock:
    """A rehearsal's runs may lie ahead of the clock; then its own time goes on from the last of them."""
    facts = catalog.facts()
    latest = from_ns(facts.clock_ns)
    return MovedClock(latest) if facts.rehearsal and latest > clock.now() else clock


# --- init ---------------------------------------------------------------------------------------------------------


def init(
    target: Path,
    *,
    sources: Sequence[Path] = (),
    warm: Path | None = None,
    cold: Path | None = None,
    catalog: Path | None = None,
    rehearsal: bool = False,
    environ: Mapping[str, str],
) -> InitReport:
    """Starter policy in ``target`` unless one is there, then the catalog, then a marker at every place.

    A second call makes only what is missing. Raises UsageError, PolicyError; a place that cannot be marked is a
    problem in the report and stops nothing else.
    """
    made = [_starter(target, sources, warm, cold, catalog)]
    policy = load_policy(target, environ=environ)
    path = catalog_path(policy.catalog_url)
    if path.exists():
        opened = open_catalog(policy.catalog_url)
        if rehearsal and not opened.facts().rehearsal:
            opened.close()
            raise UsageError(
                f"catalog {path} is no rehearsal and cannot become one", hint="name another catalog in the policy"
            )
        made.append(Made(kind="catalog", what=str(path), note="was there, left as it is"))
    else:
        opened = create_catalog(policy.catalog_url, now=SystemClock().now(), rehearsal=rehearsal)
        made.append(
            Made(
                kind="catalog", what=str(path), note="rehearsal: its clock can be moved with --now" if rehearsal else ""
            )
        )
    problems: list[ProblemLine] = []
    codes: set[ExitCode] = set()
    names = {source.name for source in policy.sources}
    with opened:
        for kind, name, host, root, tier in _wanted_places(policy):
            try:
                made.append(_mark_place(opened, kind, name, host, root, tier, names))
            except LifecycleError as error:
                problems.append(
                    ProblemLine(phase="init", place=name, subject=root, message=error.message, hint=error.hint)
                )
                codes.add(error.exit_code)
    return InitReport(
        policies=str(target),
        catalog=str(path),
        rehearsal=rehearsal,
        made=tuple(made),
        problems=tuple(problems),
        exit_code=worst_exit(codes),
    )


def _starter(target: Path, sources: Sequence[Path], warm: Path | None, cold: Path | None, catalog: Path | None) -> Made:
    path = target / "platform.yaml"
    if path.exists():
        if sources or warm or cold or catalog:
            raise UsageError(
                f"{path} is there: its paths are not changed from the command line",
                hint=f"edit {path}, then lifecycle init",
            )
        return Made(kind="policy", what=str(path), note="was there, left as it is")
    if not sources:
        raise UsageError(
            f"there is no {path} and no --source to write one for",
            hint="lifecycle init --source /data/logs --cold /backup/logs",
        )
    if cold is None:
        raise UsageError("say where logs go in the end: --cold DIR", hint="another disk, or the backup file system")
    write_starter(target, sources, warm, cold, catalog or target.absolute() / "catalog.db")
    return Made(kind="policy", what=str(path), note="commented starter: read it, then lifecycle plan")


def write_starter(target: Path, sources: Sequence[Path], warm: Path | None, cold: Path, catalog: Path) -> None:
    """The starter policy's files, none of which is there. What cannot be meant is refused, and nothing written."""
    for source in sources:
        if not source.is_dir():
            raise UsageError(
                f"--source {source}: there is no such directory", hint="nothing was written; name the logs"
            )
    texts = starter_files(logs=sources[0], more_logs=sources[1:], warm=warm, cold=cold, catalog=catalog)
    with TemporaryDirectory(prefix="lifecycle-policy-") as draft:
        _write_texts(Path(draft), texts)
        try:
            load_policy(Path(draft), environ={})
        except PolicyError as error:
            mistakes = "\n".join(mistake.partition(".yaml:")[2].partition(": ")[2] for mistake in error.mistakes)
            raise UsageError(mistakes, hint="nothing was written; give other paths") from error
    _write_texts(target, texts)


def _write_texts(target: Path, texts: Iterable[tuple[str, str]]) -> None:
    for name, text in texts:
        path = target / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}", hint="name another folder") from error


def _wanted_places(policy: Policy) -> Iterator[tuple[PlaceKind, str, str, str, TierName]]:
    for source in policy.sources:
        yield PlaceKind.SOURCE, source.name, host_of(source, socket.gethostname()), source.path, TierName.HOT
    for name, tier in policy.tiers.items():
        yield PlaceKind.TIER, name.value, "", tier.path, name


def _mark_place(
    catalog: Catalog, kind: PlaceKind, name: str, host: str, root: str, tier: TierName, policy_names: set[str]
) -> Made:
    with catalog.read() as conn:
        known = find_place(conn, kind, name, host)
    # A place that was worked on and has no marker now is most likely not mounted: a new marker would make its
    # emptiness look real.
    was_used = known is not None and (known.generation > 0 or known.scanned_ns is not None)
    if was_used and (not os.path.isdir(root) or read_marker(root) is None):
        raise PlaceUnavailable(
            f"{kind} {name}: {root} was marked before and its marker is gone: is it mounted?",
            hint="mount it or bring its .lifecycle/place.json back; a new directory needs a new name in the policy",
        )
    is_new = not os.path.isdir(root)
    if kind is PlaceKind.TIER:
        try:
            os.makedirs(root, mode=0o755, exist_ok=True)
        except OSError as error:
            raise PlaceUnavailable(
                f"tier {name}: {root} cannot be made: {error.strerror}", hint="make it, or change its path"
            ) from error
    marker = read_marker(root)
    catalog_id = catalog.facts().catalog_id
    if marker is not None and marker.catalog_id != catalog_id:
        raise UsageError(
            f"{kind} {name}: {root} has the marker of another catalog ({marker.catalog_id[:8]},"
            f" {marker.kind} {marker.name})",
            hint="use another directory; if it is a copy of one, remove .lifecycle in it",
        )
    if marker is not None:
        _take_over(catalog, known, marker, kind, name, root, policy_names)
    uid = marker.place_uid if marker is not None else secrets.token_hex(16)
    with catalog.write() as conn:
        place = ensure_place(conn, kind=kind, name=name, host=host, root=root, tier=tier, uid=uid)
    if marker is not None:
        return Made(kind="marker", what=root, note="was there, left as it is")
    put_marker(catalog_id, place)
    return Made(kind="marker", what=root, note=f"{kind} {name}{', folder made' if is_new else ''}")


def _take_over(
    catalog: Catalog, known: Place | None, marker: Marker, kind: PlaceKind, name: str, root: str, names: set[str]
) -> None:
    """A marker of this catalog: it is this place's own, or that of one which the policy calls otherwise by now."""
    if known is not None and known.uid == marker.place_uid:
        return
    with catalog.read() as conn:
        owner = find_place_by_uid(conn, marker.place_uid)
    if known is None and owner is not None and owner.kind is kind is PlaceKind.SOURCE and owner.name not in names:
        with catalog.write() as conn:
            rename_place(conn, owner.id, name)
        return
    raise UsageError(
        f"{kind} {name}: {root} is marked as {marker.kind} {marker.name} of this catalog",
        hint="two names for one directory, or two places swapped in the policy: put the paths right",
    )


@contextmanager
def open_root(settings: Settings, root: Path) -> Iterator[App]:
    """An app for a look at any tree: no catalog but an empty private one, and that tree as the only source.

    The policy found in the usual places gives classes, layouts and tiers; where there is none, the starter's do.
    """
    with ExitStack() as stack:
        policy = _policy_for_root(stack, settings)
        source = replace(policy.sources[0], name="root", path=str(root), each_node=False)
        clock: Clock = SystemClock() if settings.now is None else MovedClock(settings.now)
        catalog = stack.enter_context(copy_for_preview(None, now=clock.now()))
        # Whoever looks at a strange tree wants to see all of it: every folder is a team there.
        anybody = replace(policy, sources=(source,), teams={}, aliases={}, default_quota={}, hot=None)
        yield App(policy=anybody, catalog=catalog, clock=clock, host=socket.gethostname())


def _policy_for_root(stack: ExitStack, settings: Settings) -> Policy:
    try:
        folder = find_policies(settings.policies, settings.environ, Path.cwd())
    except UsageError:
        if settings.policies is not None:
            raise
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="lifecycle-policy-")))
        texts = starter_files(
            logs=folder / "logs", warm=folder / "warm", cold=folder / "cold", catalog=folder / "catalog.db"
        )
        _write_texts(folder, texts)
    return load_policy(folder, environ=settings.environ)

"""Policy files to a ``Policy``: found, read once, checked against one another, every mistake of all files at once.

Reads the policies folder and looks at where roots lie; writes nothing. The digest is of the text as it stands in the
files, before ``${VAR}``.
"""

from __future__ import annotations

import hashlib
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from lifecycle.errors import PolicyError, UsageError
from lifecycle.model import RuleRef, Selector, TierName
from lifecycle.policy.classes import PlatformClasses, check_bounds, make_classes, make_team_classes
from lifecycle.policy.document import MAX_BYTES, Document, Mistake, parse_document
from lifecycle.policy.effective import effective_policy, explain_path
from lifecycle.policy.holds import make_holds
from lifecycle.policy.limits import check_quotas, make_fill, make_quotas
from lifecycle.policy.mistakes import Checked, check_document, did_you_mean
from lifecycle.policy.places import extra_labels, make_sources, make_tiers
from lifecycle.policy.roots import Root, check_roots, resolve_catalog
from lifecycle.policy.rules import HoldRule, Limits, Policy, QuotaRule, SourceRule, TeamRule, TierRule
from lifecycle.policy.schema import PlatformKeys, TeamKeys, Wrong, json_schema
from lifecycle.policy.starter import starter_files

__all__ = ["effective_policy", "explain_path", "find_policies", "json_schema", "load_policy", "starter_files"]

PLATFORM: Final = "platform.yaml"
POLICIES_VARIABLE: Final = "LIFECYCLE_POLICIES"
SYSTEM_POLICIES: Final = Path("/etc/lifecycle/policies")
# Where a required key is missing, the rest is checked as if it were this.
_PLATFORM_STAND_INS: Final[Mapping[str, object]] = {
    "catalog": "sqlite:////lifecycle-stand-in/catalog.db",
    "sources": [{"name": "stand-in", "path": "/lifecycle-stand-in/logs"}],
}
_TEAM_STAND_INS: Final[Mapping[str, object]] = {"team": "stand-in"}


def find_policies(flag: Path | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """The policies folder: ``--policies``, LIFECYCLE_POLICIES, ./policies, /etc/lifecycle/policies, in this order.

    The path is as the user named it, a relative one relative to ``cwd``. Raises UsageError when the one asked for
    has no platform.yaml, or when there is none anywhere.
    """
    said, folder = ("--policies", flag) if flag is not None else (POLICIES_VARIABLE, None)
    if folder is None and environ.get(POLICIES_VARIABLE):
        folder = Path(environ[POLICIES_VARIABLE])
    if folder is not None:
        if not (cwd / folder / PLATFORM).is_file():
            is_file = (cwd / folder).is_file()
            hint = "name the folder, not a file in it" if is_file else "lifecycle init makes a starter policy"
            raise UsageError(f"{said} {folder}: no {PLATFORM} there", hint=hint)
        return folder
    for folder in (Path("policies"), SYSTEM_POLICIES):
        if (cwd / folder / PLATFORM).is_file():
            return folder
    hint = "lifecycle init makes a starter policy; --policies DIR names another place"
    raise UsageError(f"no {PLATFORM} in {cwd / 'policies'} or {SYSTEM_POLICIES}", hint=hint)


def load_policy(directory: Path, *, environ: Mapping[str, str]) -> Policy:
    """Read and check a policies folder. Raises PolicyError with every mistake of every file, in the files' order.

    Reading the same files twice gives equal policies with the same digest. Later changes of the files are not seen.
    """
    mistakes: list[Mistake] = []
    documents = _read_folder(directory, mistakes)
    policy = _make_policy(documents, str(directory.absolute()), environ, mistakes)
    if policy is None or mistakes:
        order = {document.file: number for number, document in enumerate(documents)}
        found = sorted(set(mistakes), key=lambda m: (order.get(m.file, -1), m.file, m.line, m.message))
        raise PolicyError(tuple(mistake.render(f"{directory}/") for mistake in found))
    return policy


def _read_folder(directory: Path, mistakes: list[Mistake]) -> list[Document]:
    try:
        return [parse_document(name, _read(directory / name)) for name in _policy_files(directory, mistakes)]
    except OSError as error:
        message = f"policies cannot be read: {error.filename}: {error.strerror}"
        raise UsageError(message, hint="check the folder's and the file's owner and mode") from None


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _policy_files(directory: Path, mistakes: list[Mistake]) -> list[str]:
    """platform.yaml, then teams' files by name. A YAML file that nothing reads is a mistake, not a surprise."""
    if not (directory / PLATFORM).is_file():
        raise UsageError(f"no {PLATFORM} in {directory}", hint="lifecycle init makes a starter policy")
    folder = directory / "teams"
    found = {path.name: path for path in directory.iterdir()}
    found |= {f"teams/{path.name}": path for path in folder.iterdir()} if folder.is_dir() else {}
    teams = []
    for name, path in sorted(found.items()):
        if path.name.startswith(".") or path.suffix not in (".yaml", ".yml") or not path.is_file():
            continue
        is_team = name.startswith("teams/") or path.name.startswith("team-")
        if is_team and path.suffix == ".yaml":
            teams.append(name)
        elif name != PLATFORM:
            hint = "name it teams/TEAM.yaml or team-TEAM.yaml, or move it out of the policies folder"
            mistakes.append(Mistake(file=name, line=1, message="by its name no file of a policy", hint=hint))
    return [PLATFORM, *teams]


def _make_policy(
    documents: Sequence[Document], base: str, environ: Mapping[str, str], mistakes: list[Mistake]
) -> Policy | None:
    platform = check_document(documents[0], PlatformKeys, environ, _PLATFORM_STAND_INS)
    teams = [check_document(document, TeamKeys, environ, _TEAM_STAND_INS) for document in documents[1:]]
    mistakes.extend(platform.mistakes)
    mistakes.extend(mistake for checked in teams for mistake in checked.mistakes)
    keys, document = platform.keys, platform.document
    if keys is None:
        return None
    sources = make_sources(keys, document, base, mistakes)
    tiers = make_tiers(keys, document, base, mistakes)
    catalog_url = _catalog(keys, document, base, mistakes)
    mistakes.extend(check_roots(_roots(sources, tiers), catalog_url, base, document, environ))
    made = make_classes(keys, document, extra_labels(sources.values()), mistakes)
    check_bounds(keys, made, document, mistakes)
    quotas = make_quotas(keys.team_defaults.quota, document, ("team_defaults", "quota"), {}, mistakes)
    team_rules = _make_teams(keys, document, teams, made, quotas, mistakes)
    _check_timezone(keys, document, mistakes)
    aliases = {alias: team.name for team in team_rules.values() for alias in team.aliases}
    return Policy(
        digest=_digest(documents),
        files=tuple((each.file, each.text) for each in documents),
        catalog_url=catalog_url,
        catalog_at=document.ref(("catalog",)),
        timezone=keys.timezone,
        timezone_at=document.given_ref(("timezone",)),
        sources=tuple(sources.values()),
        tiers=tiers,
        matches=tuple(made.matches),
        classes=made.rules,
        teams=team_rules,
        grace=keys.expire.grace,
        grace_at=document.given_ref(("expire", "grace")),
        limits=_limits(keys, document),
        hot=make_fill("tier hot", keys.tiers.hot, document, ("tiers", "hot"), mistakes),
        default_quota=quotas,
        aliases=aliases,
        holds=tuple(_holds(keys, document, teams, aliases, mistakes)),
        hold_bound=keys.bounds.hold,
    )


def _holds(
    keys: PlatformKeys,
    document: Document,
    teams: Sequence[Checked[TeamKeys]],
    aliases: Mapping[str, str],
    mistakes: list[Mistake],
) -> Iterator[HoldRule]:
    def team_of(name: str) -> str:
        return aliases.get(name, name)

    seen: dict[Selector, RuleRef] = {}
    yield from make_holds(keys.holds, document, mistakes, timezone=keys.timezone, team_of=team_of, seen=seen)
    for checked in teams:
        if checked.keys is not None:
            yield from make_holds(
                checked.keys.holds,
                checked.document,
                mistakes,
                timezone=keys.timezone,
                team_of=team_of,
                seen=seen,
                team=checked.keys.team,
                lasts_at_most=keys.bounds.hold,
            )


def _limits(keys: PlatformKeys, document: Document) -> Limits:
    limits = keys.expire.limits
    refs = {key: document.given_ref(("expire", "limits", key)) for key in ("share_of_team", "bytes")}
    at = {key: ref for key, ref in refs.items() if ref is not None}
    return Limits(share_of_team=limits.share_of_team, size_bytes=limits.bytes, at=at)


def _roots(sources: Mapping[int, SourceRule], tiers: Mapping[TierName, TierRule]) -> list[Root]:
    roots = [
        Root(what=f"source {source.name}", path=source.path, loc=("sources", number, "path"))
        for number, source in sources.items()
    ]
    roots.extend(
        Root(what=f"tier {name}", path=tier.path, loc=("tiers", name.value, "path")) for name, tier in tiers.items()
    )
    return roots


def _catalog(keys: PlatformKeys, document: Document, base: str, mistakes: list[Mistake]) -> str:
    try:
        return resolve_catalog(keys.catalog, base)
    except Wrong as error:
        mistakes.append(document.mistake(("catalog",), str(error), error.hint))
        return str(_PLATFORM_STAND_INS["catalog"])


def _check_timezone(keys: PlatformKeys, document: Document, mistakes: list[Mistake]) -> None:
    try:
        zoneinfo.ZoneInfo(keys.timezone)
    except (KeyError, ValueError, OSError):  # not found is a KeyError; a path as a name is a ValueError
        hint = "write a name as Asia/Shanghai or UTC; a machine without a zone database knows only UTC"
        mistakes.append(document.mistake(("timezone",), f"no time zone {keys.timezone!r}", hint))


def _make_teams(
    keys: PlatformKeys,
    document: Document,
    teams: Sequence[Checked[TeamKeys]],
    made: PlatformClasses,
    quotas: Mapping[str, QuotaRule],
    mistakes: list[Mistake],
) -> dict[str, TeamRule]:
    """Teams by name in the platform's order; files and the platform's list must name the same teams."""
    by_name: dict[str, Checked[TeamKeys]] = {}
    for checked in teams:
        team, file = checked.keys, checked.document
        if team is None or file.node_at(("team",)) is None:
            continue
        first = by_name.get(team.team)
        if first is not None:
            message = f"team {team.team} is here and in {first.document.file}"
            mistakes.append(file.mistake(("team",), message, "keep one file for each team"))
            continue
        by_name[team.team] = checked
        if team.team not in keys.teams and not document.is_partial(("teams",)):
            otherwise = f"add it: teams: [{', '.join([*keys.teams, team.team])}]"
            hint = did_you_mean(team.team, keys.teams, otherwise)
            message = f"team {team.team!r} is not in the teams of {document.file}"
            mistakes.append(file.mistake(("team",), message, hint))
    _check_list(keys, document, by_name, len(by_name) == len(teams), mistakes)
    _check_aliases(by_name, keys.teams, mistakes)
    for checked in by_name.values():
        if checked.keys is not None:
            check_quotas(checked.keys, checked.document, keys.bounds, document, mistakes)
    listed = [*keys.teams, *(name for name in by_name if name not in keys.teams)]
    return {
        name: TeamRule(
            name=name,
            aliases=tuple(team.aliases),
            classes=make_team_classes(team, by_name[name].document, made, keys.bounds.classes, document, mistakes),
            quota=make_quotas(team.quota, by_name[name].document, ("quota",), quotas, mistakes),
            contacts=tuple(team.contacts),
            at=by_name[name].document.ref(("team",)),
        )
        for name in dict.fromkeys(listed)
        if name in by_name and (team := by_name[name].keys) is not None
    }


def _check_list(
    keys: PlatformKeys,
    document: Document,
    by_name: Mapping[str, Checked[TeamKeys]],
    are_all_read: bool,
    mistakes: list[Mistake],
) -> None:
    for number, name in enumerate(keys.teams):
        loc = ("teams", number)
        if name in keys.teams[:number]:
            mistakes.append(document.mistake(loc, f"team {name} is listed twice", "keep one of them"))
        elif name not in by_name and are_all_read:
            hint = f"add teams/{name}.yaml with the line team: {name}, or take it off the list"
            mistakes.append(document.mistake(loc, f"team {name} has no file", hint))


def _check_aliases(by_name: Mapping[str, Checked[TeamKeys]], listed: Sequence[str], mistakes: list[Mistake]) -> None:
    """A folder name means one team."""
    owners = {name: name for name in (*listed, *by_name)}
    for name, checked in by_name.items():
        for number, alias in enumerate(checked.keys.aliases if checked.keys is not None else ()):
            owner = owners.setdefault(alias, name)
            if owner != name or alias == name or alias in (checked.keys.aliases[:number] if checked.keys else ()):
                whose = "its own name" if alias == name else f"already {owner}'s" if owner != name else "here twice"
                message, hint = f"alias {alias!r} is {whose}", "let each folder name mean one team"
                mistakes.append(checked.document.mistake(("aliases", number), message, hint))


def _digest(documents: Sequence[Document]) -> str:
    """Of names and texts as they stand in the files; lengths keep one file's end from becoming another's start."""
    digest = hashlib.sha256()
    for document in documents:
        for text in (document.file, document.text):
            raw = text.encode()
            digest.update(b"%d:" % len(raw) + raw)
    return digest.hexdigest()

"""The keys of policy files, as pydantic models: what may stand where, in what unit, with which default.

The JSON Schema for editors is generated out of these models. Scalars arrive as text and are typed here. A key whose
feature comes later is in ``not_yet``: it is refused with these words, never ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Final, Literal

# Asking every installed distribution for a plugin costs as much as pydantic itself, and there is none for us.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.json_schema import models_json_schema

from lifecycle.policy.builtin import BUILT_IN, DEFAULT_LAYOUTS, NO_LAYOUT
from lifecycle.policy.layouts import HOST, open_layout
from lifecycle.policy.match import STANDARD_LABELS, check_path_pattern, check_pattern
from lifecycle.policy.rules import ExpireFrom
from lifecycle.policy.template import Template, parse_template
from lifecycle.spelling import find_near
from lifecycle.units import parse_duration, parse_percent, parse_size

NEVER: Final = "never"
NONE: Final = "none"
SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_FALLBACK_HINT: Final = "lifecycle policy schema lists what may stand here"


class Wrong(ValueError):
    """A value that cannot be used, and what to write instead."""

    def __init__(self, message: str, hint: str = _FALLBACK_HINT) -> None:
        super().__init__(message)
        self.hint = hint


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Wrong(
            f"{'a list' if isinstance(value, list) else 'a mapping'} where one value is expected", "write one value"
        )
    if value.strip() == "":
        raise Wrong("no value", "write a value after the colon, or remove the key")
    return value


def _parsed(parse: Callable[[str], Any], hint: str) -> Callable[[object], Any]:
    """A validator out of a parser whose ValueError reads ``what is wrong; what to write``."""

    def validate(value: object) -> Any:
        text = _text(value)
        try:
            return parse(text)
        except Wrong:
            raise
        except ValueError as error:
            message, _, said = str(error).partition("; ")
            raise Wrong(message, said or hint) from None

    return validate


def _named(pattern: str, what: str, hint: str) -> Callable[[object], str]:
    compiled = re.compile(pattern)

    def validate(value: object) -> str:
        text = _text(value)
        if not compiled.fullmatch(text):
            raise Wrong(f"{text!r} cannot be the name of a {what}", hint)
        return text

    return validate


def _limit(text: str) -> timedelta | None:
    return None if text == NEVER else parse_duration(text)


def _level(text: str) -> int:
    if not re.fullmatch(r"\d{1,4}", text) or not 1 <= int(text) <= 19:
        raise Wrong(f"zstd level {text!r} is not between 1 and 19", "3 is quick, 9 is small; above 19 stock tools balk")
    return int(text)


def _days(text: str) -> int:
    days = parse_duration(text) / timedelta(days=1)
    if days != int(days):
        raise Wrong(f"window {text!r} is not a whole number of days", "write 1d, 7d, ...")
    return int(days)


def _layout(text: str) -> str:
    if text in NO_LAYOUT:
        raise Wrong(f"there is no layout {text!r}", NO_LAYOUT[text])
    if re.fullmatch(r"[a-z][a-z-]*", text) and text not in BUILT_IN:
        near = find_near(text, BUILT_IN)
        meant = f"did you mean {near}? " if near else ""
        raise Wrong(
            f"unknown layout {text!r}",
            f"{meant}layouts are {', '.join(BUILT_IN)}; an own pattern looks like {{node}}/rank_{{rank}}.log",
        )
    open_layout(text)
    if text not in BUILT_IN:
        _check_labels("the pattern", parse_template(text))
    return text


def _check_labels(what: str, template: Template) -> None:
    """A label that is nearly one of ours is most likely a slip, and would leave every job without a team."""
    for label in template.labels:
        near = None if label in STANDARD_LABELS else find_near(label, STANDARD_LABELS)
        if near is not None:
            raise Wrong(f"{what} reads a label {{{label}}}", f"did you mean {{{near}}}? else choose another name")


def _under(text: str) -> str:
    template = parse_template(text, may_float=False)
    _check_labels("under", template)
    odd = [label for label in template.labels if label in ("rank", "stream")]
    if odd:
        raise Wrong(f"under cannot read {{{odd[0]}}}", "under reads folders above a job: {team}/{job}")
    return text


def _label_value(value: object) -> str:
    text = _text(value)
    if "{" in text.replace(HOST, ""):
        raise Wrong(f"label value {text!r} has a brace", f"only {HOST} is filled in here")
    return text


def _expire_from(text: str) -> ExpireFrom:
    try:
        return ExpireFrom(text)
    except ValueError:
        raise Wrong(
            f"{text!r} is no start to count from", "write write (its own last write) or job (the job's)"
        ) from None


def _errors_class(text: str) -> str | None:
    if text in (NONE, "off"):
        return None
    if not re.fullmatch(_CLASS_NAME, text):
        raise Wrong(f"{text!r} cannot be the name of a class", f"write the name of a class as error, or {NONE}")
    return text


def _count(text: str) -> int | None:
    if text == NONE:
        return None
    if not re.fullmatch(r"\d{1,6}", text) or int(text) < 1:
        raise Wrong(f"{text!r} is no number of files", "write 10, or none")
    return int(text)


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise Wrong(f"{text!r} is neither true nor false", "write true or false")
    return text == "true"


def _program(value: object) -> str:
    text = _text(value)
    if "\0" in text:
        raise Wrong(
            "a word of a command has a zero byte", "write the program and its arguments, each a word of the list"
        )
    return text


def _one_of(*words: str) -> Callable[[object], str]:
    def validate(value: object) -> str:
        text = _text(value)
        if text not in words:
            raise Wrong(f"{text!r} is not known here", f"write {' or '.join(words)}")
        return text

    return validate


_GITIGNORE_HINT: Final = "write a gitignore pattern as eval/ or error*.log, or LABEL:GLOB as job:eval-*"
_DURATION: Final = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*[smhdw]\s*$", "examples": ["24h", "7d"]}
_LIMIT: Final = {"type": "string", "pattern": r"^(never|\s*\d+(\.\d+)?\s*[smhdw]\s*)$", "examples": ["7d", "never"]}
_SIZE: Final = {
    "type": "string",
    "pattern": r"^\s*\d+(\.\d+)?\s*(B|[kKMGTP]B|[KMGTP]iB)\s*$",
    "examples": ["64MiB", "1GiB"],
}
_PERCENT: Final = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*%\s*$", "examples": ["80%"]}
_LEVEL: Final = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 19}, {"type": "string", "pattern": r"^1?\d$"}]}

_TEAM: Final = r"(?!\.)[^/\x00-\x1f\x7f{}*?]{1,255}"
_PLAIN_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
_CLASS_NAME: Final = r"[a-z0-9][a-z0-9_-]{0,62}"


def _name_schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string", "minLength": 1})]
Duration = Annotated[
    timedelta, BeforeValidator(_parsed(parse_duration, "write a duration above 0, as 24h")), WithJsonSchema(_DURATION)
]
Limit = Annotated[
    timedelta | None,
    BeforeValidator(_parsed(_limit, "write a duration above 0 as 7d, or never")),
    WithJsonSchema(_LIMIT),
]
Size = Annotated[int, BeforeValidator(_parsed(parse_size, "write a size above 0, as 64MiB")), WithJsonSchema(_SIZE)]
Percent = Annotated[
    float, BeforeValidator(_parsed(parse_percent, "write a share above 0% as 80%")), WithJsonSchema(_PERCENT)
]
ErrorsClass = Annotated[
    str | None,
    BeforeValidator(_parsed(_errors_class, f"write the name of a class as error, or {NONE}")),
    WithJsonSchema({"type": "string", "pattern": f"^{_CLASS_NAME}$", "examples": ["error", NONE]}),
]
Flag = Annotated[bool, BeforeValidator(_parsed(_flag, "write true or false")), WithJsonSchema({"type": "boolean"})]
Word = Annotated[str, BeforeValidator(_program), WithJsonSchema({"type": "string", "minLength": 1})]
Level = Annotated[int, BeforeValidator(_parsed(_level, "write 3 or 9")), WithJsonSchema(_LEVEL)]
Days = Annotated[int, BeforeValidator(_parsed(_days, "write 1d or 7d")), WithJsonSchema(_DURATION)]
TeamName = Annotated[
    str,
    BeforeValidator(_named(_TEAM, "team", "write the name of its folder: no slash, star or brace, no leading dot")),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
SourceName = Annotated[
    str,
    BeforeValidator(
        _named(_PLAIN_NAME, "source", "use letters, digits, dot, _ and -; it begins archive members' names")
    ),
    _name_schema(_PLAIN_NAME),
]
ClassName = Annotated[
    str,
    BeforeValidator(_named(_CLASS_NAME, "class", "use small letters, digits, _ and -")),
    _name_schema(_CLASS_NAME),
]
MatchPattern = Annotated[
    str, BeforeValidator(_parsed(check_pattern, _GITIGNORE_HINT)), WithJsonSchema({"type": "string", "minLength": 1})
]
PathPattern = Annotated[
    str,
    BeforeValidator(_parsed(check_path_pattern, "write a gitignore pattern, as checkpoints/")),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
LayoutText = Annotated[
    str,
    BeforeValidator(_parsed(_layout, "write a layout's name or a pattern as {node}/rank_{rank}.log")),
    WithJsonSchema({"type": "string", "minLength": 1, "examples": [*BUILT_IN, "{node}/rank_{rank}.log"]}),
]
Under = Annotated[
    str,
    BeforeValidator(_parsed(_under, "write one part for each folder, as {team}/{job}")),
    WithJsonSchema({"type": "string", "examples": ["{team}/{job}"]}),
]
LabelName = Annotated[
    str,
    BeforeValidator(_named(r"[a-z][a-z0-9_]{0,30}", "label", "use small letters, digits and _")),
    WithJsonSchema({"type": "string"}),
]
LabelValue = Annotated[str, BeforeValidator(_label_value), WithJsonSchema({"type": "string"})]
From = Annotated[
    ExpireFrom,
    BeforeValidator(_parsed(_expire_from, "write write or job")),
    WithJsonSchema({"type": "string", "enum": [member.value for member in ExpireFrom]}),
]


def _one_or_more(value: object) -> object:
    return value if isinstance(value, list | dict) else [value]


def _rank_range(text: str) -> tuple[int, ...]:
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < int(first):
        raise Wrong(f"{text!r} is not a rank", "write 3 or 0-7")
    if int(last or first) - int(first) >= 100_000:
        raise Wrong(f"{text!r} is too many ranks", "leave rank out: all of the job are held then")
    return tuple(range(int(first), int(last or first) + 1))


def _instant(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise Wrong(f"{text!r} is not a time", "write 2027-03-01 or 2027-03-01T09:00Z") from None


OneOrMore = Annotated[
    list[Text],
    BeforeValidator(_one_or_more),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
RankRange = Annotated[
    tuple[int, ...],
    BeforeValidator(_parsed(_rank_range, "write 3 or 0-7")),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": r"^\d+(-\d+)?$"}]}),
]
Instant = Annotated[
    datetime,
    BeforeValidator(_parsed(_instant, "write 2027-03-01 or 2027-03-01T09:00Z")),
    WithJsonSchema({"type": "string", "examples": ["2027-03-01", "2027-03-01T09:00Z"]}),
]


Count = Annotated[
    int | None,
    BeforeValidator(_parsed(_count, "write 10, or none")),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "none"}]}),
]


class Keys(BaseModel):
    """A mapping of a policy file: exactly these keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    not_yet: ClassVar[frozenset[str]] = frozenset()
    others: ClassVar[type[Keys] | None] = None  # what reads the keys that have no field of their own


class MergeKeys(Keys):
    below: Size | None = Field(default=None, description="segments smaller than this are merged into one archive")
    target: Size | None = Field(default=None, description="how many bytes of logs an archive takes at most")
    window: Days = Field(
        default=1,
        description="days of last write that one archive may hold, for tiny teams",
        json_schema_extra={"default": "1d"},
    )


class FillKeys(Keys):
    """Where relief of a file system starts and stops, and what stays free for checkpoints."""

    high: Percent | None = Field(default=None, description="relief starts above this share of the file system")
    low: Percent | None = Field(default=None, description="and stops at this one; ten points below high if left out")
    reserve: Size | None = Field(default=None, description="bytes kept free; relief starts when less is")


class HotKeys(FillKeys):
    """Of each file system under the sources."""


class TierKeys(FillKeys):
    not_yet = frozenset({"s3", "storage_class", "endpoint", "region", "kms_key", "cost"})

    path: Text = Field(description="a directory; relative to the policies folder")
    zstd: Level | None = Field(default=None, description="compression level, 1 to 19")
    merge: MergeKeys = MergeKeys()


class TiersKeys(Keys):
    hot: HotKeys = HotKeys()
    warm: TierKeys | None = None
    cold: TierKeys | None = None


class FreeSpaceKeys(Keys):
    command: Annotated[list[Word], Field(min_length=1)] = Field(
        description="program by its absolute path, and arguments; prints TOTAL FREE in bytes, then perhaps of inodes"
    )


class SourceKeys(Keys):
    not_yet = frozenset({"each_node", "mounts", "job_end", "evidence", "hooks"})

    name: SourceName
    path: Text = Field(description="the tree that jobs write into; relative to the policies folder")
    under: Under | None = Field(default=None, description="what the folders above a job's files are")
    layout: Annotated[list[LayoutText], Field(min_length=1)] = list(DEFAULT_LAYOUTS)
    settle: Duration = Field(
        default=timedelta(hours=1),
        description="quiet this long, and a log counts as finished",
        json_schema_extra={"default": "1h"},
    )
    release_after: Duration = Field(
        default=timedelta(hours=24),
        description="how long a stored original stays where writers cannot be seen",
        json_schema_extra={"default": "24h"},
    )
    copy_after: Duration | None = Field(
        default=None, description="age at which a stored copy is made early, while the original stays"
    )
    free_space: FreeSpaceKeys | None = Field(
        default=None, description="asks a program where the file system's own figures do not say what is full"
    )
    exclude: list[PathPattern] = Field(default=[], description="gitignore patterns of what is left alone")
    emptied_folders: Annotated[
        str, BeforeValidator(_one_of("remove", "keep")), WithJsonSchema({"enum": ["remove", "keep"]})
    ] = Field(default="remove", description="folders of jobs that lose their last file by our hand")
    labels: dict[LabelName, LabelValue] = Field(
        default={}, description="labels of everything here that the path does not say"
    )


class ExpireEarlyKeys(Keys):
    keep_at_least: Limit = Field(
        description="under pressure its only copy may go from this age on; never switches that off"
    )


class Figures(Keys):
    """What a class's retention is; every figure may be left out by a team."""

    not_yet = frozenset({"keep_metrics", "debug"})

    warm_after: Limit = Field(default=None, description="age at which it goes to warm")
    cold_after: Limit = Field(default=None, description="age at which it goes to cold")
    expire_after: Limit = Field(default=None, description="age at which it is marked; never keeps it for ever")
    expire_from: From | None = Field(default=None, description="count from its own last write, or from its job's")
    keep_errors_as: ErrorsClass = Field(
        default=None,
        description="the class that its error lines are kept as when it goes; training and eval: error; none: not kept",
    )
    keep_last: Count | None = Field(
        default=None, description="of each rotation set at most so many rotated files stay in hot; none: all of them"
    )
    evict: Flag = Field(default=True, description="under pressure an original goes as soon as it has a stored copy")
    expire_early: ExpireEarlyKeys | None = Field(
        default=None, description="off unless said: what may expire before its time where a disk is full"
    )


class ClassKeys(Figures):
    name: ClassName
    match: list[MatchPattern] | None = Field(
        None, description="gitignore patterns, or LABEL:GLOB; the first class wins"
    )


class TeamClassKeys(Figures):
    name: ClassName


class BoundKeys(Keys):
    """What a team may set for one class: each a pair, from and to."""

    warm_after: tuple[Duration, Duration] | None = None
    cold_after: tuple[Duration, Duration] | None = None
    expire_after: tuple[Duration, Duration] | None = None


class BoundsKeys(Keys):
    """What a team may set: quotas by tier, and figures of each class."""

    model_config = ConfigDict(extra="allow", frozen=True)
    others = BoundKeys
    __pydantic_extra__: dict[str, BoundKeys] = Field(init=False)

    hot: Size | None = Field(default=None, description="the highest quota on hot that a team may set")
    warm: Size | None = None
    cold: Size | None = None
    total: Size | None = None
    hold: Duration | None = Field(default=None, description="how long a hold of a team, or of a file, lasts at most")

    @property
    def classes(self) -> dict[str, BoundKeys]:
        return self.__pydantic_extra__ or {}


class QuotaKeys(Keys):
    soft: Size | None = Field(default=None, description="over it the team is first in line when room is needed")
    hard: Size | None = Field(default=None, description="over it relief starts whatever the fill, and an alarm stays")


class QuotasKeys(Keys):
    """Allocated bytes in hot, stored bytes in warm and cold, and all of them together."""

    hot: QuotaKeys = QuotaKeys()
    warm: QuotaKeys = QuotaKeys()
    cold: QuotaKeys = QuotaKeys()
    total: QuotaKeys = QuotaKeys()


class TeamDefaultsKeys(Keys):
    quota: QuotasKeys = QuotasKeys()
    unlisted: Annotated[
        str, BeforeValidator(_one_of("report")), WithJsonSchema({"type": "string", "const": "report"})
    ] = Field(default="report", description="what is done about teams that the policy does not list")


class LimitsKeys(Keys):
    """More than this at once, and nothing of the team is marked until somebody accepts it."""

    share_of_team: Percent = Field(
        default=0.3,
        description="of a team's segments or bytes, newly past their retention because it changed or is new here",
        json_schema_extra={"default": "30%"},
    )
    bytes: Size | None = Field(default=None, description="of a team's logs marked in one run, for whatever reason")


class ExpireKeys(Keys):
    grace: Duration = Field(
        default=timedelta(days=3),
        description="from mark to purge; it can be undone until then",
        json_schema_extra={"default": "3d"},
    )
    limits: LimitsKeys = LimitsKeys()


class HoldKeys(Keys):
    """Which segments: every key that is given must fit; the values of a list are alternatives."""

    team: OneOrMore = Field(default=[], description="teams; in a team's own file it is that team")
    job: OneOrMore = Field(default=[], description="jobs, with * and ?")
    node: OneOrMore = []
    rank: Annotated[list[RankRange], BeforeValidator(_one_or_more)] = Field(default=[], description="3, or 0-7")
    class_: OneOrMore = Field(default=[], alias="class")
    path: OneOrMore = Field(default=[], description="absolute paths of originals")
    since: Instant | None = Field(default=None, description="last write at this time or later")
    until: Instant | None = Field(default=None, description="last write before this time")
    reason: Text = Field(description="why it is kept; plan, explain and audit say it")
    owner: Text = Field(description="whom to ask before it ends")
    ends: Instant | None = Field(default=None, description="when it ends by itself; left out, when somebody ends it")
    pending: Flag = Field(default=False, description="true: it may select nothing yet")


class PlatformKeys(Keys):
    """platform.yaml"""

    not_yet = frozenset({"quota", "windows", "shippers", "group", "free_space", "debug"})

    catalog: Text = Field(description="sqlite:////absolute/path.db, or sqlite:///path.db beside the policies")
    teams: list[TeamName] = Field(default=[], description="each has its file; left out, every folder is a team")
    timezone: Text = Field(default="UTC", description="for times that name no zone")
    sources: Annotated[list[SourceKeys], Field(min_length=1)]
    tiers: TiersKeys = TiersKeys()
    defaults: Annotated[
        Literal["seed-1"] | None,
        BeforeValidator(_one_of("seed-1")),
        WithJsonSchema({"type": "string", "const": "seed-1"}),
    ] = Field(default=None, description="seed-1: the classes error, eval and training")
    classes: list[ClassKeys] = Field(default=[], description="tried in order; the last has no match and takes the rest")
    bounds: BoundsKeys = Field(default=BoundsKeys(), description="what a team may set: quotas, and figures by class")
    team_defaults: TeamDefaultsKeys = Field(default=TeamDefaultsKeys(), description="of teams whose file does not say")
    expire: ExpireKeys = ExpireKeys()
    holds: list[HoldKeys] = Field(default=[], description="what is kept whatever its age")


class TeamKeys(Keys):
    """teams/NAME.yaml or team-NAME.yaml"""

    not_yet = frozenset({"group", "team_defaults", "windows"})

    team: TeamName
    aliases: list[TeamName] = Field(default=[], description="other folders or namespaces that mean this team")
    contacts: list[Text] = []
    quota: QuotasKeys = Field(default=QuotasKeys(), description="changes only the figures it gives")
    classes: list[TeamClassKeys] = Field(default=[], description="an entry changes only the figures it gives")
    holds: list[HoldKeys] = Field(default=[], description="what of this team is kept whatever its age")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of both kinds of policy file, for editors: a file with ``team`` is a team's."""
    models: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = [
        (PlatformKeys, "validation"),
        (TeamKeys, "validation"),
    ]
    refs, definitions = models_json_schema(models, ref_template="#/$defs/{model}")
    for name in ("PlatformKeys", "TeamKeys"):
        definitions["$defs"][name]["patternProperties"] = {"^x-": {}}
    return {
        "$schema": SCHEMA_DIALECT,
        "title": "lifecycle policy",
        "$defs": _tidy(definitions["$defs"]),
        "if": {"required": ["team"]},
        "then": refs[(TeamKeys, "validation")],
        "else": refs[(PlatformKeys, "validation")],
    }


def _tidy(value: Any) -> Any:
    """Without what pydantic adds for Python alone: a key is left out, never null, and titles repeat the key."""
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if not isinstance(value, dict):
        return value
    options = value.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        kept = [option for option in options if option != {"type": "null"}]
        rest = {key: item for key, item in value.items() if key != "anyOf"}
        value = {**(kept[0] if len(kept) == 1 else {"anyOf": kept}), **rest}
    return {
        key: _tidy(item)
        for key, item in value.items()
        if not (key == "default" and item is None) and not (key == "title" and isinstance(item, str))
    }

"""What a model refuses, said in words of policy: file, line, class or source by its name, and a hint."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from lifecycle.policy.document import MAX_DEPTH, Document, Loc, Mistake, Scalar, Table
from lifecycle.policy.schema import Keys

_NAMED_LISTS: Final = {"classes": "class", "sources": "source", "holds": "hold"}
_NAMED_TABLES: Final = {"tiers": "tier", "bounds": "bounds of"}
_SHAPES: Final = {
    "model_type": ("a mapping is expected here", "write keys below it, or {} for none"),
    "model_attributes_type": ("a mapping is expected here", "write keys below it, or {} for none"),
    "dict_type": ("a mapping is expected here", "write keys below it, or {} for none"),
    "list_type": ("a list is expected here", "write [a, b], or a line with - for each"),
    "tuple_type": ("a pair is expected here", "write [FROM, TO]"),
    "too_short": ("the list is empty", "write at least one entry"),
}


def describe(document: Document, loc: Loc) -> str:
    """``class eval: `` for a place inside that class; '' at the top of a file."""
    if len(loc) < 2:
        return ""
    head, which = loc[0], loc[1]
    if isinstance(head, str) and head in _NAMED_LISTS and isinstance(which, int):
        node = document.node_at((head, which, "name"))
        shown = node.text if isinstance(node, Scalar) and node.text else f"number {which + 1}"
        return f"{_NAMED_LISTS[head]} {shown}: "
    if isinstance(head, str) and head in _NAMED_TABLES and len(loc) > 2:
        return f"{_NAMED_TABLES[head]} {which}: "
    return "" if isinstance(which, int) else f"{head}: "


def did_you_mean(word: str, words: Iterable[str], otherwise: str) -> str:
    """A hint: the nearest of ``words``, or ``otherwise``."""
    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else otherwise


_Keys = TypeVar("_Keys", bound=Keys)


@dataclass(frozen=True, slots=True)
class Checked(Generic[_Keys]):
    """A file against its model. With mistakes, ``keys`` is what was left without them, to check the rest as well."""

    document: Document
    keys: _Keys | None
    mistakes: tuple[Mistake, ...]


def check_document(
    document: Document, model: type[_Keys], environ: Mapping[str, str], stand_ins: Mapping[str, object]
) -> Checked[_Keys]:
    """Type a file by its model and say all that is wrong with it. ``stand_ins``: for required keys that are missing."""
    mistakes = list(document.mistakes)
    if isinstance(document.root, Table):
        # x-… holds anchors for merge keys and is nothing else
        document = document.without(((key,) for key in document.root.entries if key.startswith("x-")), is_partial=False)
    elif document.root is not None:
        mistakes.append(document.mistake((), "a mapping is expected here", "write KEY: VALUE lines"))
        document = replace(document, root=None)
    if document.root is None:
        return Checked(document, None, tuple(mistakes))
    data, unset = document.data(environ)
    mistakes.extend(mistake for _, mistake in unset)
    document = document.without(loc for loc, _ in unset)
    is_first = True
    for _ in range(MAX_DEPTH):
        data, _ = document.data(environ)
        assert isinstance(data, dict)
        try:
            return Checked(document, model.model_validate(data if is_first else {**stand_ins, **data}), tuple(mistakes))
        except ValidationError as error:
            details = error.errors(include_url=False)
            if is_first:
                mistakes.extend(_iter_mistakes(document, model, details))
            document = document.without(_faulty(detail) for detail in details)
            is_first = False
    return Checked(document, None, tuple(mistakes))


def _faulty(detail: Any) -> Loc:
    """The place to take out so that the rest can be checked: a wrong value, or what lacks a key."""
    loc: Loc = tuple(step for step in detail["loc"] if step != "[key]")
    return loc[:-1] if detail["type"] == "missing" else loc


def _iter_mistakes(document: Document, model: type[Keys], details: Sequence[Any]) -> Iterator[Mistake]:
    """Each thing the model refuses, once. What lacks a key that was already found wrong is not named again."""
    later = {loc[:-1] for loc in (detail["loc"] for detail in details) if _is_not_yet(model, loc)}
    found: set[Mistake] = set()
    for detail in details:
        loc, kind = detail["loc"], detail["type"]
        if kind == "missing" and (loc[:-1] in later or document.is_partial(loc[:-1])):
            continue  # s3 instead of path: the one mistake is that s3 is not yet there
        message, hint = _words(model, loc, kind, detail)
        mistake = document.mistake(loc, describe(document, loc) + message, hint)
        if mistake not in found:
            found.add(mistake)
            yield mistake


def _words(model: type[Keys], loc: Loc, kind: str, detail: Any) -> tuple[str, str]:
    key = loc[-1] if loc else ""
    if kind == "extra_forbidden":
        return _unknown(model, loc)
    if kind == "missing":
        if isinstance(key, int):
            return f"{loc[-2]}: a pair is expected here", "write [FROM, TO]"
        return f"no {key!r}", _missing_hint(str(key))
    if kind == "too_long":
        return f"{key}: a pair is expected here", "write [FROM, TO]"
    name = _figure(loc)
    if kind in _SHAPES:
        message, hint = _SHAPES[kind]
        return f"{name}{message}", hint
    cause = detail.get("ctx", {}).get("error")
    if cause is not None:
        return f"{name}{cause}", getattr(cause, "hint", "lifecycle policy schema lists what may stand here")
    return f"{name}{detail['msg'].lower()}", "lifecycle policy schema lists what may stand here"


def _figure(loc: Loc) -> str:
    """``expire_after: `` before a message about its value; an entry of a list is named by the list's key."""
    if len(loc) == 2 and loc[0] in _NAMED_LISTS:
        return ""  # the entry itself, which describe() has named
    keys = [step for step in loc if isinstance(step, str) and step != "[key]"]
    return f"{keys[-1]}: " if keys else ""


_MISSING_HINTS: Final = {
    "catalog": "add catalog: sqlite:////var/lib/lifecycle/catalog.db",
    "sources": 'add sources: [{name: logs, path: /data/logs, under: "{team}/{job}"}]',
    "name": "add name: NAME",
    "team": "add team: NAME, as platform.yaml lists it",
    "path": "add path: DIRECTORY",
}


def _missing_hint(key: str) -> str:
    return _MISSING_HINTS.get(key, f"add {key}: VALUE")


def _unknown(model: type[Keys], loc: Loc) -> tuple[str, str]:
    key = str(loc[-1])
    keys = _keys_at(model, loc[:-1])
    if _is_not_yet(model, loc):
        return f"{key!r} is not yet there", f"remove {key!r}; a later version brings it"
    known = list(keys.model_fields) if keys is not None else []
    return f"unknown key {key!r}", did_you_mean(key, known, f"keys here are {', '.join(known) or 'none'}")


def _is_not_yet(model: type[Keys], loc: Loc) -> bool:
    keys = _keys_at(model, loc[:-1])
    return keys is not None and len(loc) > 0 and loc[-1] in keys.not_yet


def _keys_at(model: type[Keys], loc: Loc) -> type[Keys] | None:
    """The model that reads the mapping at ``loc``."""
    kind: Any = model
    for step in loc:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(str(step))
            others = kind.others if issubclass(kind, Keys) else None
            kind = _bare(field.annotation) if field is not None else others
        else:
            arguments = typing.get_args(kind)
            kind = _bare(arguments[-1]) if arguments else None
    return kind if isinstance(kind, type) and issubclass(kind, Keys) else None


def _bare(annotation: Any) -> Any:
    """Without ``| None`` and ``Annotated``."""
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin in (types.UnionType, typing.Union):
            annotation = next(item for item in typing.get_args(annotation) if item is not type(None))
        else:
            return annotation

"""The commands, in the order and sections of ``lifecycle --help``, and the words of other tools answered with ours.

A command is its module and its row here. Nothing of this imports a command: help must be instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from lifecycle.errors import UsageError
from lifecycle.spelling import find_near


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRow:
    name: str
    section: str
    summary: str  # what the overview shows; the command's own help begins with it
    module: str


def _row(name: str, section: str, summary: str) -> CommandRow:
    return CommandRow(name=name, section=section, summary=summary, module=f"lifecycle.cli.{name}")


_DAILY, _FIND, _SETTLE = "Every day", "Finding and getting logs back", "Setting up and looking after"
COMMANDS: Final = (
    _row("plan", _DAILY, "Show what a run would do, and why. Changes nothing."),
    _row("run", _DAILY, "Scan, then move, merge, mark and purge what is due."),
    _row("audit", _DAILY, "Report usage, attention points and savings on one screen."),
    _row("forecast", _DAILY, "Show growth, and the days to each quota, mark and reserve."),
    _row("ls", _FIND, "List segments, or count them by job, team, class, tier."),
    _row("explain", _FIND, "Say all about one segment: state, next step, when and why."),
    _row("history", _FIND, "List runs, what one run did, or what happened to one path."),
    _row("hold", _FIND, "Keep segments whatever their age: add, list and end holds."),
    _row("restore", _FIND, "Bring segments back as files, exactly as they were."),
    _row("estimate", _SETTLE, "Say how much storage logs will need: raw, compressed, per tier in the steady state."),
    _row("init", _SETTLE, "Make a starter policy, the catalog and the markers."),
    _row("scan", _SETTLE, "Bring the catalog up to date with the trees. Moves nothing."),
    _row("policy", _SETTLE, "Check, show, explain, test and accept the policy; print its schema."),
    _row("catalog", _SETTLE, "Status, upgrade and backup of the catalog; accept one out of a backup."),
    _row("export", _SETTLE, "Write the policy in the form of another tool."),
)  # fmt: skip

# What people type who come from other tools, and what it is called here.
_WORDS_OF: Final = {
    "run": "apply execute exec start go move archive compress migrate transition merge tier prune clean cleanup gc "
           "expire purge delete rm remove sweep rotate vacuum forget",
    "plan": "preview dry-run dryrun diff simulate what-if",
    "audit": "status report stat stats df du usage info summary dashboard",
    "forecast": "predict projection trend growth capacity",
    "ls": "list dir find snapshots segments query",
    "explain": "why show describe inspect get",
    "history": "log logs runs events journal",
    "restore": "recover fetch recall retrieve download extract undelete unarchive cp copy",
    "init": "setup install new create configure bootstrap",
    "scan": "index crawl sync refresh discover update",
    "hold add": "keep retain pin legal-hold preserve protect freeze",
    "hold end": "release unhold unpin unlock",
    "hold list": "holds",
    "policy check": "validate lint check test-config config-test configtest",
    "policy show": "config settings rules",
    "policy schema": "schema",
    "catalog upgrade": "upgrade migrate-db db-upgrade",
    "catalog backup": "backup dump",
    "catalog status": "db",
}  # fmt: skip
OTHER_WORDS: Final[Mapping[str, str]] = {word: ours for ours, words in _WORDS_OF.items() for word in words.split()}
# Of the design, and not there yet: said plainly, and never guessed into something else.
NOT_YET: Final = (
    "search", "cat", "verify", "doctor", "metrics", "incidents", "serve",
)  # fmt: skip

OTHER_OPTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("-n", "--dryrun", "--noop", "--check", "--simulate", "--what-if"), "use --dry-run, or lifecycle plan"
    ),
    **dict.fromkeys(
        ("-y", "--yes", "--force", "-f", "--auto-approve"), "nothing asks: lifecycle plan shows, lifecycle run does"
    ),
    **dict.fromkeys(("--config", "-c", "--policy", "--conf"), "use --policies DIR"),
    **dict.fromkeys(("--output", "-o", "--output-file"), "use --out FILE, and --format table|json|csv for its form"),
    **dict.fromkeys(("--from", "--after", "--start"), "use --since TIME"),
    **dict.fromkeys(("--to-time", "--before", "--end"), "use --until TIME"),
    **dict.fromkeys(("--target", "--dest", "--destination"), "use --to DIR"),
    **dict.fromkeys(("-q", "--silent"), "use --quiet"),
    **dict.fromkeys(("-v", "--debug"), "use --verbose"),
    **dict.fromkeys(("--timeout", "--time-limit"), "use --max-duration 2h"),
}


def make_unknown_command(name: str, known: Iterable[str], *, path: str = "lifecycle") -> UsageError:
    """The answer to a command that is not there: ours for another tool's word, else the nearest spelling."""
    known, word = tuple(known), name.lower()
    if path != "lifecycle":
        return _unknown_below(name, known, path)
    if word == "help":
        return UsageError("no command 'help'", hint="lifecycle --help, or lifecycle COMMAND --help")
    if word in NOT_YET:
        return UsageError(f"command {name!r} is not there yet", hint=f"what is there: {', '.join(known)}")
    if ours := OTHER_WORDS.get(word):
        return UsageError(f"no command {name!r}; here it is {ours!r}", hint=f"lifecycle {ours} --help")
    if near := find_near(word, (*known, *OTHER_WORDS)):
        return UsageError(f"no command {name!r}", hint=f"did you mean lifecycle {OTHER_WORDS.get(near, near)}?")
    return UsageError(f"no command {name!r}", hint=f"lifecycle has: {', '.join(known)}")


def _unknown_below(name: str, known: tuple[str, ...], path: str) -> UsageError:
    """Under ``lifecycle policy`` the word ``validate`` means ``check``; a word for elsewhere says where."""
    ours = OTHER_WORDS.get(name.lower(), "")
    own = ours.removeprefix(path.removeprefix("lifecycle ") + " ")
    if near := find_near(own if own in known else name.lower(), known):
        return UsageError(f"no command {name!r} in {path}", hint=f"did you mean {path} {near}?")
    return UsageError(f"no command {name!r} in {path}", hint=f"{path} has: {', '.join(known)}")

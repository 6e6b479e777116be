"""The starter policy for ``lifecycle init``: the commented platform.yaml that travels with the program, filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import lifecycle
from lifecycle.errors import UsageError

# The example values of policies/platform.yaml, each there exactly once.
_CATALOG: Final = "sqlite:////var/lib/lifecycle/catalog.db"
_LOGS: Final = "/data/logs"
_WARM: Final = "/data/tiers/warm"
_COLD: Final = "/backup/tiers/cold"
_UNDER: Final = '"{team}/{job}"'
_TIERS: Final = "\n# Where logs go as they age."
_TEAMS: Final = "teams: [vision, nlp]"


def policies_folder() -> Path:
    """The examples: inside an installed package, at the top of a checkout."""
    package = Path(lifecycle.__file__).parent
    inside = package / "policies"
    return inside if inside.is_dir() else package.parent / "policies"


def starter_files(
    *,
    logs: Path,
    warm: Path | None,
    cold: Path,
    catalog: Path,
    more_logs: Sequence[Path] = (),
    under: str = "{team}/{job}",
    teams: Sequence[str] = (),
) -> tuple[tuple[str, str], ...]:
    """Names and texts of a starter policy for these absolute paths; comments and all, ready for ``load_policy``.

    Without ``warm`` there is no such tier and it is passed over. ``more_logs`` are further sources like the first.
    With ``teams`` each gets a file; without, every folder is a team. Raises UsageError on a relative path.
    """
    for path in (logs, *more_logs, *([warm] if warm else []), cold, catalog):
        if not path.is_absolute():
            raise UsageError(f"{path} is not an absolute path", hint="a policy is read from anywhere; write it in full")
    text = (policies_folder() / "platform.yaml").read_text(encoding="utf-8")
    if warm is None:
        text = _without(text, "  warm:\n", "  cold:\n")
    text = text.replace(_TIERS, "".join(_source(path, number) for number, path in enumerate(more_logs, 2)) + _TIERS)
    listed = f"teams: {json.dumps(list(teams), ensure_ascii=False)}" if teams else f"# {_TEAMS}"
    for example, value in (
        (_CATALOG, _quoted(f"sqlite:///{catalog}")),
        (f"path: {_LOGS}", f"path: {_quoted(str(logs))}"),
        *([(f"path: {_WARM}", f"path: {_quoted(str(warm))}")] if warm else []),
        (f"path: {_COLD}", f"path: {_quoted(str(cold))}"),
        (_UNDER, _quoted(under)),
        (_TEAMS, listed),
    ):
        before, found, after = text.partition(example)
        assert found, f"platform.yaml has lost its example {example}"
        text = before + value + after
    tests = ("tests/paths.yaml", _tests_text(logs, under, teams[0] if teams else "vision", has_warm=warm is not None))
    return (("platform.yaml", text), *((f"teams/{name}.yaml", _team_text(name)) for name in teams), tests)


def _tests_text(logs: Path, under: str, team: str, *, has_warm: bool) -> str:
    """A first test, of a path that the starter's layouts read; more are in the examples."""
    labels = {"team": team, "job": "train-1"}
    read = {name: labels.get(name, "x") for name in re.findall(r"\{(\w+)\}", under)}
    folder = re.sub(r"\{(\w+)\}", lambda found: read[found[1]], under)
    path = _quoted(str(logs / folder / "rank_3.log").replace("$$", "$"))
    expected = json.dumps({**read, "rank": "3"}, ensure_ascii=False)
    return f"""# What this policy is meant to make of a log; lifecycle policy test checks it before a change goes out.
# fate: hot, warm, cold, marked, gone, held, foreign or excluded; one word, or AGE: word for some ages.
tests:
  - path: {path}
    labels: {expected}
    class: training
    fate: {{1h: hot, 2d: {"warm" if has_warm else "hot"}, 8d: cold, 31d: marked, 34d: gone}}
"""


def _without(text: str, start: str, end: str) -> str:
    before, _, rest = text.partition(start)
    return before + end + rest.partition(end)[2]


def _source(path: Path, number: int) -> str:
    return f'  - {{name: logs{number}, path: {_quoted(str(path))}, under: "{{team}}/{{job}}"}}\n'


def _quoted(text: str) -> str:
    """As YAML that reads back the same, with ``$`` kept from being a variable. A JSON string is a YAML string."""
    return json.dumps(text.replace("$", "$$"), ensure_ascii=False)


def _team_text(name: str) -> str:
    return (
        f"# Figures of one team; what is not here is as in platform.yaml.\nteam: {_quoted(name)}\n"
        "# aliases: [other-folder]     # folders or namespaces that mean this team\n"
        "# classes: [{name: training, expire_after: 60d}]     # an entry changes only the figures it gives\n"
    )

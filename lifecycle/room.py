"""Whether what is to be restored fits where it is to go: asked before the first byte for all of it, and on the way.

The reserve that policy keeps free under the logs is kept free of restored files, too (it is for checkpoints), also
where ``--to`` names a folder of the same file system. Knows file systems and sums; writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from lifecycle.app import App, known_places, measure
from lifecycle.errors import PlaceUnavailable, StorageFull
from lifecycle.plan.pressure import FileSystem, rules_of
from lifecycle.units import format_count, format_size, format_size_limit


@dataclass(slots=True)
class Need:
    """What goes to one file system, known by one of its folders."""

    folder: str
    files: int = 0
    size_bytes: int = 0


class Room:
    """The file systems under the places of a policy, as they were when the restore began."""

    def __init__(self, app: App) -> None:
        self._app = app
        known = [(place, source) for place, source in known_places(app) if os.path.isdir(place.root)]
        systems = measure(app, known)
        self._by_device: dict[int, FileSystem] = {}
        for place, _ in known:
            system = next(each for each in systems if place.id in each.place_ids)
            self._by_device.setdefault(os.stat(place.root).st_dev, system)

    def require(self, needs: Mapping[int, Need]) -> None:
        """``needs`` by device. Raises StorageFull where they do not fit beside the reserve, PlaceUnavailable where a
        ``free_space`` command that says how full it is gave no figures."""
        for device, need in needs.items():
            self._require(self._by_device.get(device), need)

    def _require(self, system: FileSystem | None, need: Need) -> None:
        found = os.statvfs(need.folder)
        free, reserve = found.f_bavail * found.f_frsize, 0
        if system is not None:
            if system.unknown:
                raise PlaceUnavailable(
                    f"{need.folder}: how full it is cannot be had: {system.unknown}",
                    hint="mend the command, or restore --to another file system",
                )
            free = min(free, system.free_bytes)
            reserve = max((rule.reserve_bytes or 0 for rule in rules_of(system, self._app.policy)), default=0)
        if need.size_bytes <= free - reserve:
            return
        kept = f", of which {format_size_limit(reserve)} are kept free (reserve)" if reserve else ""
        files = "1 file" if need.files == 1 else f"{format_count(need.files)} files"
        raise StorageFull(
            f"{need.folder}: {format_size(need.size_bytes)} are needed for {files}, {format_size(free)} are free{kept}",
            hint="select less, or restore --to another file system",
        )

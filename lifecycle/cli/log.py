"""The log on stderr: one line a record, as text for people or as one JSON object for machines.

Silent about good news unless ``--verbose`` or ``--log-format json`` ask for it, so that cron sends no mail.
Keys given by ``extra=`` (``run_id``, ``action``, ``segment``, ``rule``, …) are kept under their names in both forms.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lifecycle.cli.invocation import Invocation

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def start_log(call: Invocation) -> None:
    """Send the program's records to ``call.err``. A second call replaces the first."""
    logger = logging.getLogger("lifecycle")
    logger.handlers[:] = [_CallHandler(call)]
    logger.propagate = False
    logger.setLevel(logging.INFO if call.verbose or call.log_format == "json" else logging.WARNING)


class _CallHandler(logging.Handler):
    def __init__(self, call: Invocation) -> None:
        super().__init__()
        self._call = call
        self._format = format_json_record if call.log_format == "json" else format_text_record

    def emit(self, record: logging.LogRecord) -> None:
        self._call.err(self._format(record))


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _OWN}


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_text_record(record: logging.LogRecord) -> str:
    extras = "".join(f" {key}={value}" for key, value in _extras(record).items())
    return f"{_at(record)} {record.levelname.lower()} {record.getMessage()}{extras}"


def format_json_record(record: logging.LogRecord) -> str:
    facts = {
        "at": _at(record),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    return json.dumps(facts | _extras(record), ensure_ascii=False, default=str)

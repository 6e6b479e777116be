"""``lifecycle scan``: one run that scans and does nothing else. Imports nothing that acts, and so starts quickly."""

from __future__ import annotations

from lifecycle.app import App
from lifecycle.errors import worst_exit
from lifecycle.report.figures import Progress, ScanOnceReport
from lifecycle.session import RunOptions, Session


def scan_once(app: App, progress: Progress, options: RunOptions = RunOptions()) -> ScanOnceReport:
    """Scan all sources into the catalog; nothing else."""
    with Session(app, "scan") as session:
        session.take_leases(options)
        session.reclassify(progress)
        scans = session.scan(progress)
        session.refresh_holds()
        report = ScanOnceReport(
            run_id=session.run_id, now=session.now, started=session.started, ended=app.clock.now(),
            exit_code=worst_exit(session.codes), scans=tuple(scans), held_places=tuple(session.held),
            problem_count=len(session.problems), problems=tuple(session.problem_lines()[:50]),
        )  # fmt: skip
        session.record(report)
    return report

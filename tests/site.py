"""A tree, a policy and the real command on them: what acceptance tests stand on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
DAY = 86_400


class Site:
    """A folder of a test with ``logs`` in it. Calling it runs ``lifecycle`` there and checks the exit code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = os.fsencode(folder / "logs")

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """What was printed; stderr is in the failure."""
        return self.run(*arguments, code=code).stdout

    def run(self, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """The same with all that came of it. ``code`` None: any."""
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)}
        done = subprocess.run(
            [sys.executable, "-m", "lifecycle", *arguments], cwd=self.folder, env=environ, capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        wrong = f"exit {done.returncode}, expected {code}: {done.stdout}{done.stderr}"
        assert code is None or done.returncode == code, wrong
        return done

    def write(self, path: bytes, content: bytes, *, days: float, mode: int = 0o640) -> None:
        file = os.path.join(self.logs, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        Path(os.fsdecode(file)).write_bytes(content)
        os.chmod(file, mode)
        at = os.stat(file).st_mtime_ns - int(days * DAY) * 10**9 + 123_456_789
        os.utime(file, ns=(at, at))

    def edit_policy(self, old: str, new: str) -> None:
        path = self.folder / "policies/platform.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

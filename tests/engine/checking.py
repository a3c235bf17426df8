"""Containers to be checked on real engines, and what a check has left in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gpuconsole.core.errors import ConsoleError
from gpuconsole.probes.records import CheckReport, CheckResult, CheckStatus, Progress, Record
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.checking import check_container
from gpuconsole.services.session import Session
from tests.rig.engines import Engine

FAIL, OK, SKIP, WARN = CheckStatus.FAIL, CheckStatus.OK, CheckStatus.SKIP, CheckStatus.WARN
SLEEP = "import time; time.sleep(600)"
HANG = """
import sys
class Trap:
    def find_spec(self, name, path=None, target=None):
        if name == "gpuconsole.probes.payload.checks.{check}":
            {action}
sys.meta_path.insert(0, Trap())
"""
"""As sitecustomize: something happens when the payload comes to one of its checks."""


@dataclass
class Checked:
    """A container of the PyTorch image, and the session to check it with."""

    engine: Engine
    session: Session
    folder: Path
    """Of the test; ``modules`` in it is found by the container's Python before all else."""
    names: list[str] = field(default_factory=list)

    def start(self, *options: str, image: str = "pytorch") -> str:
        """Start a container that only waits, and give its name."""
        name = f"checked-{len(self.names)}"
        modules = self.folder / "modules"
        modules.mkdir(exist_ok=True)
        reference = self.engine.load(image)
        self.engine.docker(
            "run", "-d", "--name", name, "-v", f"{modules}:/modules:ro", "-e", "PYTHONPATH=/modules", *options,
            reference, "sleep", "1000",
        )  # fmt: skip
        self.names.append(name)
        return name

    def module(self, name: str, text: str) -> None:
        """Write a module for the containers' Python."""
        path = self.folder / "modules" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def trap(self, check: str, action: str) -> None:
        """Have ``action`` happen when the payload comes to the check in this module."""
        self.module("sitecustomize", HANG.format(check=check, action=action))

    def check(self, name: str, *, deadline_s: float = 120.0, only: tuple[str, ...] = ()) -> CheckReport:
        """Check the container, by all checks or some."""
        return check_container(self.session, name, lambda _: None, deadline_s=deadline_s, only=only)

    def left(self, name: str) -> list[str]:
        """Files of ours in the container, and processes beside the one it was started with."""
        looked = self.engine.docker("exec", name, "ls", "-A", "/tmp", "/dev/shm", "/workspace", check=False)
        if looked.returncode not in (0, 1):  # 1: one of the folders is not there
            return [looked.stderr]  # a limit of processes lets no look in before the payload's are gone
        found = looked.stdout.split()
        files = [word for word in found if "gpuconsole" in word or word.startswith(("torch", "pymp"))]
        listed = self.engine.docker("top", name, "-o", "pid,args").stdout.splitlines()[1:]
        return files + [line for line in listed if "sleep 1000" not in line]

    def pid(self, name: str, word: str) -> int:
        """The pid, as this machine numbers it, of the container's process with ``word`` in its command line."""
        for line in self.engine.docker("top", name, "-o", "pid,args").stdout.splitlines()[1:]:
            if word in line:
                return int(line.split()[0])
        raise AssertionError(f"nothing with {word!r} runs in {name}")

    def is_clean(self, name: str) -> bool:
        """Nothing is left, at once or a little later."""
        deadline = time.monotonic() + 60
        while (found := self.left(name)) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not found
        return True


@contextmanager
def opened(engine: Engine, folder: Path) -> Iterator[Checked]:
    """Containers of this engine to be checked."""
    session = Session(host=engine.host)
    yield Checked(engine, session, folder)
    session.close()


@dataclass
class Background:
    """A check under way in a thread."""

    checked: Checked
    name: str
    deadline_s: float = 120.0
    cancel: Cancellation = field(default_factory=Cancellation)
    records: list[Record] = field(default_factory=list)
    report: CheckReport | None = None
    error: ConsoleError | None = None

    def __post_init__(self) -> None:
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.report = check_container(
                self.checked.session, self.name, self._heard, cancel=self.cancel, deadline_s=self.deadline_s
            )
        except ConsoleError as error:
            self.error = error

    def _heard(self, record: Record) -> None:
        with self._news:
            self.records.append(record)
            self._news.notify_all()

    def until(self, wanted: Callable[[Record], bool]) -> None:
        """Wait for a record."""
        with self._news:
            assert self._news.wait_for(lambda: any(map(wanted, self.records)), 90), self.records

    def until_at(self, check: str) -> None:
        """Wait until this check runs."""
        self.until(lambda record: isinstance(record, Progress) and record.id == check)

    def end(self) -> CheckReport | None:
        """Wait for the end."""
        self._thread.join(90)
        assert not self._thread.is_alive()
        return self.report


def result(report: CheckReport | None, check: str) -> CheckResult:
    """The result of one check."""
    assert report is not None
    found = [one for one in report.checks if one.id == check]
    assert len(found) == 1, report.checks
    return found[0]

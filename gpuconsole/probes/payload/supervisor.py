"""The supervisor: starts workers, holds the deadlines, passes their records on, and leaves nothing behind."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import sys
import time
from typing import Any

from gpuconsole.probes.payload import SCHEMA, SUITE
from gpuconsole.probes.payload.child import MORE_PROCESSES, NO_PROCESS, Child, died_of
from gpuconsole.probes.payload.notes import Notes
from gpuconsole.probes.payload.outcome import FAIL, OK
from gpuconsole.probes.payload.plan import BY_SLUG
from gpuconsole.probes.payload.stream import Emitter, RecordReader

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_REIMPORT_S = 90.0
"""A new worker imports torch again before it goes on."""
_DRAIN_S = 1.0
_PARTING_S = 5.0
"""How long a worker that has told everything may take to end by itself."""


class Supervisor:
    """Runs the checks named in ``config`` and writes their records to standard output.

    It ends early when its standard input ends, which is how it learns that the host is gone, and on SIGTERM.
    """

    mode = "check"
    plan: dict[str, Any] = BY_SLUG
    """What can be run, by name."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._folder = str(config["folder"])
        self._pending: list[str] = [slug for slug in config["checks"] if slug in self.plan]
        self._total = len(self._pending)
        self._statuses: dict[str, str] = {}
        self._torch_imported = False
        self._out = Emitter(1, str(config.get("run", "")))
        self._stopping = ""
        """Why it ends before its time: ``cancelled``, ``timeout``, or ``broken`` when no worker can be started."""
        self._begun = time.monotonic()
        self._ends_at = self._begun + float(config["deadline_s"])
        self._check_ends_at = self._ends_at
        self._check_begun = self._begun
        self._child: Child | None = None
        self._records = RecordReader()
        self._selector = selectors.DefaultSelector()
        self._notes = Notes(self._tell_note)

    def run(self) -> int:
        """Run the checks; 0 when all have run, 3 when ended early, 1 when the host is gone."""
        try:
            self._listen()
            self._out.emit(
                "hello",
                schema=SCHEMA,
                suite=SUITE,
                mode=self.mode,
                plan=self._pending,
                budget_s=self._config["deadline_s"],
                pid=os.getpid(),
                pgid=os.getpgrp(),
                folder=self._folder,
                python=sys.executable,
                python_version=sys.version.split()[0],
            )
            while self._pending and not self._stopping:
                self._run_worker()
            self._notes.close()
            self._remove_folder()
            self._out.emit(
                "bye",
                status=self._stopping or "ok",
                elapsed_s=round(time.monotonic() - self._begun, 3),
                ran=len(self._statuses),
                left=len(self._pending),
            )
        except OSError:
            # Nobody reads our records any more, or the container takes no more processes: end quietly either way,
            # the host sees that the goodbye is missing.
            return 1
        finally:
            self._end_worker()
            self._remove_folder()
        return 3 if self._stopping else 0

    def _listen(self) -> None:
        """Hear signals and the end of standard input in the one place that waits; lead a process group."""
        if os.getpgrp() != os.getpid():
            os.setpgid(0, 0)
        read_fd, write_fd = os.pipe()
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, self._stop_on_signal)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._selector.register(read_fd, selectors.EVENT_READ, "wakeup")
        try:
            self._selector.register(0, selectors.EVENT_READ, "input")
        except (OSError, ValueError):
            pass  # standard input is a file or closed: then only signals end us early

    def _stop_on_signal(self, number: int, frame: object) -> None:
        self._stopping = self._stopping or "cancelled"

    def _run_worker(self) -> None:
        """Start a worker for what is pending and follow it to its end."""
        restarted = bool(self._statuses)
        told = dict(
            self._config,
            checks=self._batch(),
            statuses=self._statuses,
            torch_imported=self._torch_imported,
        )
        try:
            child = self._child = Child(told, self._folder)
        except OSError as error:
            self._stopping = "broken"
            self._settle(
                FAIL,
                NO_PROCESS.format(error.strerror or error),
                MORE_PROCESSES,
            )
            return
        self._out.emit("worker", pgid=child.group)
        self._records = RecordReader()
        self._start_clock(_REIMPORT_S if restarted else 0.0)
        for fd, source in child.sources.items():
            self._selector.register(fd, selectors.EVENT_READ, source)
        registered = set(child.sources)
        try:
            self._follow(child)
        finally:
            for fd in registered:
                try:
                    self._selector.unregister(fd)
                except KeyError:
                    pass
            code = child.exit_code
            self._end_worker()
        if self._stopping or not self._owed:
            return
        if code is not None:  # else it was ended for its deadline, which has been told
            did, fix = died_of(code)
            self._settle(FAIL, "{} {}".format(self.plan[self._pending[0]].process, did), fix)

    def _batch(self) -> list[str]:
        """What the next worker is given to do."""
        return self._pending

    @property
    def _owed(self) -> bool:
        """The worker has not done all it was given."""
        return bool(self._pending)

    def _follow(self, child: Child) -> None:
        """Pass on what the worker says until it ends, its deadline passes, or we are stopped."""
        drained_at = None
        while not self._stopping:
            now = time.monotonic()
            if child.ended() and drained_at is None:
                # What it started may hold its output open, or write for ever: what is there is read, and no more.
                drained_at = now + _DRAIN_S
            limit = 0.0 if drained_at else max(0.0, min(self._check_ends_at, self._ends_at) - now)
            events = self._selector.select(limit)
            for key, _ in events:
                self._take(child, key.fd, str(key.data))
            if drained_at is not None:
                if not events or not child.sources or now >= drained_at:
                    return
            elif self._late():
                return

    def _take(self, child: Child, fd: int, source: str) -> None:
        if source == "wakeup":
            _drain(fd)
            return
        if source == "input":
            if not os.read(fd, 65536):
                self._stopping = self._stopping or "cancelled"
            return
        data = child.read(fd)
        if data is None:
            return
        if not data:
            self._selector.unregister(fd)
        elif source == "records":
            for record in self._records.feed(data):
                self._take_record(record)
        else:
            self._notes.feed(source, data)

    def _take_record(self, record: dict[str, Any]) -> None:
        kind, current = record.get("t"), self._pending[0] if self._pending else ""
        if kind == "env":
            facts = record.get("env")
            if isinstance(facts, dict):
                self._torch_imported = self._torch_imported or "torch" in facts
                self._out.emit("env", env=facts)
        elif kind == "progress" and record.get("id") == current:
            if record.get("begin"):
                self._start_clock(0.0)
            self._tell_progress(str(record.get("text", "")))
        elif kind == "check" and record.get("id") == current:
            self._settle(
                str(record.get("status")),
                str(record.get("why", "")),
                str(record.get("fix", "")),
                record.get("value"),
            )

    def _start_clock(self, extra_s: float) -> None:
        self._check_begun = time.monotonic()
        self._check_ends_at = self._check_begun + self._allowed_s() + extra_s

    def _allowed_s(self) -> float:
        return float(BY_SLUG[self._pending[0]].deadline_s)

    def _late(self) -> bool:
        """A deadline has passed; tell it, and have the worker ended."""
        now = time.monotonic()
        if not self._pending:
            return now >= self._check_ends_at
        check = BY_SLUG[self._pending[0]]
        if now >= self._ends_at:
            self._stopping = "timeout"
            allowed = float(self._config["deadline_s"])
            self._settle(
                FAIL,
                "{} still ran when the {:g} s for the whole check were over".format(check.process, allowed),
                "Give it more time, or look at the container: something in it is stuck.",
            )
            return True
        if now >= self._check_ends_at:
            why, fix = check.stuck
            self._settle(FAIL, "{}: {} did not end within {:g} s".format(why, check.process, check.deadline_s), fix)
            return True
        return False

    def _settle(self, status: str, why: str, fix: str, value: object = None) -> None:
        """Give the check that runs its result, and start the clock of the next."""
        slug = self._pending.pop(0)
        self._statuses[slug] = status
        seconds = round(time.monotonic() - self._check_begun, 3)
        self._out.emit(
            "check",
            id=slug,
            code=BY_SLUG[slug].code,
            status=status,
            value=value if isinstance(value, dict) else {},
            why=why,
            fix="" if status == OK else fix,
            s=seconds,
        )
        if self._pending:
            self._start_clock(0.0)
        else:
            self._check_ends_at = time.monotonic() + _PARTING_S

    def _tell_progress(self, text: str) -> None:
        self._out.emit(
            "progress",
            id=self._pending[0],
            step=self._total - len(self._pending) + 1,
            of=self._total,
            text=text,
            elapsed_s=round(time.monotonic() - self._begun, 1),
        )

    def _tell_note(self, stream: str, text: str) -> None:
        self._out.emit("note", id=self._pending[0] if self._pending else "", stream=stream, text=text)

    def _end_worker(self) -> None:
        if self._child is not None:
            child, self._child = self._child, None
            child.kill()

    def _remove_folder(self) -> None:
        if os.path.basename(self._folder).startswith("gpuconsole-check-"):
            shutil.rmtree(self._folder, ignore_errors=True)


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass

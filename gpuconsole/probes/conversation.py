"""The talk with a payload: from the first interpreter tried to its goodbye, or to its end by us or by others."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.engine.protocol import ExecProcess
from gpuconsole.probes import catalog, ending, obstacles, parsing
from gpuconsole.probes.place import Place
from gpuconsole.probes.records import CheckResult, CheckStatus, Note, Record, RunEnd, Started

_BOOT_S = 60.0
"""From the first byte to the first record: starting Python and looking for torch, on a cold disk."""
_GRACE_S = 10.0
"""The payload holds its deadlines itself; this much later it is taken for dead."""
_PARTING_S = 3.0
"""How long it may take to end by itself once its input has ended."""
_TICK_S = 0.2
_LOOKS = 8
_ENDS = {"ok": RunEnd.COMPLETE, "timeout": RunEnd.TIMEOUT}
_MOST_NOTES = 100
_MOST_BYTES = 64 << 20
"""What it may write at all: far more than any run does."""


@dataclass(slots=True)
class Heard:
    """What a run told, and how it ended."""

    end: RunEnd = RunEnd.BROKEN
    results: dict[str, CheckResult] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    """The ``env`` records together."""
    notes: list[Note] = field(default_factory=list)
    obstacle: CheckResult | None = None
    """Why no check could be started."""
    python: str = ""
    python_version: str | None = None


class Conversation:
    """One run of the payload in ``place``.

    Args:
        place: Where it runs.
        on_record: Called from the thread that holds the conversation.
        cancel: When set, the payload is ended.
        deadline_s: What the payload was told it has.
    """

    def __init__(
        self, place: Place, *, on_record: Callable[[Record], None], cancel: threading.Event, deadline_s: float
    ) -> None:
        self._place = place
        self._on_record = on_record
        self._cancel = cancel
        self._deadline_s = deadline_s
        self._heard = Heard()
        self._traces = ending.Traces()
        self._name = ""
        self._plan: tuple[str, ...] = ()
        self._boot_failure: parsing.RawRecord | None = None
        self._said_goodbye = ""
        self._pieces: SimpleQueue[bytes | ConsoleError | None] = SimpleQueue()
        self._reader = parsing.LineReader()
        self._bytes = 0
        self._ends_at = 0.0
        self._handlers: dict[str, Callable[[parsing.RawRecord], None]] = {
            "boot": self._hear_boot,
            "hello": self._hear_hello,
            "worker": self._hear_worker,
            "env": self._hear_environment,
            "progress": lambda record: self._on_record(parsing.progress_of(record)),
            "check": self._hear_check,
            "note": lambda record: self._note(parsing.note_of(record)),
            "bye": self._hear_goodbye,
        }

    def hold(self, command: Callable[[str, str], list[str]], data: bytes) -> Heard:
        """Try the place's interpreters with ``command(python, run)``, send ``data``, and listen to the end.

        Raises:
            ConsoleError: The engine does not answer any more.
        """
        for python in self._place.pythons:
            if self._cancel.is_set():
                self._heard.end = RunEnd.CANCELLED
                return self._heard
            self._name = secrets.token_hex(8)
            try:
                process = self._place.start(command(python, self._name))
            except NotFound:
                if (gone := self._place.gone()) is not None:
                    self._break_off(gone)
                    return self._heard
                continue
            if self._listen(process, data):
                return self._heard
        self._heard.obstacle = obstacles.no_python(())
        return self._heard

    def _listen(self, process: ExecProcess, data: bytes) -> bool:
        """Follow one attempt to its end; False when there was no such interpreter after all."""
        self._ends_at = time.monotonic() + min(_BOOT_S, self._deadline_s + _GRACE_S)
        pieces = self._pieces = SimpleQueue()
        threading.Thread(target=_pump, args=(process, data, pieces), name="probe-output", daemon=True).start()
        try:
            stopped = self._follow()
            if stopped is not None:
                self._stop(process, stopped)
                return True
            return self._settle(process)
        except BaseException:
            self._end(process)
            raise
        finally:
            process.close()

    def _follow(self) -> RunEnd | None:
        """Take records until the output ends (None), or there is a reason to end it."""
        while True:
            if self._cancel.is_set():
                return RunEnd.CANCELLED
            left = self._ends_at - time.monotonic()
            if left <= 0:
                return RunEnd.TIMEOUT
            if self._bytes > _MOST_BYTES:
                return RunEnd.BROKEN
            if not self._take(min(left, _TICK_S)):
                return None

    def _take(self, timeout_s: float) -> bool:
        """Take the next piece of output if one comes in time; False at its end."""
        try:
            piece = self._pieces.get(timeout=timeout_s)
        except Empty:
            return True
        if piece is None or isinstance(piece, ConsoleError):
            for item in self._reader.close():
                self._hear(item)
            if piece is not None and self._place.gone() is None:
                raise piece
            self._pieces.put(None)  # for who asks again whether it has ended
            return False
        self._bytes += len(piece)
        for item in self._reader.feed(piece):
            self._hear(item)
        return True

    def _hear(self, item: parsing.RawRecord | str) -> None:
        if isinstance(item, str):
            self._note(Note(item))
        elif item.get("run") == self._name and (handler := self._handlers.get(item["t"])) is not None:
            handler(item)

    def _hear_boot(self, record: parsing.RawRecord) -> None:
        self._hear_worker(record)
        self._traces.python = self._traces.python or parsing.text_of(record, "python")
        self._traces.add_folder(parsing.text_of(record, "folder"), workdir=self._place.workdir)
        if "why" in record:
            self._boot_failure = record

    def _hear_worker(self, record: parsing.RawRecord) -> None:
        self._traces.add_group(parsing.number_of(record, "pgid"))

    def _hear_hello(self, record: parsing.RawRecord) -> None:
        plan = record.get("plan")
        self._plan = tuple(str(slug) for slug in plan) if isinstance(plan, list) else ()
        self._heard.python = parsing.text_of(record, "python")
        self._heard.python_version = parsing.text_of(record, "python_version") or None
        self._ends_at = time.monotonic() + self._deadline_s + _GRACE_S
        self._on_record(Started(plan=self._plan, python=self._heard.python))

    def _hear_environment(self, record: parsing.RawRecord) -> None:
        facts = record.get("env")
        if isinstance(facts, dict):
            self._heard.facts.update(facts)

    def _hear_check(self, record: parsing.RawRecord) -> None:
        result = parsing.result_of(record)
        if result is not None and result.id in self._plan and result.id not in self._heard.results:
            self._heard.results[result.id] = result
            self._on_record(result)

    def _hear_goodbye(self, record: parsing.RawRecord) -> None:
        self._said_goodbye = parsing.text_of(record, "status")

    def _note(self, note: Note) -> None:
        if note.text and len(self._heard.notes) < _MOST_NOTES:
            self._heard.notes.append(note)
            self._on_record(note)

    def _settle(self, process: ExecProcess) -> bool:
        """The output has ended by itself: say how; False when there was no such interpreter after all."""
        heard = self._heard
        if self._said_goodbye:
            heard.end = _ENDS.get(self._said_goodbye, RunEnd.BROKEN)
            if self._said_goodbye == "cancelled":  # not by us
                self._fail_current("something inside the container ended it")
            return True
        if self._boot_failure is not None:
            heard.obstacle = obstacles.of_boot(self._boot_failure, self._place.workdir)
            return True
        gone = self._gone_by_now()
        code = _exit_code(process) if gone is None else None
        if gone is None and not self._traces.groups and code in (126, 127):
            heard.notes.clear()  # the engine's words about the interpreter that is not there
            return False
        self._break_off(gone or obstacles.ended_with(code))
        if gone is None:
            self._end(process)
        return True

    def _gone_by_now(self) -> str | None:
        """Why nothing runs in the place any more; an engine learns of a container's end a little after we do."""
        for _ in range(_LOOKS if self._traces.groups else 1):
            if (gone := self._place.gone()) is not None:
                return gone
            time.sleep(_TICK_S)
        return None

    def _break_off(self, why: str) -> None:
        self._heard.end = RunEnd.BROKEN
        self._fail_current(why)

    def _fail_current(self, why: str, fix: str = "") -> None:
        """Give the check that was under way the failure; without one, the start has failed."""
        slug = next((slug for slug in self._plan if slug not in self._heard.results), None)
        if slug is None:
            if not self._plan:
                self._heard.obstacle = obstacles.not_started(why)
            return
        code = next((check.code for check in catalog.CHECKS if check.id == slug), "")
        result = CheckResult(slug, code, CheckStatus.FAIL, f"{why} while it ran", fix or obstacles.look_at_logs(why))
        self._heard.results[slug] = result
        self._on_record(result)

    def _stop(self, process: ExecProcess, end: RunEnd) -> None:
        """End the payload for one of our reasons."""
        self._end(process)
        self._heard.end = end
        if end is RunEnd.TIMEOUT:
            self._fail_current(self._place.gone() or "the checks did not answer any more")
        elif end is RunEnd.BROKEN:
            self._fail_current("something in the container wrote without end")

    def _end(self, process: ExecProcess) -> None:
        """End the payload and remove its folder: gently first, by the end of its input, then by force."""
        try:
            process.close_input()
        except ConsoleError:
            pass  # the connection is broken, which ends its input as well
        if not (self._ended(_PARTING_S) and self._said_goodbye):
            ending.kill(self._place, self._traces, ended=self._ended)
            ending.remove_folder(self._place, self._traces)

    def _ended(self, timeout_s: float) -> bool:
        """Wait for the end of the output, without telling what it still says."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                piece = self._pieces.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                return False
            if piece is None or isinstance(piece, ConsoleError):
                self._pieces.put(None)  # for the next one who asks
                return True
            for item in self._reader.feed(piece):
                if isinstance(item, dict) and item.get("run") == self._name and item["t"] in ("boot", "worker", "bye"):
                    self._hear(item)


def _exit_code(process: ExecProcess) -> int | None:
    try:
        return process.exit_code()
    except NotFound:
        return None  # its container has ended in this moment


def _pump(process: ExecProcess, data: bytes, pieces: SimpleQueue[bytes | ConsoleError | None]) -> None:
    """Send ``data`` and pass the output on; at its end None, or the failure."""
    try:
        try:
            process.write(data)
        except ConsoleError:
            pass  # it ended before it had read all: its output says why
        for _, piece in process.output:
            pieces.put(piece)
        pieces.put(None)
    except ConsoleError as error:
        pieces.put(error)

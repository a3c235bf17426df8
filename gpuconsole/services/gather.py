"""Many slow questions asked side by side, with a bound on their number and on the time."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from gpuconsole.core.errors import ConsoleError, TimedOut

Answer = TypeVar("Answer")

_ENGINE_LATE = TimedOut("The engine did not answer in time.", hint="Try again; the engine may be busy.")


def gather(
    questions: Sequence[Callable[[], Answer]],
    *,
    workers: int,
    deadline_s: float,
    late: ConsoleError = _ENGINE_LATE,
) -> tuple[Answer | ConsoleError, ...]:
    """The answers in the order of ``questions``; in the place of one that failed its error.

    The threads are daemons: a question that never returns holds up neither this call nor the end of the program.

    Args:
        questions: What is asked.
        workers: How many are asked at once.
        deadline_s: For all of them.
        late: What stands in the place of one that was not answered by then; it names who was asked.
    """
    answers: list[Answer | ConsoleError] = [late for _ in questions]
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for position in range(len(questions)):
        waiting.put(position)
    answered: queue.SimpleQueue[tuple[int, Answer | ConsoleError | BaseException]] = queue.SimpleQueue()
    until = time.monotonic() + deadline_s

    def work() -> None:
        while time.monotonic() < until:
            try:
                position = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                answered.put((position, questions[position]()))
            except BaseException as error:  # noqa: BLE001  raised again by the caller, unless it is the user's to meet
                answered.put((position, error))

    for number in range(min(workers, len(questions))):
        threading.Thread(target=work, name=f"gather-{number}", daemon=True).start()
    for _ in questions:
        try:
            position, answer = answered.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(answer, BaseException) and not isinstance(answer, ConsoleError):
            raise answer
        answers[position] = answer
    return tuple(answers)

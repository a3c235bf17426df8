"""How a container is and how it ended, in words."""

from __future__ import annotations

import signal

from gpuconsole.core.text import duration, size
from gpuconsole.engine.model import Container, ContainerState

KILLED = 137
"""The exit code of a process that was killed, for whatever reason."""
_START_FAILURES = (125, 126, 127, 128)
_WORDS = {
    125: "the engine could not start it",
    126: "its command could not be executed",
    127: "its command was not found",
    130: "interrupted, as by ctrl+c (SIGINT)",
    134: "it aborted itself (SIGABRT): a failed assertion, a C++ exception or NCCL's watchdog",
    135: "a bus error (SIGBUS), often because /dev/shm is full",
    137: "killed (SIGKILL): by stop when the grace time was over, by hand, or by the host short of memory",
    139: "it crashed (SIGSEGV)",
    143: "stopped (SIGTERM)",
    255: "it returned -1, or the engine stopped under it",
}
_OVER_LIMIT = "killed because it needed more memory than its limit"
_SHORT = {126: "no exec", 127: "no command", 130: "stopped", 134: "aborted", 135: "bus error", 137: "killed",
          139: "crashed", 143: "stopped"}  # fmt: skip


def out_of_memory(container: Container) -> bool:
    """It was killed for using more memory than its limit."""
    return container.oom_killed and container.exit_code in (None, KILLED)


def describe_exit(code: int, *, oom: bool = False) -> str:
    """An exit code in words: ``exit code 137: killed (SIGKILL) …``; ``oom`` when a memory limit was reached before."""
    if oom and code == KILLED:
        return f"exit code {code}: {_OVER_LIMIT}"
    words = _WORDS.get(code)
    if words is None and 128 < code < 128 + 65:
        words = f"ended by signal {_signal(code - 128)}"
    if words is None:
        words = "it ended well" if code == 0 else "it ended with a failure"
    return f"exit code {code}: {words}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def describe_ending(container: Container) -> str | None:
    """How it ended, in a sentence without its stop; None while it has not ended."""
    if container.state is ContainerState.CREATED and container.error:
        return f"it could not be started: {container.error}"
    if container.state not in (ContainerState.EXITED, ContainerState.DEAD) or container.exit_code is None:
        return None
    code = container.exit_code
    if out_of_memory(container):
        limit = f" of {size(container.memory_limit_bytes)}" if container.memory_limit_bytes else ""
        return f"exit code {code}: {_OVER_LIMIT}{limit}"
    sentence = describe_exit(code)
    if code in _START_FAILURES and container.error:
        return f"{sentence} ({container.error})"
    if container.oom_killed:
        return f"{sentence}; a process in it was killed before because the memory limit was reached"
    return sentence


def state_words(container: Container, *, now: float) -> str:
    """Its state in a few characters: ``up 2 h``, ``paused``, ``OOM 2 min``, ``exit 1 5 d``."""
    if container.state is ContainerState.RUNNING:
        return f"up {duration(now - container.started_at)}" if container.started_at is not None else "up"
    if container.state is ContainerState.CREATED and container.error:
        return "not started"
    if container.state not in (ContainerState.EXITED, ContainerState.DEAD):
        return str(container.state.value)
    ago = f" {duration(now - container.finished_at)}" if container.finished_at is not None else ""
    return f"{_ending_word(container)}{ago}"


def _ending_word(container: Container) -> str:
    if out_of_memory(container):
        return "OOM"
    if container.state is ContainerState.DEAD:
        return "dead"
    code = container.exit_code
    if code is None:
        return "ended"
    return "ended" if code == 0 else _SHORT.get(code, f"exit {code}")

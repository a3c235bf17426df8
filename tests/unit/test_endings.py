"""States and endings of containers in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.errors import NotFound
from gpuconsole.engine.model import Container, ContainerState, EngineEvent
from gpuconsole.engine.protocol import Engine
from gpuconsole.services.endings import describe_ending, describe_exit, state_words
from gpuconsole.services.following import Ending, ending_of

NOW = 1_000_000.0
RUNNING = Container(
    id="0" * 64, name="train", image="x", image_id="y", state=ContainerState.RUNNING, started_at=NOW - 7200
)


def ended(code: int | None, **changes: object) -> Container:
    return replace(RUNNING, state=ContainerState.EXITED, exit_code=code, finished_at=NOW - 120, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("container", "words"),
    [
        (RUNNING, "up 2 h"),
        (replace(RUNNING, started_at=None), "up"),
        (replace(RUNNING, state=ContainerState.PAUSED), "paused"),
        (replace(RUNNING, state=ContainerState.CREATED), "created"),
        (replace(RUNNING, state=ContainerState.RESTARTING), "restarting"),
        (ended(0), "ended 2 min"),
        (ended(1), "exit 1 2 min"),
        (ended(137, oom_killed=True), "OOM 2 min"),
        (ended(137), "killed 2 min"),
        (ended(139), "crashed 2 min"),
        (ended(143), "stopped 2 min"),
        (ended(127), "no command 2 min"),
        (ended(None), "ended 2 min"),
        (replace(ended(0), finished_at=None), "ended"),
        (replace(ended(1), state=ContainerState.DEAD), "dead 2 min"),
    ],
)
def test_state_in_a_few_characters(container: Container, words: str) -> None:
    assert state_words(container, now=NOW) == words
    assert len(words) <= 16


@pytest.mark.parametrize(
    ("container", "parts"),
    [
        (ended(0), ["exit code 0", "ended well"]),
        (ended(1), ["exit code 1", "failure"]),
        (ended(137, oom_killed=True, memory_limit_bytes=8 * 2**30), ["137", "more memory than its limit of 8 GiB"]),
        (ended(137), ["137", "SIGKILL", "by hand"]),
        (ended(1, oom_killed=True), ["exit code 1", "a process in it was killed before"]),
        (ended(126), ["could not be executed"]),
        (ended(127, error='exec: "pyton": not found'), ["was not found", 'exec: "pyton": not found']),
        (ended(135), ["SIGBUS", "/dev/shm"]),
        (ended(139), ["SIGSEGV"]),
        (ended(143), ["SIGTERM"]),
        (ended(159), ["signal SIGSYS"]),
        (ended(255), ["-1"]),
    ],
)
def test_ending_in_a_sentence(container: Container, parts: list[str]) -> None:
    sentence = describe_ending(container)
    assert sentence is not None
    for part in parts:
        assert part in sentence


@pytest.mark.parametrize("state", [ContainerState.RUNNING, ContainerState.PAUSED, ContainerState.CREATED])
def test_what_has_not_ended_has_no_ending(state: ContainerState) -> None:
    assert describe_ending(replace(RUNNING, state=state, exit_code=0)) is None


@given(st.integers(min_value=-300, max_value=300))
def test_every_exit_code_has_words(code: int) -> None:
    assert describe_exit(code).startswith(f"exit code {code}: ")


class Told:
    """Events that end."""

    def __init__(self, *actions: str) -> None:
        self._events = [EngineEvent("container", action, "c", exit_code=137) for action in actions]

    def __iter__(self) -> Iterator[EngineEvent]:
        return iter(self._events)

    def close(self) -> None:
        """Nothing is open."""


class Removed:
    """An engine whose container is gone, as far as its events tell of it."""

    def __init__(self, *actions: str) -> None:
        self._actions = actions

    def container(self, reference: str) -> NoReturn:
        raise NotFound("There is none.", hint="None.")

    def events(self, *, since: float) -> Told:
        return Told(*self._actions)


def test_a_removed_container_that_reached_its_memory_limit_is_said_to_have() -> None:
    def words(code: int | None, *actions: str) -> str:
        return ending_of(cast(Engine, Removed(*actions)), "c", code, started_at=0).words

    over = "has ended already, exit code 137: killed because it needed more memory than its limit"
    assert words(137, "start", "oom", "die") == words(None, "start", "oom", "die") == over
    assert "by hand" in words(137, "start", "kill", "die")
    assert "by hand" in words(137)
    assert words(1, "start", "oom", "die").endswith("exit code 1: it ended with a failure")
    assert words(None).endswith("exit code unknown")


def test_one_that_is_being_removed_still_says_what_its_limit_did() -> None:
    container = replace(RUNNING, state=ContainerState.REMOVING, oom_killed=True)
    assert "more memory than its limit" in Ending(137, container).words
    assert "by hand" in Ending(137, replace(container, oom_killed=False)).words

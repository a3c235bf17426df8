"""What is typed: read at once, whatever it is, and waited for without a clock."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.app import App
from textual.message import Message

from gpuconsole.tui.terminal import Terminal


class Read(Terminal):
    """A driver that keeps what was typed."""

    def __init__(self, fileno: int) -> None:
        super().__init__(App[Any]())
        self.fileno = fileno
        self.keys: list[str] = []
        self._key_thread = self.thread = threading.Thread(target=self.run_input_thread, daemon=True)
        self.thread.start()

    def process_message(self, message: Message) -> None:
        """Keep it."""
        if isinstance(message, events.Key):
            self.keys.append(message.key)

    def _disable_mouse_support(self) -> None:
        """It has no terminal to say so to."""

    def until(self, keys: list[str]) -> None:
        """Wait for these keys."""
        end = time.monotonic() + 60
        while self.keys != keys and time.monotonic() < end:
            time.sleep(0.01)
        assert self.keys == keys

    def sleeps(self) -> bool:
        """Whether there comes a second, soon, in which it wakes once at most."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            before = self.wakes()
            time.sleep(1.0)
            if self.wakes() - before <= 1:
                return True
        return False

    def wakes(self) -> int:
        """How often its thread has gone to sleep."""
        text = Path(f"/proc/self/task/{self.thread.native_id}/status").read_text()
        return int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def opened(fileno: int) -> Read:
    """A driver, made where a loop runs, as Textual makes it."""

    async def make() -> Read:
        return Read(fileno)

    return asyncio.run(make())


@pytest.fixture
def typed() -> Iterator[tuple[Read, int]]:
    """A driver, and the end that types."""
    ours, theirs = os.pipe()
    driver = opened(ours)
    yield driver, theirs
    driver.disable_input()
    assert not driver.thread.is_alive()
    for each in (ours, theirs):
        os.close(each)


def test_keys_come_at_once_and_escape_alone_after_its_delay(typed: tuple[Read, int]) -> None:
    driver, typing = typed
    for _ in range(2):
        os.write(typing, b"a\x1b[A")
        driver.until(["a", "up"])
        os.write(typing, b"\x1b")
        driver.until(["a", "up", "escape"])
        driver.keys.clear()
        time.sleep(1.3)  # the second time it has stopped looking at the clock


def test_while_nothing_is_typed_it_sleeps(typed: tuple[Read, int]) -> None:
    driver, typing = typed
    os.write(typing, b"a")
    driver.until(["a"])
    assert driver.sleeps()
    os.write(typing, b"b")
    driver.until(["a", "b"])


@pytest.mark.parametrize(
    "noise", [b"\xff\xfe", b"\xc3", b"\xf0\x9f", b"\x80" * 5000], ids=["none", "half", "half of four", "much"]
)
def test_what_is_no_text_ends_nothing(typed: tuple[Read, int], noise: bytes) -> None:
    driver, typing = typed
    os.write(typing, noise)
    time.sleep(0.2)
    os.write(typing, b"a\x1b[B")
    end = time.monotonic() + 60
    while driver.keys[-2:] != ["a", "down"] and time.monotonic() < end:
        time.sleep(0.01)
    assert driver.keys[-2:] == ["a", "down"]


def test_a_terminal_that_is_gone_keeps_no_processor_busy() -> None:
    ours, theirs = os.pipe()
    driver = opened(ours)
    os.close(theirs)
    assert driver.sleeps()
    clock = time.pthread_getcpuclockid(driver.thread.ident or 0)
    used = time.clock_gettime(clock)
    time.sleep(0.5)
    assert time.clock_gettime(clock) - used < 0.25, "half of the time at least it sleeps"
    driver.disable_input()
    assert not driver.thread.is_alive()
    os.close(ours)


def test_a_terminal_that_is_being_taken_away_ends_nothing() -> None:
    ours, theirs = os.pipe()
    driver = opened(theirs)  # reading from this end fails
    time.sleep(0.2)
    assert driver.thread.is_alive()
    driver.disable_input()
    assert not driver.thread.is_alive()
    for each in (ours, theirs):
        os.close(each)

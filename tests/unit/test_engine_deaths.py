"""What is concluded from the times of engine, machine and container: never more than they show."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.host.enginelife import EngineLife, shutdowns, stopped_by_hand, stopping_in, unit_of
from gpuconsole.services.enginedeaths import ended_with_engine

BEGAN = 1_000_000.0
DAY = 86400.0


def container(ended: float | None, code: int = 143, *, started: float = BEGAN - 30 * DAY) -> Container:
    return Container("c" * 64, "x", "a", "sha256:a", ContainerState.EXITED, started_at=started, finished_at=ended,
                     exit_code=code)  # fmt: skip


CASES: list[tuple[str, Container, dict[str, Any], bool | None]] = [
    ("told to stop, days before it began", container(BEGAN - 2 * DAY), {"stopping_at": BEGAN - 2 * DAY - 1}, True),
    ("the same, whatever code", container(BEGAN - 2 * DAY, 1), {"stopping_at": BEGAN - 2 * DAY - 1}, True),
    ("ended before it was told to stop", container(BEGAN - 60, 137), {"stopping_at": BEGAN - 5}, None),
    ("ended before it was told to stop, by itself", container(BEGAN - 60, 1), {"stopping_at": BEGAN - 5}, None),
    (
        "close to an earlier stop of the machine",
        container(BEGAN - 9 * DAY),
        {"shutdowns": (BEGAN - 9 * DAY + 8,)},
        True,
    ),
    ("failed close to that", container(BEGAN - 9 * DAY, 1), {"shutdowns": (BEGAN - 9 * DAY + 8,)}, None),
    ("nothing near it", container(BEGAN - 9 * DAY), {"shutdowns": (BEGAN - 8 * DAY, BEGAN - 10 * DAY)}, None),
    ("shortly before it began", container(BEGAN - 12), {}, True),
    ("shortly before it began, by itself", container(BEGAN - 12, 1), {}, None),
    ("long before it began", container(BEGAN - 300), {}, None),
    ("ended by one that begins", container(BEGAN + 11, 137), {}, True),
    ("found gone by one that begins", container(BEGAN + 4, 255), {}, True),
    ("begun after it", container(BEGAN + 11, 137, started=BEGAN + 3), {}, False),
    ("never ended", container(None), {}, None),
    ("an engine that tells nothing", container(BEGAN - 5), {"began_at": None}, None),
]


@pytest.mark.parametrize(("what", "one", "known", "wanted"), CASES)
def test_what_is_concluded(what: str, one: Container, known: dict[str, Any], wanted: bool | None) -> None:
    assert ended_with_engine(one, EngineLife(**({"began_at": BEGAN} | known))) is wanted, what


def test_an_engine_that_leaves_containers_running_ends_none_at_its_beginning() -> None:
    life = EngineLife(BEGAN)
    assert ended_with_engine(container(BEGAN + 40, 143), life, live_restore=True) is False
    assert ended_with_engine(container(BEGAN + 40, 255), life, live_restore=True) is None


def record(kind: int, user: bytes, at: int) -> bytes:
    return struct.pack("<h2xi32s4s32s256shhiii16s20x", kind, 0, b"~", b"~~", user, b"6.1.0", 0, 0, 0, at, 5, b"")


def test_shutdowns_are_read_from_the_machines_own_book(tmp_path: Path) -> None:
    book = tmp_path / "wtmp"
    book.write_bytes(
        record(2, b"reboot", 100) + record(7, b"shutdown", 150) + record(1, b"shutdown", 200)
        + record(1, b"runlevel", 201)
        + record(1, b"shutdown", 300) + b"half a record"
    )  # fmt: skip
    assert shutdowns(book) == (200.0, 300.0)
    assert shutdowns(tmp_path / "none") == ()
    book.write_bytes(b"")
    assert shutdowns(book) == ()


def test_the_service_managers_words() -> None:
    assert stopping_in("ActiveExitTimestamp=@1764515000\n") == 1764515000.0
    assert stopping_in("ActiveExitTimestamp=\n") is None
    assert stopping_in("ActiveExitTimestamp=Mon 2025-12-01 10:00:00 CET\n") is None
    assert unit_of("0::/system.slice/docker.service\n") == ("docker.service", False)
    assert unit_of("12:pids:/system.slice/snap.docker.dockerd.service\n0::/\n") == (
        "snap.docker.dockerd.service",
        False,
    )
    user = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker.service\n"
    assert unit_of(user) == ("docker.service", True)
    for none in ("0::/\n", "0::/user.slice/user-1000.slice/session-3.scope\n", "0::/user@1000.service/x\n", ""):
        assert unit_of(none) is None


def test_dockers_notes_say_who_asked(tmp_path: Path) -> None:
    folder = tmp_path / "containers" / ("c" * 64)
    folder.mkdir(parents=True)
    for said in (True, False):
        (folder / "config.v2.json").write_text(json.dumps({"HasBeenManuallyStopped": said}))
        assert stopped_by_hand(str(tmp_path), "c" * 64) is said
    for text in (json.dumps({"ID": "c"}), "{", "[]"):
        (folder / "config.v2.json").write_text(text)
        assert stopped_by_hand(str(tmp_path), "c" * 64) is None
    assert stopped_by_hand(str(tmp_path), "d" * 64) is None

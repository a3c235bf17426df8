"""Writing a launch down: whatever is wrong with the records, the launch goes on and says that it is not remembered."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, cast

import pytest

from gpuconsole.core.errors import EngineRefused, NotFound
from gpuconsole.engine.model import Container, ContainerState, EngineEvent, EngineInfo, GpuPath
from gpuconsole.engine.protocol import Engine
from gpuconsole.engine.request import CreateRequest
from gpuconsole.launch.gpupath import GpuRoute
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.labels import LAUNCH
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.services.launchrecorder import LaunchRecorder
from gpuconsole.services.launchrecords import LaunchRecords
from gpuconsole.services.planning import LaunchPlan

SPEC = LaunchSpec("busybox:1", command=("true",), written=LaunchOptions("busybox:1", command=("true",)), folder="/w")
REQUEST = CreateRequest("busybox:1", name="box", command=("true",), labels={LAUNCH: "word"})
PLAN = LaunchPlan(SPEC, REQUEST, EngineInfo(endpoint="unix:///x"), GpuChoice(), GpuRoute(GpuPath.NONE, ""))


class NoContainers:
    """An engine without any, and without a memory of what was."""

    def containers(self, *, everything: bool) -> tuple[()]:
        return ()

    def container(self, name: str) -> NoReturn:
        raise NotFound(f"No such container: {name}.", hint="None.")

    def events(self, *, since: float) -> NoReturn:
        raise EngineRefused("It has none.", hint="None.")


class Told:
    """What an engine remembers of a container that is gone."""

    def __init__(self, *actions: str) -> None:
        """``kill=9`` is a kill by that signal, ``destroy=60`` a removal a minute later."""
        given = [action.partition("=")[::2] for action in actions]
        self._events = [
            EngineEvent(
                "container", action, "c" * 64, at=5.0 + (int(value or 0) if action == "destroy" else 0), exit_code=137,
                signal=int(value) if action == "kill" and value else None,
            )
            for action, value in given
        ]  # fmt: skip

    def __iter__(self) -> Iterator[EngineEvent]:
        return iter(self._events)

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("actions", "cause", "words"),
    [
        (("start", "oom", "die", "destroy"), "container-out-of-memory", "limit of 1 GiB"),
        (("start", "kill", "die", "destroy"), "stopped", "Its container was removed since."),
        (("start", "die", "destroy"), "gone", "removed since"),
        (("start", "kill=9", "die", "destroy"), "removed", "removed by force while it ran"),
        (("start", "kill=9", "die", "destroy=60"), "stopped", "removed since"),
        (("start", "kill=15", "kill=9", "die", "destroy"), "stopped", "did not end by itself in time"),
        (("start", "kill=9", "die", "start", "oom", "die", "destroy"), "container-out-of-memory", "limit of 1 GiB"),
    ],
)
def test_a_container_that_is_gone_is_explained_by_what_the_engine_told(
    tmp_path: Path, actions: tuple[str, ...], cause: str, words: str
) -> None:
    path = tmp_path / "records.db"
    engine = NoContainers()
    engine.events = lambda *, since: Told(*actions)  # type: ignore[method-assign, assignment, return-value]
    spec = replace(SPEC, written=LaunchOptions("busybox:1", memory="1g"))
    recorder = LaunchRecorder(spec, opened=lambda: LaunchRecords(path=path))
    recorder.begin(PLAN)
    recorder.started("c" * 64)
    recorder.settle(cast(Engine, engine))
    recorder.close()
    (record,) = LaunchRecords(path=path).all()
    assert record.cause == cause, record
    assert words in (record.reason or "")
    assert "removed since" in (record.reason or "") or cause == "removed"


def recorded(opened: Callable[[], LaunchRecords]) -> str:
    recorder = LaunchRecorder(SPEC, opened=opened)
    recorder.begin(PLAN)
    recorder.started("c" * 64)
    recorder.settle(cast(Engine, NoContainers()))
    recorder.close()
    return recorder.problem


def test_a_launch_is_remembered_and_there_is_nothing_to_say(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    assert recorded(lambda: LaunchRecords(path=path)) == ""
    (record,) = LaunchRecords(path=path).all()
    assert (record.name, record.container_id, record.ended) == ("box", "c" * 64, True)


def test_records_that_cannot_be_opened_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "cannot keep its records" in recorded(lambda: LaunchRecords(path=tmp_path / "file/records.db"))


@pytest.mark.parametrize("opens_first", [True, False])
def test_records_that_another_program_keeps_locked_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens_first: bool
) -> None:
    monkeypatch.setattr("gpuconsole.core.store._BUSY_TIMEOUT_S", 0.01)
    path = tmp_path / "records.db"
    records = LaunchRecords(path=path)
    with sqlite3.connect(path) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        problem = recorded(lambda: records if opens_first else LaunchRecords(path=path))
    assert "another program keeps it locked" in problem


def test_a_record_that_vanished_meanwhile_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    recorder = LaunchRecorder(SPEC, opened=lambda: LaunchRecords(path=path))
    recorder.begin(PLAN)
    with sqlite3.connect(path) as other:
        other.execute("DELETE FROM launches")
    recorder.settle(cast(Engine, NoContainers()))
    recorder.close()
    assert recorder.problem == ""


def test_damage_that_is_met_while_writing_is_told_and_the_next_launch_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    records = LaunchRecords(path=path)
    for number in range(300):
        records.begin(PLAN, LaunchOptions("busybox:1"), word=f"w{number}", folder="/w", command="x" * 500)
    records.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    assert "are damaged: they were set aside" in recorded(lambda: LaunchRecords(path=path))
    assert recorded(lambda: LaunchRecords(path=path)) == ""


def test_the_record_says_which_profile_it_came_from_and_old_records_say_none(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    old = LaunchRecords(path=path)
    old.begin(PLAN, LaunchOptions("busybox:1"), word="before", folder="/w", command="docker run busybox:1")
    recorder = LaunchRecorder(SPEC, opened=lambda: LaunchRecords(path=path))
    recorder.begin(replace(PLAN, spec=replace(SPEC, profile="train")))
    recorder.started("c" * 64)
    recorder.close()
    assert [(record.word, record.profile) for record in old.all()] == [("word", "train"), ("before", None)]
    found = old.by_word("word")
    assert found is not None
    assert found.profile == "train"
    assert found.launch_options() == LaunchOptions("busybox:1", command=("true",))
    old.forget("word")
    assert old.by_word("word") is None


def test_records_of_before_there_were_profiles_in_them_are_read(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    LaunchRecords(path=path).begin(PLAN, LaunchOptions("busybox:1"), word="w", folder="/w", command="docker run")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE launch_profiles")
    (record,) = LaunchRecords(path=path).all()
    assert record.profile is None


class Talking(NoContainers):
    """An engine that has one container, which has written something and failed."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines

    def info(self) -> EngineInfo:
        return EngineInfo(endpoint="tcp://elsewhere", local=False)

    def logs(self, container_id: str, *, tail: int) -> Lines:
        return Lines(self._lines)

    def container(self, name: str) -> Container:  # type: ignore[override]
        return Container("c" * 64, "box", "busybox:1", "sha256:a", ContainerState.EXITED, exit_code=1, finished_at=9.0)


class Lines:
    """What a container wrote."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        return iter([("stdout", f"{line}\n".encode()) for line in self._lines])

    def close(self) -> None:
        """Nothing is open."""


def test_secrets_in_what_a_container_said_last_are_not_kept(tmp_path: Path) -> None:
    secrets = ("hf_0123456789abcdefghij", "s3cr3t-value", "pa55word")
    said = (
        f"using {secrets[0]}",
        f"train.py --api-key {secrets[1]}",
        f"https://me:{secrets[2]}@host/x",
        "step 3, loss 2",
    )
    path = tmp_path / "records.db"
    recorder = LaunchRecorder(SPEC, opened=lambda: LaunchRecords(path=path))
    recorder.begin(PLAN)
    recorder.started("c" * 64)
    recorder.settle(cast(Engine, Talking(*said)))
    recorder.close()
    (record,) = LaunchRecords(path=path).all()
    assert record.exit_code == 1
    assert record.last_lines[-1] == "step 3, loss 2"
    assert len(record.last_lines) == len(said)
    assert not [
        secret for secret in secrets if any(secret.encode() in each.read_bytes() for each in tmp_path.iterdir())
    ]

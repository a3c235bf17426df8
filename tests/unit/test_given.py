"""Which GPUs running containers were given: from the engine's list, and from launches that are remembered."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from gpuconsole.engine.model import Container, ContainerState, GpuClaim, GpuRequestKind
from gpuconsole.gpu.model import Gpu, GpuSnapshot, Mig
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.host.state import memory_state
from gpuconsole.services.given import Launched, remembered, with_containers, with_launches
from gpuconsole.services.launchrecords import LaunchRecords

A, B = "a1" * 32, "b2" * 32
GPUS = (
    Gpu(0, "GPU-0", "NVIDIA H200", memory_total_bytes=2**37, memory_used_bytes=0, utilization_pct=0),
    Gpu(1, "GPU-1", "NVIDIA A100", memory_total_bytes=2**35, memory_used_bytes=0, mig_enabled=True,
        migs=(Mig("MIG-1", "1g.5gb", 1, 0, 2**32, 0), Mig(None, "1g.5gb", 2, 0, 2**32, 0))),
)  # fmt: skip
VIEW = HostView(GpuSnapshot(0.0, GPUS), tuple(GpuView(gpu) for gpu in GPUS))


def container(name: str, *devices: str, state: ContainerState = ContainerState.RUNNING) -> Container:
    claims = (GpuClaim(GpuRequestKind.CDI, devices=devices),) if devices else ()
    return Container(A, name, "image", "sha256:1", state, gpu_claims=claims)


def given(view: HostView) -> list[tuple[str, ...]]:
    return [entry.given_to for entry in view.gpus]


def test_the_gpus_and_instances_of_running_containers_are_given_and_not_free() -> None:
    seen = with_containers(
        VIEW, [container("one", "0"), container("two", "GPU-0", "MIG-1"), container("none"),
               container("ended", "0", state=ContainerState.EXITED)],
    )  # fmt: skip
    assert given(seen) == [("one", "two"), ("two",)]
    assert [memory_state(entry) for entry in seen.gpus] == [MemoryState.IDLE, MemoryState.IDLE]
    assert [memory_state(entry) for entry in VIEW.gpus] == [MemoryState.FREE, MemoryState.FREE]
    assert given(with_containers(seen, [])) == [(), ()], "what ended is not remembered"


def test_of_launches_only_those_count_that_have_a_process(tmp_path: Path) -> None:
    for pid, group in (("7", f"0::/anywhere/docker-{A}.scope/x\n"), ("9", "0::/user.slice\n")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(group)
    (tmp_path / "11").mkdir()
    (tmp_path / "self").mkdir()
    launched = (
        Launched(A, "alive", ("GPU-0",)),
        Launched(B, "ended", ("GPU-0", "GPU-1")),
        Launched("", "x", ("GPU-1",)),
    )
    assert given(with_launches(VIEW, launched, proc=tmp_path)) == [("alive",), ()]
    assert given(with_launches(VIEW, launched, proc=tmp_path / "none")) == [(), ()]


def test_a_status_makes_no_file_and_fails_for_none(tmp_path: Path) -> None:
    assert remembered(tmp_path / "none.db") == ()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "garbage.db").write_bytes(os.urandom(5000))
    assert remembered(tmp_path / "garbage.db") == ()
    sqlite3.connect(tmp_path / "empty.db").close()
    assert remembered(tmp_path / "empty.db") == ()


@pytest.mark.parametrize("gpus", ["[]", '["GPU-0"]', "null", "{", "7"])
def test_names_are_harmless_and_a_record_that_cannot_be_read_is_none(tmp_path: Path, gpus: str) -> None:
    LaunchRecords(path=tmp_path / "runs.db").close()
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute(
            "INSERT INTO launches (word, engine, name, container_id, image, gpus, folder, options, command, started_at)"
            " VALUES ('w', 'e', ?, ?, 'i', ?, '/', '{}', 'c', 1.0)",
            ("na\x1b[2Jme", A, gpus),
        )
    found = remembered(tmp_path / "runs.db")
    assert found == ((Launched(A, "name", ("GPU-0",) if "GPU" in gpus else ()),) if gpus.startswith("[") else ())


@pytest.mark.parametrize("name", ["plain", "50% of it", "what?mode=rwc", "a#b", "ü und 雪", "a//twice"])
def test_records_are_found_wherever_they_are(tmp_path: Path, name: str) -> None:
    path = Path(f"{tmp_path}/{name}/gpuconsole.db")
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE launches (number INTEGER, container_id, name, gpus, ended_at)")
        connection.execute("INSERT INTO launches VALUES (1, ?, 'mine', '[\"GPU-0\"]', NULL)", (A,))
    connection.close()
    assert remembered(path) == (Launched(A, "mine", ("GPU-0",)),)

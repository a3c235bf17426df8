"""Processes that work together: one that fails, dies or hangs ends all, and none is ever left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpuconsole.probes import archive
from gpuconsole.probes.payload.bench import ranks, world
from tests.payload.bench.planned import TORCH as PLANNED_TORCH
from tests.payload.bench.planned import config, plan
from tests.payload.driving import Listener, Payload

TORCH = """
def set_num_threads(count): pass
"""
TRIAL = """
import atexit, os, signal, sys, time, types
trial = types.ModuleType("gpuconsole.probes.payload.bench.trial")
def talk(world, told):
    world.emit("at", text="talking")
    world.emit("said", word=told["word"], count=world.count, device=world.device)
    print("stray output", flush=True)
def fail(world, told):
    if world.rank == 1:
        raise ValueError("no such luck")
    time.sleep(600)
def effect(world, told):
    if world.rank == 0:
        raise RuntimeError("Connection closed by peer [127.0.0.1]")
    time.sleep(0.2)
    raise MemoryError("cannot allocate")
def die(world, told):
    if world.rank == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(600)
def hang(world, told):
    world.emit("at", text="waiting")
    time.sleep(600)
def linger(world, told):
    atexit.register(time.sleep, 600)
trial.talk, trial.fail, trial.effect, trial.die, trial.hang, trial.linger = talk, fail, effect, die, hang, linger
sys.modules[trial.__name__] = trial
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with the archive; the functions that ranks run, and a torch that is there at once."""
    (tmp_path / "payload.pyz").write_bytes(archive.build().data)
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "torch.py").write_text(TORCH)
    (modules / "sitecustomize.py").write_text(TRIAL)
    monkeypatch.setenv("PYTHONPATH", str(modules))
    return tmp_path


def started(place: Path, function: str, *, count: int = 2, timeout_s: float = 60.0) -> Iterator[dict[str, Any]]:
    """Run ``function`` of the trial in ranks."""
    return ranks.run_ranks(
        f"trial:{function}",
        {"word": "hello"},
        archive=str(place / "payload.pyz"),
        folder=str(place),
        count=count,
        device="cpu",
        timeout_s=timeout_s,
        group=False,
    )


def processes_of(place: Path) -> list[psutil.Process]:
    """Processes that run from the archive."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(place) in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def leaves_nothing(place: Path) -> bool:
    """No process, and no folder beside the archive and the modules."""
    return not processes_of(place) and {path.name for path in place.iterdir()} == {"payload.pyz", "modules"}


def test_all_tell_what_they_have_to_tell(place: Path) -> None:
    records = list(started(place, "talk", count=3))
    said = [record for record in records if record["t"] == "said"]
    assert sorted(record["rank"] for record in said) == [0, 1, 2]
    assert all((record["word"], record["count"], record["device"]) == ("hello", 3, "cpu") for record in said)
    assert leaves_nothing(place)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("fail", "rank 1 of 2: ValueError: no such luck"),
        ("effect", "rank 1 of 2: MemoryError: cannot allocate"),
        ("die", "rank 1 of 2: died of SIGSEGV"),
    ],
)
def test_one_that_fails_ends_all_with_the_cause(place: Path, function: str, why: str) -> None:
    with pytest.raises(ranks.RanksFailed) as caught:
        list(started(place, function))
    assert str(caught.value) == why
    assert leaves_nothing(place)


def test_those_that_hang_are_ended_at_their_deadline(place: Path) -> None:
    records = started(place, "hang", timeout_s=3.0)
    assert next(records)["text"] == "waiting"
    with pytest.raises(ranks.RanksLate, match="rank 0, 1 of 2 did not end within 3 s, at waiting"):
        list(records)
    assert leaves_nothing(place)


def test_those_that_are_done_and_do_not_end_hold_nobody_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_PARTING_S", 0.5)
    assert list(started(place, "linger", timeout_s=600.0)) == []
    assert leaves_nothing(place)


def test_whoever_stops_listening_leaves_none_behind(place: Path) -> None:
    records = started(place, "hang")
    next(records)
    assert len(processes_of(place)) == 2
    records.close()  # type: ignore[attr-defined]
    assert leaves_nothing(place)


def test_when_the_worker_is_killed_they_end(place: Path) -> None:
    script = (
        "import sys; from gpuconsole.probes.payload.bench.ranks import run_ranks\n"
        "for record in run_ranks('trial:hang', {}, archive=sys.argv[1], folder=sys.argv[2], count=2, device='cpu',"
        " timeout_s=60, group=False):\n    print(record['rank'], flush=True)\n"
    )
    root = str(Path(ranks.__file__).parents[4])
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join((os.environ["PYTHONPATH"], root)))
    worker = subprocess.Popen(
        [sys.executable, "-c", script, str(place / "payload.pyz"), str(place)],
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert worker.stdout is not None
    assert {worker.stdout.readline().strip(), worker.stdout.readline().strip()} == {b"0", b"1"}
    running = [process for process in processes_of(place) if process.pid != worker.pid]
    assert len(running) == 2
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    assert not psutil.wait_procs(running, timeout=20)[1]


RANKED = """yield from go(context)

def go(context):
    from gpuconsole.probes.payload.bench.ranks import run_ranks
    for record in run_ranks("mm:rank", {}, archive=context.archive, folder=context.folder, count=2, device="cpu",
                            timeout_s=600, group=False):
        context.report("rank {} is there".format(record["rank"]))

def rank(world, told):
    world.emit("here")
    time.sleep(600)
"""


@pytest.mark.parametrize(("late", "status"), [(True, "ok"), (False, "cancelled")])
def test_a_benchmark_that_is_ended_takes_them_along(payload: Payload, late: bool, status: str) -> None:
    plan(payload, mm=RANKED)
    payload.module("torch", PLANNED_TORCH + TORCH)
    process = payload.start("bench.mm", **config(options={"deadline_s": 4.0 if late else 600.0}))
    listener = Listener(process)
    for rank in (0, 1):
        listener.wait_for("progress", text=f"rank {rank} is there")
    assert process.stdin is not None
    if not late:
        process.stdin.close()
    told = listener.wait_for("bye")
    assert (told["status"], told["ran"]) == (status, int(late))
    assert listener.end() == (0 if late else 3)
    assert not processes_of(payload.folder)
    assert not payload.folder.exists()


def test_a_process_that_cannot_be_started_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(place / "missing"))
    with pytest.raises(ranks.RanksFailed, match="no process can be started: No such file"):
        list(started(place, "talk"))
    assert leaves_nothing(place)


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ({0: "RuntimeError: Connection reset by peer", 1: "OutOfMemoryError: CUDA out of memory"}, 1),
        ({0: "ValueError: no", 1: "ValueError: no"}, 0),
        ({2: "DistBackendError: NCCL error: unhandled system error"}, 2),
    ],
)
def test_the_cause_is_told_before_its_effects(errors: dict[int, str], told: int) -> None:
    assert ranks.root_of(errors, 4) == f"rank {told} of 4: {errors[told]}"
    assert ranks.root_of({0: "ValueError: no"}, 1) == "ValueError: no"


def test_nccls_least_telling_error_is_explained_where_shared_memory_is_small() -> None:
    error = "rank 0 of 2: DistBackendError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"
    assert "/dev/shm is 64 MiB, too small for NCCL" in ranks.hint_for(error, 64 << 20)
    assert not ranks.hint_for(error, 8 << 30)
    assert not ranks.hint_for(error, None)
    assert not ranks.hint_for("RuntimeError: CUDA out of memory", 64 << 20)


@pytest.mark.parametrize(
    ("once_ms", "slice_s", "count"), [(1.0, 1.0, 1000), (0.001, 1.0, 2000), (100.0, 1.0, 20), (1000.0, 1.0, 5)]
)
def test_how_often_goes_by_the_pace(once_ms: float, slice_s: float, count: int) -> None:
    heat, timed = world.iterations(once_ms, slice_s)
    assert timed == count
    assert 1 <= heat <= timed

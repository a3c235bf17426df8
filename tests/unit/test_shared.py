"""What consoles and watches tell each other: written by who knows most, read by who asks, believed while fresh."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.state import ahead_of, memory_state
from gpuconsole.services import shared as sharing
from gpuconsole.services.shared import Shared, read_shared, shared_path
from gpuconsole.services.sharedview import with_shared
from gpuconsole.services.sharedwriting import SharedWriter

GIB = 2**30
ID = "ab" * 32


def said(state: MemoryState, eta_s: float | None = 240.0, *, pid: int | None = None) -> Assessment:
    subject = Subject.GPU if pid is None else Subject.PROCESS
    return Assessment(subject, "0", 0, pid, state, eta_s, "train grew 12 GiB in 45 s", 3e8)


def view(outlook: Assessment | None = None, *, uuid: str = "GPU-0", used: int = 100 * GIB, **more: Any) -> HostView:
    gpu = Gpu(0, uuid, "NVIDIA H200", memory_total_bytes=140 * GIB, memory_used_bytes=used, utilization_pct=98)
    holder = Holder(pid=71, gpu_index=0, gpu_uuid=uuid, memory_bytes=used, started_at=1000.0, container_id=ID)
    if outlook is not None:
        holder = replace(holder, outlook=replace(outlook, subject=Subject.PROCESS, pid=71))
    holders = (holder,) if used else ()
    return HostView(GpuSnapshot(time.time(), (gpu,)), (GpuView(gpu, holders, outlook=outlook, **more),))


@pytest.fixture
def path() -> Path:
    """Where it is for this test's user."""
    return Path(shared_path())


def known(path: Path) -> Shared:
    found = read_shared(path)
    assert found is not None
    return found


def test_what_one_writes_another_shows(path: Path) -> None:
    writer = SharedWriter()
    assert writer.write(view(said(MemoryState.RISK), given_to=("train",)), names={ID: "train"})
    found = known(path)
    assert (found.names, found.given, found.fresh) == ({ID: "train"}, {"GPU-0": ("train",)}, True)
    seen = with_shared(view(), found)
    entry = seen.gpus[0]
    assert memory_state(entry) is MemoryState.RISK
    ahead = ahead_of(entry)
    assert ahead is not None
    assert ahead.eta_s == pytest.approx(240, abs=5)
    assert ahead.why == "train grew 12 GiB in 45 s"
    assert entry.holders[0].outlook is not None
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_one_look_sees_better_stays_and_another_gpu_or_process_learns_nothing(path: Path) -> None:
    SharedWriter().write(view(said(MemoryState.RISK)))
    found = known(path)
    empty = with_shared(view(used=0), found).gpus[0]
    assert memory_state(empty) is MemoryState.FREE
    assert ahead_of(empty) is None
    lost = view()
    gone = replace(lost.gpus[0].gpu, status=GpuStatus.LOST, problem="The GPU is lost.")
    assert with_shared(replace(lost, gpus=(replace(lost.gpus[0], gpu=gone),)), found).gpus[0].outlook is None
    assert with_shared(view(uuid="GPU-1"), found).gpus[0].outlook is None
    newer = view()
    other = replace(newer.gpus[0].holders[0], started_at=2000.0)
    seen = with_shared(replace(newer, gpus=(replace(newer.gpus[0], holders=(other,)),)), found)
    assert seen.gpus[0].holders[0].outlook is None, "its number was given to another process"


def test_the_cpu_use_of_the_last_look_is_told_and_what_a_look_sees_itself_stays(path: Path) -> None:
    def using(cpu_pct: float | None, *, started_at: float | None = 1000.0) -> HostView:
        plain = view()
        holder = replace(plain.gpus[0].holders[0], cpu_pct=cpu_pct, started_at=started_at, unknown={"cpu_pct": "later"})
        return replace(plain, gpus=(replace(plain.gpus[0], holders=(holder,)),))

    SharedWriter().write(using(731.5))
    found = known(path)
    (told,) = with_shared(using(None), found).gpus[0].holders
    assert (told.cpu_pct, dict(told.unknown)) == (731.5, {})
    assert with_shared(using(3.0), found).gpus[0].holders[0].cpu_pct == 3.0
    for another in (using(None, started_at=2000.0), using(None, started_at=None)):
        assert with_shared(another, found).gpus[0].holders[0].cpu_pct is None, "its number was given to another"
    data = json.loads(path.read_text())
    del data["cpu"]
    path.write_text(json.dumps(data))
    assert known(path).cpu == {}, "written by an older version"


def test_what_is_ahead_is_forgotten_after_some_paces_and_names_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SharedWriter().write(view(said(MemoryState.RISK)), names={ID: "train"})
    began = sharing.since_boot_s()

    def later(seconds: float) -> Shared:
        monkeypatch.setattr(sharing, "since_boot_s", lambda: began + seconds)
        return known(path)

    soon = later(3.0)
    assert soon.fresh
    eta = soon.gpus["GPU-0"].eta_s
    assert eta == pytest.approx(237, abs=0.5), "time went on since it was written"
    old = later(10.0)
    assert (old.fresh, old.gpus, old.processes, old.cpu, old.given) == (False, {}, (), {}, None)
    assert old.names == {ID: "train"}
    assert later(7200.0).names == {}
    assert later(-60.0).names == {}, "nothing is from the future"


def changed(path: Path, **parts: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))


BAD: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: path.write_bytes(b""),
    "no JSON": lambda path: path.write_bytes(b"\xff\xfe{"),
    "half of it": lambda path: path.write_bytes(path.read_bytes()[:80]),
    "a list": lambda path: path.write_text("[]"),
    "a number": lambda path: path.write_text("7"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "nothing in it": lambda path: path.write_text("{}"),
    "another schema": lambda path: changed(path, schema="gpuconsole.shared/9"),
    "another boot": lambda path: changed(path, boot="5f0c"),
    "no boot": lambda path: changed(path, boot=""),
    "a text for a time": lambda path: changed(path, at="soon"),
    "no number": lambda path: path.write_text(path.read_text().replace('"pace_s": 2.0', '"pace_s": NaN')),
    "an endless number": lambda path: changed(path, since=10**400),
    "an unknown state": lambda path: changed(path, gpus={"GPU-0": ["boom", 1.0, 1.0, ""]}),
    "too few of it": lambda path: changed(path, gpus={"GPU-0": ["risk"]}),
    "a list of GPUs": lambda path: changed(path, gpus=[1]),
    "CPU use of another form": lambda path: changed(path, cpu=[[71, "x"]]),
    "processes of another form": lambda path: changed(path, processes=[["GPU-0", "x", 1, ["risk", 1, 1, ""]]]),
    "names of another form": lambda path: changed(path, names=["x"]),
    "huge": lambda path: path.write_text(path.read_text() + " " * 300_000),
    "others may write": lambda path: path.chmod(0o666),
    "a folder": lambda path: subprocess.run(["sh", "-c", 'rm "$0" && mkdir "$0"', path], check=True),
    "a pipe": lambda path: subprocess.run(["sh", "-c", 'rm "$0" && mkfifo "$0"', path], check=True),
    "a link": lambda path: subprocess.run(["sh", "-c", 'mv "$0" "$0.real" && ln -s "$0.real" "$0"', path], check=True),
    "not to be read": lambda path: path.chmod(0o000) if os.geteuid() else path.unlink(),
    "of another user": lambda path: os.chown(path, 12345, 12345) if not os.geteuid() else path.unlink(),
}


@pytest.mark.parametrize("how", BAD)
def test_what_cannot_be_believed_is_as_if_it_were_not_there_and_is_replaced(path: Path, how: str) -> None:
    SharedWriter().write(view(said(MemoryState.RISK)), names={ID: "train"})
    BAD[how](path)
    assert read_shared(path) is None
    if how == "a folder":
        with pytest.raises(OSError, match="directory"):
            SharedWriter().write(view(said(MemoryState.WATCH)))
        return
    assert SharedWriter().write(view(said(MemoryState.WATCH)))
    assert known(path).gpus["GPU-0"].state is MemoryState.WATCH
    assert not path.is_symlink()


def test_words_from_outside_are_harmless(path: Path) -> None:
    SharedWriter().write(view(said(MemoryState.RISK)), names={ID: "train"})
    changed(path, gpus={"GPU-0": ["risk", 1.0, 1.0, "\x1b]0;x\x07a\nb" + "c" * 999]}, names={ID: "\x1b[31mt\u202eain"})
    found = known(path)
    assert found.names == {ID: "tain"}
    assert found.gpus["GPU-0"].why.startswith("a bc")
    assert len(found.gpus["GPU-0"].why) <= 300


def test_who_watched_longest_says_what_is_ahead_and_who_asked_the_engine_the_names(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elder, younger = SharedWriter(), SharedWriter()
    elder.write(view(said(MemoryState.RISK)))
    assert younger.write(view(said(MemoryState.STEADY, None), given_to=("train",)), names={ID: "train"})
    found = known(path)
    assert (found.writer, found.gpus["GPU-0"].state) == (elder.name, MemoryState.RISK)
    assert (found.names, found.given) == ({ID: "train"}, {"GPU-0": ("train",)})
    assert elder.write(view(said(MemoryState.CRITICAL)))
    found = known(path)
    assert found.gpus["GPU-0"].state is MemoryState.CRITICAL
    assert (found.names, found.given) == ({ID: "train"}, {"GPU-0": ("train",)}), "it asked no engine, so it keeps them"
    now = sharing.since_boot_s()
    monkeypatch.setattr(sharing, "since_boot_s", lambda: now + 7)  # the elder has gone
    monkeypatch.setattr("gpuconsole.services.sharedwriting.since_boot_s", lambda: now + 7)
    assert younger.write(view(said(MemoryState.STEADY, None)))
    found = known(path)
    assert (found.writer, found.gpus["GPU-0"].state) == (younger.name, MemoryState.STEADY)


def test_what_stays_the_same_is_written_seldom(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, calm = SharedWriter(), view(said(MemoryState.STEADY, None))
    assert writer.write(calm)
    assert not writer.write(calm)
    using = replace(calm.gpus[0].holders[0], cpu_pct=99.0)
    busier = replace(calm, gpus=(replace(calm.gpus[0], holders=(using,)),))
    assert not writer.write(busier), "it moves at every look"
    assert writer.write(view(said(MemoryState.WATCH)))
    now = sharing.since_boot_s()
    monkeypatch.setattr("gpuconsole.services.sharedwriting.since_boot_s", lambda: now + 4.5)
    assert writer.write(view(said(MemoryState.WATCH))), "so that it does not grow old"


def test_one_writes_at_a_time_and_nobody_waits(path: Path) -> None:
    writer = SharedWriter()
    path.parent.mkdir(parents=True)
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not writer.write(view())
    assert writer.write(view())


def test_readers_see_the_old_or_the_new_while_many_write(path: Path) -> None:
    SharedWriter().write(view(said(MemoryState.STEADY, None)), names={ID: "train"})
    over = threading.Event()

    def go(number: int) -> None:
        writer = SharedWriter()
        while not over.is_set():
            writer.write(
                view(said(MemoryState.RISK, float(number))), names={ID: "train"} | {f"{number:064d}": "x" * 99}
            )
            number += 3

    threads = [threading.Thread(target=go, args=(number,)) for number in range(3)]
    for one in threads:
        one.start()
    try:
        assert all(known(path).names[ID] == "train" for _ in range(300))
    finally:
        over.set()
        for one in threads:
            one.join()
    left = {one.name for one in path.parent.iterdir()}
    assert left == {path.name, f"{path.name}.lock"}


def test_what_killed_writers_and_machines_of_old_left_is_taken_away(path: Path) -> None:
    path.parent.mkdir(parents=True)
    left, other, mine = (path.parent / name for name in (f"{path.name}.7.aa", "shared-gone.json", "runs.db"))
    for one in (left, other, mine):
        one.write_text("x")
        os.utime(one, (1, 1))
    fresh = path.parent / "shared-beside.json"
    fresh.write_text("x")
    SharedWriter().write(view())
    assert (left.exists(), other.exists(), mine.exists(), fresh.exists()) == (False, False, True, True)


def test_a_folder_that_cannot_be_written_is_no_failure_of_who_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nothing")
    writer = SharedWriter()
    writer.put(view(said(MemoryState.RISK)))
    time.sleep(0.05)
    assert read_shared() is None
    writer.put(view(said(MemoryState.RISK)))


def test_it_is_written_behind_who_looks(path: Path) -> None:
    SharedWriter().put(view(said(MemoryState.RISK)))
    until = time.monotonic() + 10
    while read_shared(path) is None and time.monotonic() < until:
        time.sleep(0.01)
    assert known(path).gpus["GPU-0"].state is MemoryState.RISK

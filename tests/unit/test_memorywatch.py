"""Memory watched look by look: live and recorded say the same, and what is no growth raises nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.gpu.forecast import Forecaster
from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot, GpuStatus, Mig
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.recorded import memory_samples
from gpuconsole.host.recording import RecordingWriter, sample
from gpuconsole.host.state import memory_state
from gpuconsole.services.memorywatch import MemoryWatch

GIB = 2**30
TOTAL = 140 * GIB
Memory = Callable[[float], int]
ALARMS = (MemoryState.WATCH, MemoryState.RISK, MemoryState.CRITICAL)
RAISED = (MemoryState.RISK, MemoryState.CRITICAL)


def seen(held: Sequence[tuple[int, int]], *, index: int = 0, began: float = 1.0, **changes: object) -> GpuView:
    """A GPU at work for these (pid, bytes)."""
    used = sum(size for _, size in held)
    gpu = Gpu(
        index, f"GPU-{index}", "NVIDIA H200", memory_total_bytes=TOTAL, memory_used_bytes=used,
        memory_free_bytes=TOTAL - used, utilization_pct=95,
        processes=tuple(GpuProcess(pid, size) for pid, size in held),
    )  # fmt: skip
    holders = tuple(
        Holder(pid=pid, gpu_index=index, gpu_uuid=gpu.uuid, memory_bytes=size, started_at=began, container_name="train")
        for pid, size in held
    )
    return GpuView(replace(gpu, **changes), holders)  # type: ignore[arg-type]


def host(*views: GpuView, problem: str | None = None) -> HostView:
    return HostView(GpuSnapshot(0.0, tuple(view.gpu for view in views), problem=problem), views)


class Machine:
    """A machine that is looked at, with a clock of its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.watch = MemoryWatch(clock=lambda: self.now)
        self.views: list[HostView] = []

    def look(self, view: HostView, *, after_s: float = 1.0) -> HostView:
        self.now += after_s
        self.views.append(self.watch.look(view))
        return self.views[-1]

    def run(self, memory: Memory, seconds: int, *, start: int = 0, pid: int = 7, began: float = 1.0) -> HostView:
        for second in range(start, start + seconds):
            shown = self.look(host(seen([(pid, memory(second))], began=began)))
        return shown

    def states(self) -> list[MemoryState]:
        return [memory_state(view.gpus[0]) for view in self.views]


def leak(second: float) -> int:
    """Loads 60 GiB in ten seconds, rests for ten, then keeps 600 MiB more every second, as steps are seen."""
    return int(60 * GIB * min(1.0, second / 10) + 0.6 * GIB * max(0, second - 20))


def test_a_leak_is_watched_a_risk_and_critical_and_says_whose_it_is() -> None:
    machine = Machine()
    shown = machine.run(leak, 140)
    order = [state for state in dict.fromkeys(machine.states()) if state in ALARMS]
    assert order == [MemoryState.WATCH, MemoryState.RISK, MemoryState.CRITICAL]
    ahead = shown.gpus[0].outlook
    assert ahead is not None
    assert ahead.eta_s is not None
    assert "train (process 7) grew" in ahead.why
    assert shown.gpus[0].holders[0].outlook is not None
    assert {each.subject for each in shown.outlooks} >= {Subject.GPU, Subject.PROCESS, Subject.HOST, Subject.SHM}
    assert machine.watch.last == shown.outlooks


def test_a_full_card_that_rests_is_packed() -> None:
    machine = Machine()
    machine.run(lambda second: int(134 * GIB * min(1.0, second / 15)), 120)
    assert machine.states()[-1] is MemoryState.PACKED
    assert not set(machine.states()) & set(ALARMS)


def sessions() -> dict[str, Callable[[Machine], None]]:
    def quiet(machine: Machine) -> None:
        machine.run(lambda second: 20 * GIB, 40)

    def leaks(machine: Machine) -> None:
        machine.run(leak, 130)
        machine.look(host(seen([])))

    def lent(machine: Machine) -> None:
        machine.run(leak, 60)
        machine.look(host(seen([(7, leak(660))])), after_s=30)
        machine.run(leak, 40, start=91)

    def lost(machine: Machine) -> None:
        machine.run(leak, 60)
        for _ in range(5):
            machine.look(host(seen([], status=GpuStatus.LOST, problem="lost", memory_used_bytes=None,
                                   memory_free_bytes=None, processes=None)))  # fmt: skip
        machine.run(leak, 40, start=65)

    def away(machine: Machine) -> None:
        machine.run(leak, 60)
        machine.look(host(problem="no driver"))
        machine.run(leak, 40, start=61)

    def reused(machine: Machine) -> None:
        machine.run(leak, 60)
        machine.run(lambda second: 90 * GIB, 20, began=99.0)

    return {"quiet": quiet, "leaks": leaks, "lent": lent, "lost": lost, "away": away, "reused": reused}


@pytest.mark.parametrize("name", sessions())
def test_recorded_it_says_what_was_said_live(name: str, tmp_path: Path) -> None:
    machine = Machine()
    sessions()[name](machine)
    path = tmp_path / "session.jsonl"
    writer = RecordingWriter(path)
    writer.header(machine.views[0].snapshot, began_at=0.0, interval_s=1.0)
    for view in machine.views:
        assert view.memory is not None
        writer.line("sample", view.memory.t, sample(view.snapshot, view.memory))
    writer.close()
    forecaster = Forecaster()
    again = [forecaster.feed(each) for each in memory_samples(path)]
    assert [facts(each) for each in again] == [facts(view.outlooks) for view in machine.views]


def facts(said: Sequence[Assessment]) -> list[object]:
    return [(each.key, each.state, each.eta_s, each.rate_bytes_s) for each in said]


def test_a_long_gap_raises_no_alarm_by_itself() -> None:
    """The console stood still while a shell had the terminal, or the machine was too busy to look."""
    machine = Machine()
    machine.run(lambda second: int(20 * GIB * min(1.0, second / 10) + 0.02 * GIB * max(0, second - 20)), 60)
    before = machine.states()[-1]
    assert before not in RAISED
    machine.look(host(seen([(7, int(20.9 * GIB))])), after_s=900)
    assert machine.states()[-1] not in RAISED


def test_of_what_began_in_a_gap_nobody_knows_how_fast_it_loaded() -> None:
    """Had it loaded all through the gap, what it leaks afterwards would look like more loading."""
    machine = Machine()
    machine.run(lambda second: 0, 20)
    machine.look(host(seen([(9, 50 * GIB)])), after_s=600)
    machine.run(lambda second: int(50 * GIB + 0.5 * GIB * max(0, second - 10)), 180, pid=9)
    assert set(machine.states()) >= set(RAISED)


def test_another_pace_is_a_pace_and_no_gap_for_long() -> None:
    machine = Machine()
    machine.run(leak, 40)
    for second in range(45, 125, 5):
        machine.look(host(seen([(7, leak(second))])), after_s=5)
    assert set(machine.states()) & set(RAISED)


def test_a_clock_that_is_set_changes_nothing() -> None:
    """The time of day is not what growth is measured by."""
    said = []
    for step in (0.0, -7200.0, 86400.0):
        machine = Machine()
        for second in range(110):
            view = host(seen([(7, leak(second))]))
            taken_at = second + (step if second > 50 else 0.0)
            machine.look(replace(view, snapshot=replace(view.snapshot, taken_at=taken_at)))
        said.append(machine.states())
    assert said[0] == said[1] == said[2]


def test_a_gpu_that_is_lost_has_failed_and_comes_back_with_its_past() -> None:
    machine = Machine()
    machine.run(leak, 80)
    assert machine.states()[-1] in ALARMS
    gone = seen([], status=GpuStatus.LOST, problem="The GPU is lost.", memory_used_bytes=None, memory_free_bytes=None,
                processes=None)  # fmt: skip
    for _ in range(6):
        machine.look(host(gone))
        assert machine.states()[-1] is MemoryState.FAILED
    machine.run(leak, 3, start=86)
    assert machine.states()[-1] in ALARMS


def test_a_pid_that_was_given_to_another_process_is_another_process() -> None:
    machine = Machine()
    machine.run(leak, 100)
    assert machine.states()[-1] in RAISED
    machine.run(lambda second: leak(100), 10, began=500.0)
    ended = [each for view in machine.views for each in view.outlooks if each.state is MemoryState.FREE and each.pid]
    assert ended or any(each.state is MemoryState.FAILED for view in machine.views for each in view.outlooks)
    assert machine.states()[-1] not in RAISED


@pytest.mark.parametrize(
    "changes",
    [
        {"migs": (Mig("MIG-1", "1g.18gb", 1, 1, 18 * GIB, 17 * GIB),)},
        {"unified_memory": True, "memory_used_bytes": None, "memory_free_bytes": None},
    ],
)
def test_of_a_memory_that_is_not_one_nothing_is_foretold(changes: dict[str, Any]) -> None:
    machine = Machine()
    for second in range(100):
        shown = machine.look(host(seen([(7, leak(second))], **changes)))
        assert shown.gpus[0].outlook is None
        assert not any(each.subject in (Subject.GPU, Subject.PROCESS) for each in shown.outlooks)


def test_what_the_driver_does_not_tell_is_unknown_with_its_reason() -> None:
    machine = Machine()
    for _ in range(6):
        shown = machine.look(host(seen([(7, GIB)], memory_used_bytes=None, memory_free_bytes=None,
                                       unknown={"memory_used_bytes": "not supported here"})))  # fmt: skip
    assert memory_state(shown.gpus[0]) is MemoryState.UNKNOWN
    assert shown.gpus[0].outlook is not None
    assert shown.gpus[0].outlook.why == "not supported here"


def test_the_word_does_not_change_while_idleness_is_not_decided() -> None:
    """From one look an idle GPU is idle; the forecaster wants ten, and says steady before."""
    machine = Machine()
    for _ in range(30):
        machine.look(host(seen([(7, 20 * GIB)], utilization_pct=0)))
    assert set(machine.states()) == {MemoryState.IDLE}


def test_documents_hold_nothing_that_is_derived() -> None:
    from gpuconsole.core.document import jsonable

    shown = Machine().run(leak, 90)
    text = json.dumps(jsonable(shown))
    assert "outlook" not in text
    assert '"memory":' not in text

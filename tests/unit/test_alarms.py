"""What rings: once per rise of state, once for one cause, once for many; and what was dismissed does not."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.state import MemoryState
from gpuconsole.services.alarmfile import AlarmFile
from gpuconsole.services.alarmnames import Named
from gpuconsole.services.alarms import AGAIN_S, CALM_S, GATHER_S, Alarm, Alarms

STEADY, RISK, CRITICAL, FAILED, UNKNOWN = (
    MemoryState.STEADY, MemoryState.RISK, MemoryState.CRITICAL, MemoryState.FAILED, MemoryState.UNKNOWN,
)  # fmt: skip


def process(pid: int, state: MemoryState, *, gpu: int = 0, eta_s: float | None = None) -> Assessment:
    return Assessment(Subject.PROCESS, f"{gpu}:{pid}", gpu, pid, state, eta_s, "grew 12 GiB in 45 s")


def gpu(state: MemoryState, *, index: int = 0) -> Assessment:
    return Assessment(Subject.GPU, str(index), index, None, state, None, "process 7 grew 12 GiB in 45 s")


def pool(subject: Subject, state: MemoryState, ident: str = "ab" * 32) -> Assessment:
    return Assessment(subject, ident, None, None, state, None, "grew")


def told(alarms: Alarms, *looks: tuple[float, tuple[Assessment, ...]]) -> list[tuple[float, tuple[Alarm, ...]]]:
    return [(now, rung) for now, said in looks if (rung := alarms.looked(said, now))]


def every_second(start: float, end: float, *said: Assessment) -> list[tuple[float, tuple[Assessment, ...]]]:
    return [(start + second, said) for second in range(int(end - start))]


def test_a_rise_rings_once_however_long_it_lasts() -> None:
    looks = every_second(0, 2000, process(7, CRITICAL), gpu(CRITICAL))
    ((at, (alarm,)),) = told(Alarms(), *looks)
    assert at == 0
    assert (alarm.subject, alarm.pid, alarm.state) == (Subject.PROCESS, 7, CRITICAL)
    assert "grew 12 GiB" in alarm.sentence


@pytest.mark.parametrize(("least", "rings"), [(CRITICAL, []), (RISK, [RISK])])
def test_a_risk_rings_only_where_the_user_says_so(least: MemoryState, rings: list[MemoryState]) -> None:
    alarms = Alarms(least=least)
    found = told(alarms, *every_second(0, 100, process(7, RISK, eta_s=300.0)))
    assert [alarm.state for _, each in found for alarm in each] == rings
    assert [alarm.state for alarm in alarms.standing()] == [RISK], "it is listed all the same"
    assert all("a trend" in alarm.sentence for _, each in found for alarm in each)


def test_worse_rings_again_at_once_and_better_does_not() -> None:
    looks = [
        *every_second(0, 30, process(7, RISK)),
        *every_second(30, 60, process(7, CRITICAL)),
        *every_second(60, 600, process(7, RISK)),
    ]
    found = told(Alarms(least=RISK), *looks)
    assert [(at, each[0].state) for at, each in found] == [(0, RISK), (30, CRITICAL)]


def test_a_state_that_flaps_rings_once() -> None:
    looks: list[tuple[float, tuple[Assessment, ...]]] = [
        (float(second), (process(7, CRITICAL if second % 40 < 5 else STEADY),)) for second in range(3000)
    ]
    assert [at for at, _ in told(Alarms(), *looks)] == [0]


@pytest.mark.parametrize("quiet", [CALM_S + 1, AGAIN_S - 10, AGAIN_S + 10])
def test_after_a_calm_the_same_state_rings_again_but_no_sooner_than_ten_minutes_later(quiet: float) -> None:
    looks = [
        *every_second(0, 10, process(7, CRITICAL)),
        *every_second(10, 10 + quiet, process(7, STEADY)),
        *every_second(10 + quiet, 2000, process(7, CRITICAL)),
    ]
    assert [at for at, _ in told(Alarms(), *looks)] == [0, max(AGAIN_S, 10 + quiet)]


def test_what_cannot_be_told_now_is_no_better_news() -> None:
    alarms = Alarms()
    looks = [
        *every_second(0, 10, process(7, CRITICAL)),
        *every_second(10, 300, process(7, UNKNOWN)),
        *every_second(300, 900, process(7, CRITICAL)),
    ]
    assert [at for at, _ in told(alarms, *looks)] == [0]


@pytest.mark.parametrize("first", ["process", "gpu", "both"])
def test_a_gpu_and_what_fills_it_ring_once(first: str) -> None:
    before = {"process": (process(7, CRITICAL), gpu(STEADY)), "gpu": (process(7, STEADY), gpu(CRITICAL)),
              "both": (gpu(CRITICAL), process(7, CRITICAL))}[first]  # fmt: skip
    looks = [(0.0, before), *every_second(GATHER_S + 1, 400, gpu(CRITICAL), process(7, CRITICAL))]
    assert len(told(Alarms(), *looks)) == 1


def test_a_second_culprit_of_the_same_memory_is_no_second_alarm_but_a_later_one_is() -> None:
    looks = [
        *every_second(0, 20, process(7, CRITICAL), gpu(CRITICAL)),
        *every_second(20, 60, process(7, CRITICAL), process(8, CRITICAL), gpu(CRITICAL)),
        (60.0, (process(7, FAILED), process(8, STEADY), gpu(STEADY))),
        *every_second(61, 90, process(8, STEADY), gpu(STEADY)),
        *every_second(90, 200, process(9, CRITICAL), gpu(CRITICAL)),
    ]
    found = [(at, alarm.pid, alarm.state) for at, each in told(Alarms(), *looks) for alarm in each]
    assert found == [(0, 7, CRITICAL), (60, 7, FAILED), (90, 9, CRITICAL)]


def test_other_gpus_are_other_memories() -> None:
    alarms = Alarms()
    assert len(alarms.looked((process(7, CRITICAL), process(7, CRITICAL, gpu=1)), 0.0)) == 2


def test_many_at_once_are_one_and_what_follows_closely_waits_for_the_rest() -> None:
    alarms = Alarms()
    (first,) = alarms.looked((process(1, CRITICAL, gpu=0),), 0.0)
    assert not first.parts
    rest = [process(1, CRITICAL, gpu=0)]
    for index in range(1, 8):
        rest.append(process(index + 1, CRITICAL, gpu=index, eta_s=float(90 - index)))
        if index < GATHER_S:
            assert alarms.looked(rest, float(index) / 2) == ()
    (many,) = alarms.looked(rest, GATHER_S)
    assert len(many.parts) == 7
    assert many.eta_s == 83.0
    assert many.sentence.startswith("7 alarms at once: 7 critical (Process 8 on GPU 7, ")
    assert many.sentence.endswith("and 4 more).")
    assert alarms.looked(rest, 100.0) == ()


def test_a_failure_is_always_told_and_told_once() -> None:
    alarms = Alarms(dismissed=lambda key: CRITICAL.severity)
    looks = [
        *every_second(0, 10, process(7, CRITICAL)),
        *every_second(10, 20, process(7, FAILED)),
        *every_second(20, 40, gpu(STEADY)),
    ]
    found = told(alarms, *looks)
    assert [(at, each[0].state) for at, each in found] == [(10, FAILED)]
    assert alarms.standing() == ()


@pytest.mark.parametrize("end", [FAILED, MemoryState.FREE])
def test_with_the_process_that_filled_it_the_alarm_of_its_gpu_is_over(end: MemoryState) -> None:
    alarms = Alarms()
    told(alarms, *every_second(0, 10, process(7, CRITICAL), gpu(CRITICAL)))
    assert len(alarms.standing()) == 2
    alarms.looked((process(7, end), gpu(STEADY)), 10.0)
    assert alarms.standing() == ()
    alarms.looked((process(8, CRITICAL), gpu(CRITICAL)), 11.0)
    alarms.looked((process(7, end, gpu=1), gpu(STEADY, index=1), process(8, CRITICAL), gpu(STEADY)), 12.0)
    assert {each.subject for each in alarms.standing()} == {Subject.PROCESS, Subject.GPU}, "another GPU says nothing"


def test_one_that_comes_while_others_are_gathered_is_not_lost() -> None:
    alarms = Alarms()
    assert alarms.looked((process(1, CRITICAL),), 0.0)
    assert alarms.looked((process(1, CRITICAL), process(2, FAILED, gpu=1)), 1.0) == ()
    assert alarms.looked((process(1, CRITICAL),), 2.0) == ()
    (late,) = alarms.looked((process(1, CRITICAL),), 6.0)
    assert (late.pid, late.state) == (2, FAILED)


def test_a_pid_that_is_used_again_is_another_process() -> None:
    alarms, said = Alarms(), (process(7, CRITICAL),)
    key = (Subject.PROCESS, "0:7")
    assert alarms.looked(said, 0.0, names={key: Named("process 7/50/GPU-0", "Process 7 on GPU 0")})
    assert not alarms.looked(said, 10.0, names={key: Named("process 7/50/GPU-0", "Process 7 on GPU 0")})
    (other,) = alarms.looked(said, 20.0, names={key: Named("process 7/900/GPU-0", "Process 7 of mei on GPU 0")})
    assert other.name == "Process 7 of mei on GPU 0"
    (failed,) = alarms.looked((process(7, FAILED),), 40.0)
    assert failed.key == "process 7/900/GPU-0", "it is gone from the list, and is called what it was called"


def test_clocks_that_step_back_silence_nothing_for_good() -> None:
    alarms = Alarms()
    assert alarms.looked((process(7, CRITICAL),), 100_000.0)
    assert alarms.looked((process(8, CRITICAL, gpu=1),), 50.0)
    for second in range(60, 60 + int(CALM_S) + 2):
        alarms.looked((process(7, STEADY),), float(second))
    assert alarms.looked((process(7, CRITICAL),), 200.0)


def test_all_kinds_of_memory_are_told() -> None:
    said = (pool(Subject.HOST, CRITICAL, "host"), pool(Subject.SHM, CRITICAL, "host"))
    assert {alarm.name for alarm in Alarms().looked(said, 0.0)} == {"The machine's memory", "/dev/shm"}
    said = (pool(Subject.CONTAINER, CRITICAL), pool(Subject.SHM, CRITICAL))
    assert {alarm.name for alarm in Alarms().looked(said, 0.0)} == {
        "Memory of container abababababab", "/dev/shm of abababababab",
    }  # fmt: skip


def test_whatever_comes_what_is_remembered_stays_bounded_and_no_subject_rings_twice_in_ten_minutes() -> None:
    dice, alarms = random.Random(1), Alarms(least=RISK)
    states = (STEADY, RISK, CRITICAL, UNKNOWN)
    last: dict[str, tuple[float, int]] = {}
    for second in range(6000):
        pids = [dice.randrange(second // 100, second // 100 + 20) for _ in range(5)]
        said = [process(pid, dice.choice(states), gpu=pid % 4) for pid in dict.fromkeys(pids)]
        for whole in alarms.looked(said, float(second)):
            for alarm in whole.parts or (whole,):
                at, severity = last.get(alarm.key, (-AGAIN_S, 0))
                assert alarm.state.severity > severity or second - at >= AGAIN_S
                last[alarm.key] = float(second), alarm.state.severity
    assert len(alarms._entries) < 40
    assert last


# --- what was dismissed ---


@pytest.fixture
def file(tmp_path: Path) -> Callable[[], AlarmFile]:
    return lambda: AlarmFile(tmp_path / "state" / "alarms.json")


def test_what_was_dismissed_is_silent_until_it_gets_worse_also_for_the_next_console(
    file: Callable[[], AlarmFile],
) -> None:
    first, beside = file(), file()
    alarms = Alarms(least=RISK, dismissed=first.dismissed)
    other = Alarms(least=RISK, dismissed=beside.dismissed)
    (alarm,) = alarms.looked((process(7, RISK),), 0.0)
    first.dismiss(alarm.keys, alarm.state, 0.0)
    assert alarms.standing()[0].dismissed
    assert other.looked((process(7, RISK),), 1.0) == (), "a console beside it heeds it"
    again = Alarms(least=RISK, dismissed=file().dismissed)
    assert again.looked((process(7, RISK),), 1000.0) == ()
    assert again.looked((process(7, CRITICAL),), 1001.0)
    first.heed(alarm.keys, 1002.0)
    assert Alarms(least=RISK, dismissed=file().dismissed).looked((process(7, RISK),), 1003.0)


def test_a_process_is_known_again_though_the_clock_of_the_kernel_wandered(file: Callable[[], AlarmFile]) -> None:
    file().dismiss(["process 7/1700000000/GPU-0"], CRITICAL, 0.0)
    assert file().dismissed("process 7/1700000001/GPU-0") == CRITICAL.severity
    for other in ("process 7/1700000100/GPU-0", "process 7/1700000000/GPU-1", "process 8/1700000000/GPU-0", "gpu x"):
        assert file().dismissed(other) == 0


def test_what_was_dismissed_of_a_gpu_is_forgotten_and_of_a_process_is_not(file: Callable[[], AlarmFile]) -> None:
    file().dismiss(["gpu GPU-0", "process 7/5/GPU-0"], CRITICAL, 0.0)
    file().dismiss(["host"], CRITICAL, 13 * 3600.0)
    assert file().dismissed("gpu GPU-0") == 0
    assert file().dismissed("process 7/5/GPU-0") == CRITICAL.severity


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "\x00", "[" * 100_000, '{"schema": "gpuconsole.alarms/9", "dismissed": {"host": [7, 0]}}',
     '{"schema": "gpuconsole.alarms/1", "dismissed": 3, "told": {"a": 1, "b": [1], "c": ["x", 2], "d": [true, 0]}}'],
)  # fmt: skip
def test_a_damaged_file_is_ignored_and_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "alarms.json"
    path.write_text(text)
    assert AlarmFile(path).dismissed("host") == 0
    AlarmFile(path).dismiss(["host"], RISK, 0.0)
    assert AlarmFile(path).dismissed("host") == RISK.severity
    assert json.loads(path.read_text())["schema"] == "gpuconsole.alarms/1"
    assert path.stat().st_mode & 0o077 == 0


def test_where_nothing_can_be_written_this_console_remembers_by_itself(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    file = AlarmFile(tmp_path / "state" / "alarms.json")
    file.dismiss(["host"], RISK, 0.0)
    assert file.dismissed("host") == RISK.severity
    assert file.claim(["host"], RISK, 1.0, within_s=600)
    assert not file.claim(["host"], RISK, 2.0, within_s=600)


def test_a_link_that_somebody_laid_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    (tmp_path / "alarms.json").symlink_to(precious)
    AlarmFile(tmp_path / "alarms.json").dismiss(["host"], RISK, 0.0)
    assert precious.read_text() == "keep"


def _claim(path: str, number: int, answers: multiprocessing.Queue[bool]) -> None:
    file = AlarmFile(Path(path))
    file.dismiss([f"process {number}/0/x"], RISK, 0.0)
    answers.put(file.claim(["process 7/5/GPU-0"], CRITICAL, 10.0, within_s=600))


def test_of_many_consoles_one_runs_the_command_and_no_dismissal_is_lost(tmp_path: Path) -> None:
    path = str(tmp_path / "alarms.json")
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[bool] = context.Queue()
    consoles = [context.Process(target=_claim, args=(path, number, answers)) for number in range(12)]
    for each in consoles:
        each.start()
    for each in consoles:
        each.join(30)
    assert sorted(answers.get(timeout=5) for _ in consoles) == [False] * 11 + [True]
    file = AlarmFile(Path(path))
    assert all(file.dismissed(f"process {number}/0/x") for number in range(12))
    assert file.claim(["process 7/5/GPU-0"], FAILED, 11.0, within_s=600), "a worse state is something new"
    assert file.claim(["process 7/5/GPU-0"], FAILED, 700.0, within_s=600), "and so is the same much later"
    assert sorted(os.listdir(tmp_path)) == ["alarms.json", "alarms.json.lock"]

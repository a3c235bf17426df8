"""What an alarm does beyond the screen: signs for the terminal, the user's command, saved samples, quiet notes."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import types
import typing
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuconsole.core import records
from gpuconsole.core.errors import BadFile
from gpuconsole.core.revive import written_types
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.gpu.forecast_model import GpuMemory, MemorySample, PoolMemory, ProcessMemory, Subject
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus, ProcessKind
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.recorded import memory_samples
from gpuconsole.host.recording import read_recording
from gpuconsole.services.alarmcommand import run_command
from gpuconsole.services.alarmdeaths import DeathWatch
from gpuconsole.services.alarmevidence import SPAN_S, Evidence, _pickled, _unpacked, save
from gpuconsole.services.alarmfile import AlarmFile
from gpuconsole.services.alarmidle import IDLE_S, IdleHolders
from gpuconsole.services.alarms import Alarm
from gpuconsole.services.alarmsigns import notification
from gpuconsole.services.containers import ContainerView
from tests.rig.tmux import Tmux
from tests.tui.in_tmux import wait

GIB = 2**30
ALARM = Alarm("process 7/50/GPU-0", "Process 7 of mei on GPU 0", MemoryState.CRITICAL, "grew; $(touch x) `y` full soon",
              100.0, subject=Subject.PROCESS, gpu=0, pid=7, eta_s=41.6)  # fmt: skip


# --- signs ---


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, True),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, True),
        ({"TERM": "foot-extra"}, True),
        ({"TERM": "xterm-ghostty"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "screen", "STY": "1.a", "LC_TERMINAL": "iTerm2"}, False),
        ({}, False),
    ],
)
def test_only_terminals_that_are_known_to_take_it_get_the_sign(environment: dict[str, str], shown: bool) -> None:
    sign = notification("full\x07 soon\x1b]0;x\x1b\\ é", environment)
    assert bool(sign) is shown
    if shown:
        assert sign == "\x1b]9;gpuconsole: full soon é\x1b\\"


@pytest.mark.parametrize("allowed", ["on", "off"])
@pytest.mark.parametrize("terminal", ["kitty(0.32.0)", "", "XTerm(379)"])
def test_through_tmux_it_goes_only_where_tmux_lets_it_and_every_terminal_is_known(
    tmux: Tmux, monkeypatch: pytest.MonkeyPatch, allowed: str, terminal: str
) -> None:
    tmux.run("set-option", "-g", "allow-passthrough", allowed)
    script = "import os; from gpuconsole.services.alarmsigns import notification as n; input(); " \
             "print(n('full soon', os.environ), end='done', flush=True); input()"  # fmt: skip
    pane = tmux.session([sys.executable, "-c", script], env={"PYTHONPATH": str(Path(__file__).parents[2])})
    client = tmux.attach(pane)
    client.wait_for("\x1b[>q")  # tmux asks the terminal what it is
    if terminal:
        client.send(f"\x1bP>|{terminal}\x1b\\")
        wait(lambda: terminal[:4] in tmux.run("list-clients", "-F", "#{client_termtype}"), what="tmux knows it")
    pane.keys("Enter")
    shown = pane.wait_for("done")
    assert shown.strip() == "done", "nothing of it is text on the screen"
    assert ("\x1b]9;gpuconsole: full soon\x1b\\" in client.text) is (allowed == "on" and "kitty" in terminal)


# --- the user's command ---


class Ground:
    """Files of one test."""

    def __init__(self, folder: Path) -> None:
        self.out, self.config = folder / "out", folder / "config.toml"
        self.config.write_text("")
        self.file = AlarmFile(folder / "alarms.json")
        self.lock = folder / "lock"

    def run(self, *command: str, alarm: Alarm = ALARM, timeout_s: float = 10.0) -> None:
        run_command(command, alarm, self.file, config=self.config, lock=self.lock, timeout_s=timeout_s)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_the_command_gets_the_text_as_one_argument_and_its_parts_in_the_environment(ground: Ground) -> None:
    code = (
        "import json, os, sys; print('noise'); print('noise', file=sys.stderr)\n"
        "told = {k: v for k, v in os.environ.items() if k.startswith('GPUCONSOLE_ALARM_')}\n"
        "json.dump([sys.argv[2:], told, sys.stdin.read()], open(sys.argv[1], 'w'))"
    )
    ground.run(sys.executable, "-c", code, str(ground.out))
    arguments, told, given = json.loads(ground.out.read_text())
    assert arguments == [ALARM.sentence], "no shell has read it"
    assert told == {
        "GPUCONSOLE_ALARM_TEXT": ALARM.sentence, "GPUCONSOLE_ALARM_STATE": "critical", "GPUCONSOLE_ALARM_GPU": "0",
        "GPUCONSOLE_ALARM_SUBJECT": "process", "GPUCONSOLE_ALARM_NAME": ALARM.name, "GPUCONSOLE_ALARM_PID": "7",
        "GPUCONSOLE_ALARM_ETA_S": "42",
    }  # fmt: skip
    assert given == ""
    ground.out.unlink()
    ground.run(sys.executable, "-c", code, str(ground.out))
    assert not ground.out.exists(), "once for an alarm, whichever console comes first"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/no/such/program",), "cannot be run: No such file"),
        ((".",), "cannot be run"),
        (("sh", "-c", "exit 3"), "The alarm command sh ended with exit code 3."),
        (("sh", "-c", "kill -9 $$"), "ended by signal 9"),
    ],
)
def test_a_command_that_fails_says_how(ground: Ground, command: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadFile) as caught:
        ground.run(*command)
    assert said in caught.value.message
    assert "[alarms] command" in (caught.value.hint or "")


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(ground: Ground) -> None:
    with pytest.raises(BadFile, match=r"took longer than 0.5 s"):
        ground.run("sh", "-c", f"sleep 1000 & echo $! > {ground.out}; wait", timeout_s=0.5)
    pid = int(ground.out.read_text())
    wait(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text(), what="its end")


def test_two_commands_never_run_at_once(ground: Ground) -> None:
    script = f"echo begin >> {ground.out}; sleep 0.3; echo end >> {ground.out}"
    alarms = [Alarm(f"host {number}", "x", MemoryState.CRITICAL, "y", 0.0) for number in range(4)]
    threads = [threading.Thread(target=lambda each=each: ground.run("sh", "-c", script, alarm=each)) for each in alarms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ground.out.read_text().split() == ["begin", "end"] * 4


def test_a_file_that_others_may_write_runs_nothing(ground: Ground) -> None:
    ground.config.chmod(0o646)
    with pytest.raises(BadFile, match="others may write it"):
        ground.run("touch", str(ground.out))
    if os.geteuid() == 0:
        ground.config.chmod(0o600)
        os.chown(ground.config, 12345, -1)
        with pytest.raises(BadFile, match="not yours"):
            ground.run("touch", str(ground.out))
    assert not ground.out.exists()


# --- samples that are saved ---


def sample(t: float, *, gpus: int = 1, processes: int = 2) -> tuple[GpuSnapshot, MemorySample]:
    used = int(20 * GIB + t * 1000)
    listed = tuple(ProcessMemory(pid, used // max(1, processes), "secretname") for pid in range(processes))
    read = tuple(GpuMemory(index, 140 * GIB, used, 140 * GIB - used, 97.0, listed) for index in range(gpus))
    pools = (
        PoolMemory(Subject.HOST, "host", "this machine's memory", 5, 10),
        PoolMemory(Subject.SHM, "host", "/dev/shm", None, 10),
        PoolMemory(Subject.CONTAINER, "ab" * 32, "secretname", 7, 9),
        PoolMemory(Subject.SHM, "ab" * 32, "/dev/shm of secretname", 3, 4),
    )
    seen = tuple(
        Gpu(index=index, uuid=f"12345678-1234-1234-1234-12345678901{index}", name="H200", memory_total_bytes=140 * GIB,
            memory_used_bytes=used, memory_free_bytes=140 * GIB - used, utilization_pct=97)
        for index in range(gpus)
    )  # fmt: skip
    return GpuSnapshot(1e9 + t, gpus=seen), MemorySample(round(t, 3), read, pools)


def test_what_is_saved_reads_as_it_was_read_and_holds_no_names(tmp_path: Path) -> None:
    evidence = Evidence()
    given = [sample(100.0 + second) for second in range(150)]
    for snapshot, memory in given:
        evidence.add(snapshot, memory)
        evidence.add(snapshot, memory)  # the same look twice counts once
    path = save(evidence.copy(), ALARM, given[-1][0], folder=tmp_path / "alarms")
    read = list(memory_samples(path))
    assert [each.t for each in read] == [float(second) for second in range(150)]
    for (_, memory), back in zip(given, read, strict=True):
        assert [(each.used_bytes, each.free_bytes, each.total_bytes) for each in back.gpus] == [
            (each.used_bytes, each.free_bytes, each.total_bytes) for each in memory.gpus
        ]
        assert [[process.pid for process in each.processes or ()] for each in back.gpus] == [[0, 1]]
        figures = {(pool.subject, pool.id): (pool.used_bytes, pool.limit_bytes) for pool in memory.pools}
        assert {(pool.subject, pool.id): (pool.used_bytes, pool.limit_bytes) for pool in back.pools} == figures
    lines = [line for _, line in read_recording(path)]
    text = json.dumps(lines)
    assert "secretname" not in text
    assert "mei" not in text
    assert "12345678-1234" not in text
    assert lines[-1] == {
        "type": "alarm", "t": 149.0, "judged": "wrong", "subject": "process", "gpu": 0, "pid": 7, "container": None,
        "state": "critical", "eta_s": 41.6, "told_at": 100.0,
    }  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    other = save(evidence.copy(), ALARM, given[-1][0], folder=tmp_path / "alarms")
    assert other != path, "a second one replaces nothing"


def test_half_an_hour_is_kept_and_no_more_than_is_bearable() -> None:
    evidence = Evidence()
    for second in range(0, 3 * int(SPAN_S), 3):
        evidence.add(*sample(float(second), gpus=2, processes=3))
    times = [line["t"] for line in evidence.copy().lines()]
    assert times[-1] == 3 * SPAN_S - 3
    assert times[-1] - times[0] >= SPAN_S
    assert times[-1] - times[0] <= SPAN_S + 3 * 60
    assert evidence.packed_bytes < 2**20


def test_what_cannot_be_saved_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="Nothing was seen"):
        save(Evidence().copy(), ALARM, GpuSnapshot(1.0), folder=tmp_path)
    evidence = Evidence()
    snapshot, memory = sample(1.0)
    evidence.add(snapshot, memory)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="cannot be saved"):
        save(evidence.copy(), ALARM, snapshot, folder=tmp_path / "file" / "alarms")


# --- held for nothing ---


def held(
    at: float, *, busy: int | None = 0, started: float = 50.0, problem: str | None = None, **more: Any
) -> HostView:
    gpu = Gpu(index=0, uuid="GPU-0", name="H200", utilization_pct=busy, status=more.pop("status", GpuStatus.OK))
    given: dict[str, Any] = {"memory_bytes": 12 * GIB, "user": "mei", "started_at": started} | more
    holder = Holder(pid=7, gpu_index=0, gpu_uuid="GPU-0", **given)
    return HostView(GpuSnapshot(at, gpus=(gpu,), problem=problem), gpus=(GpuView(gpu, (holder,)),))


def test_who_holds_a_gpu_for_an_hour_and_computes_nothing_is_noted() -> None:
    idle = IdleHolders()
    for at in range(0, int(IDLE_S), 60):
        assert idle.looked(held(float(at))) == ()
    (note,) = idle.looked(held(IDLE_S))
    assert note.name == "Process 7 of mei on GPU 0"
    assert note.sentence(IDLE_S + 300) == "it holds 12 GiB, and nothing was computed on GPU 0 for 65 min"
    assert idle.looked(held(IDLE_S + 60, busy=40)) == ()
    assert idle.looked(held(IDLE_S + 120)) == ()


@pytest.mark.parametrize(
    "between",
    [{"busy": 3}, {"started": 900.0}, {"busy": None}, {"status": GpuStatus.LOST}, {"kind": ProcessKind.GRAPHICS}],
)
def test_an_hour_begins_anew_with_whatever_is_computed_or_not_known(between: dict[str, Any]) -> None:
    idle = IdleHolders()
    for at in range(0, int(IDLE_S) - 60, 60):
        idle.looked(held(float(at)))
    idle.looked(held(IDLE_S - 60, **between))
    assert idle.looked(held(IDLE_S)) == ()


def test_what_nobody_looked_at_was_not_idle() -> None:
    idle = IdleHolders()
    idle.looked(held(0.0))
    assert idle.looked(held(2 * IDLE_S)) == ()
    idle.looked(held(2 * IDLE_S + 1, problem="the driver does not answer"))
    assert idle.looked(held(1.0)) == (), "nor while the clock stepped back"


# --- containers that end ---


def listed(**changes: Any) -> ContainerView:
    given: dict[str, Any] = {"id": "ab" * 32, "name": "train", "image": "a", "image_id": "sha256:1",
             "state": ContainerState.RUNNING, "started_at": 1.0} | changes  # fmt: skip
    return ContainerView(Container(**given))


EXITED: dict[str, Any] = {"state": ContainerState.EXITED, "finished_at": 9.0}


@pytest.mark.parametrize(
    ("end", "news"),
    [
        ({"exit_code": 137}, True),
        ({"exit_code": 137, "oom_killed": True}, True),
        ({"exit_code": 1, "oom_killed": True}, True),
        ({"exit_code": 0, "oom_killed": True}, False),
        ({"exit_code": 1}, False),
        ({"exit_code": 143}, False),
    ],
)
def test_a_container_that_is_killed_is_news_once(end: dict[str, Any], news: bool) -> None:
    watch = DeathWatch()
    assert watch.listed((listed(**EXITED, **end),)) == (), "what had ended before is none"
    assert watch.listed((listed(),)) == ()
    assert bool(watch.listed((listed(**EXITED, **end),))) is news
    assert watch.listed((listed(**EXITED, **end),)) == ()


@pytest.mark.parametrize("first", ["process", "container"])
def test_a_process_that_failed_makes_the_end_of_its_container_news_whichever_is_seen_first(first: str) -> None:
    watch = DeathWatch()
    watch.listed((listed(),))
    ended = (listed(**EXITED, exit_code=1),)
    if first == "process":
        assert watch.suspect("ab" * 32) is None
        assert len(watch.listed(ended)) == 1
    else:
        assert watch.listed(ended) == ()
        assert watch.suspect("ab" * 32) == ended[0].container
        assert watch.suspect("ab" * 32) is None


def test_a_container_that_goes_on_after_a_process_was_killed_for_its_limit_is_told_of_once() -> None:
    watch = DeathWatch()
    watch.listed((listed(),))
    for at in range(10):
        watch.listed((listed(oom_killed=True),))
        assert bool(watch.hurt(float(at))) is (at == 3)
    watch.listed((listed(started_at=50.0),))
    watch.listed((listed(started_at=50.0, oom_killed=True),))
    watch.hurt(20.0)
    assert watch.listed((listed(**EXITED, exit_code=137, oom_killed=True),)), "it ended with it: that is told instead"
    assert watch.hurt(30.0) == ()


def test_what_had_reached_its_limit_before_is_no_news() -> None:
    watch = DeathWatch()
    for at in (1.0, 9.0):
        watch.listed((listed(oom_killed=True),))
        assert watch.hurt(at) == ()


def anything(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type of records, which tell Hypothesis nothing of themselves."""
    if hasattr(kind, "__members__"):
        return st.sampled_from(list(kind))
    if isinstance(kind, type) and records.is_dataclass(kind):
        return st.builds(kind, **{name: anything(hint) for name, hint in written_types(kind).items()})
    inside = [anything(each) for each in typing.get_args(kind) if each not in (None, type(None), ...)]
    if typing.get_origin(kind) is types.UnionType:
        return st.one_of(st.none(), *inside)
    if typing.get_origin(kind) is tuple and ... in typing.get_args(kind):
        return st.lists(*inside, max_size=2).map(tuple)
    return st.from_type(kind)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(anything(GpuSnapshot), anything(MemorySample)), max_size=3))
def test_what_is_packed_is_what_comes_out_whatever_it_is(looks: list[tuple[GpuSnapshot, MemorySample]]) -> None:
    out = _unpacked(zlib.compress(_pickled(looks)))
    assert repr(out) == repr(looks)
    assert [type(each) for look in out for each in look] == [GpuSnapshot, MemorySample] * len(looks)

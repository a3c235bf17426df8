"""What is told of processes: real ones, started by the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.host import processes
from gpuconsole.host.processes import FIELDS, ProcessFacts, ProcessTable, _stat

A = "a1" * 32
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def starter(command: list[str] | list[bytes], **options: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, **options))
        return started[-1]

    yield starter
    for process in started:
        process.kill()
        process.wait()


def look_at(pid: int, table: ProcessTable | None = None) -> ProcessFacts:
    return (table or ProcessTable()).look([pid], listed_at=time.time())[pid]


def test_a_process_of_ours() -> None:
    facts = look_at(os.getpid())
    assert facts.uid == os.getuid()
    assert facts.user == pwd.getpwuid(os.getuid()).pw_name
    first = Path("/proc/self/cmdline").read_bytes().split(b"\0")[0].decode()
    assert (facts.command or "").startswith(first)
    assert facts.host_memory_bytes is not None
    assert 2**20 < facts.host_memory_bytes < 2**40
    assert facts.started_at is not None
    assert time.time() - 86400 < facts.started_at <= time.time() + 1
    assert facts.unknown == {"cpu_pct": processes.FIRST_LOOK}


def test_cpu_use_is_what_happened_since_the_last_look(start: Start) -> None:
    busy = start([sys.executable, "-c", "while True: pass"])
    idle = start(["sleep", "600"])
    table = ProcessTable()
    pids = [busy.pid, idle.pid]
    first = table.look(pids, listed_at=time.time())
    assert [first[pid].cpu_pct for pid in pids] == [None, None]
    used = 0.0
    deadline = time.monotonic() + 60
    while used < 5 and time.monotonic() < deadline:
        time.sleep(0.3)
        facts = table.look(pids, listed_at=time.time())
        used = facts[busy.pid].cpu_pct or 0.0
    assert used >= 5
    assert used <= 200
    assert facts[idle.pid].cpu_pct == 0
    assert "cpu_pct" not in facts[idle.pid].unknown


def test_a_process_that_ended_before_it_was_looked_at(start: Start) -> None:
    """The pid exits between the driver's list and the read of /proc: no crash, a reason, the next look is normal."""
    ended = start(["true"])
    ended.wait()
    table = ProcessTable()
    found = table.look([ended.pid, os.getpid()], listed_at=time.time())
    assert found[ended.pid] == ProcessFacts(ended.pid, unknown=dict.fromkeys(FIELDS, processes.ENDED))
    assert found[os.getpid()].command is not None


def test_processes_that_come_and_go_while_they_are_read(start: Start) -> None:
    table = ProcessTable()
    for _ in range(60):
        brief = start(["true"])
        facts = look_at(brief.pid, table)
        assert facts.command is not None or facts.unknown["command"]


def test_a_zombie_is_called_what_it_is(start: Start) -> None:
    zombie = start(["true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    facts = look_at(zombie.pid)
    assert facts.command == "[true] <defunct>"
    assert facts.host_memory_bytes == 0
    assert facts.uid == os.getuid()


def test_a_kernel_thread_has_its_name(tmp_path: Path) -> None:
    if not Path("/proc/2/stat").exists():
        pytest.skip("no kernel threads are visible here")
    assert look_at(2).command == "[kthreadd]"


HOSTILE = {
    "escape codes": ("\x1b[2J\x1b]0;pwned\x07evil\x9b31m".encode(), "evil"),
    "newlines": (b"first\nsecond\r\nthird", "first second third"),
    "bytes that are no text": (b"caf\xe9", "caf\ufffd"),
    "markup": (b"[red]x[/] [@click=app.quit]", "[red]x[/] [@click=app.quit]"),
    "a name written backwards": ("safe\u202egnp.exe".encode(), "safegnp.exe"),
    "an empty argument": (b"", ""),
}


@pytest.mark.parametrize(("argument", "shown"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_command_lines_are_one_harmless_line(start: Start, argument: bytes, shown: str) -> None:
    script = "import sys; sys.stdin.read()"
    process = start([sys.executable.encode(), b"-c", script.encode(), argument], stdin=subprocess.PIPE)
    wait_until_named(process.pid, b"-c")
    command = look_at(process.pid).command
    assert command == f"{sys.executable} -c {script} {shown}".strip()


def wait_until_named(pid: int, part: bytes) -> None:
    """Wait until the child has become the program it was started as."""
    deadline = time.monotonic() + 20
    while part not in Path(f"/proc/{pid}/cmdline").read_bytes() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_very_long_command_is_cut(start: Start) -> None:
    process = start(["sleep", "600", *(["x" * 4000] * 30)], stderr=subprocess.DEVNULL)
    facts = look_at(process.pid)
    assert facts.command is None or len(facts.command) <= 4096


@pytest.mark.parametrize("name", [b"a) R 1 1", b"(((", b"x y\tz", b"\xff\xfe", b"1) Z (2"])
def test_a_process_name_with_parentheses_and_blanks(name: bytes) -> None:
    fields = " ".join(["S", *map(str, range(4, 53))]).encode()
    stat = _stat(b"77 (" + name + b") " + fields)
    assert (stat.state, stat.cpu_ticks, stat.start_ticks, stat.resident_pages) == ("S", 14 + 15, 22, 24)


def test_a_user_that_was_deleted_leaves_the_number() -> None:
    """User lookup fails: the id is shown, nothing breaks."""
    if os.getuid() != 0:
        pytest.skip("only root can start a process as a user that does not exist")
    process = subprocess.Popen(["sleep", "600"], user=54321)
    try:
        facts = look_at(process.pid)
    finally:
        process.kill()
        process.wait()
    assert facts.user is None
    assert facts.uid == 54321
    assert "54321" in facts.unknown["user"]


def test_a_pid_that_belongs_to_a_newer_process_is_not_mistaken_for_the_old_one(start: Start) -> None:
    """A pid reused within a tick: what began after the driver listed it is not what the driver listed."""
    listed_at = time.time() - 5
    process = start(["sleep", "600"])
    found = ProcessTable().look([process.pid], listed_at=listed_at)[process.pid]
    assert found.command is None
    assert found.container_id is None
    assert found.unknown["command"] == processes.REUSED


def test_cpu_use_is_not_carried_over_to_a_reused_pid(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, start_ticks=1, cpu_ticks=500)
    table = ProcessTable(proc)
    assert look_at(7, table).cpu_pct is None
    fake_proc(tmp_path, start_ticks=9, cpu_ticks=2)
    assert look_at(7, table).cpu_pct is None
    fake_proc(tmp_path, start_ticks=9, cpu_ticks=2)
    assert look_at(7, table).cpu_pct == 0


def fake_proc(root: Path, *, start_ticks: int = 1, cpu_ticks: int = 0, cgroup: str = "0::/\n") -> Path:
    """A process file system with process 7 in it."""
    folder = root / "7"
    folder.mkdir(exist_ok=True)
    fields = [str(number) for number in range(4, 53)]
    fields[10], fields[11], fields[18] = str(cpu_ticks), "0", str(start_ticks)
    (folder / "stat").write_text(f"7 (train) S {' '.join(fields)}\n")
    (folder / "status").write_text("Name:\ttrain\nUid:\t0\t0\t0\t0\n")
    (folder / "cmdline").write_bytes(b"python\0train.py\0")
    (folder / "cgroup").write_text(cgroup)
    return root


def test_the_container_comes_with_the_process(tmp_path: Path) -> None:
    facts = look_at(7, ProcessTable(fake_proc(tmp_path, cgroup=f"0::/docker/{A}\n")))
    assert facts.container_id == A
    assert facts.command == "python train.py"


@pytest.mark.parametrize("file", ["stat", "status"])
@pytest.mark.parametrize("content", [b"", b"garbage", b"7 (x) S 1 2 3\n", b"\xff" * 100])
def test_a_file_that_cannot_be_understood_is_a_reason(tmp_path: Path, file: str, content: bytes) -> None:
    proc = fake_proc(tmp_path)
    (proc / "7" / file).write_bytes(content)
    assert "/proc cannot be read" in look_at(7, ProcessTable(proc)).unknown["command"]


def test_proc_that_hides_processes_is_named_as_a_possible_reason(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mounts").write_text("proc /proc proc rw,nosuid,hidepid=invisible 0 0\n")
    assert look_at(7, ProcessTable(tmp_path)).unknown["user"] == processes.ENDED_OR_HIDDEN
    (tmp_path / "self/mounts").write_text("proc /proc proc rw,hidepid=0 0 0\nsysfs /sys sysfs rw 0 0\nshort\n")
    assert look_at(7, ProcessTable(tmp_path)).unknown["user"] == processes.ENDED


def test_in_a_pid_namespace_of_our_own_the_hosts_pids_mean_nothing() -> None:
    """The tool itself runs in a container without --pid=host: it says so, and names no wrong process."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("unshare is not installed")
    code = (
        "import os, time; from gpuconsole.host.processes import ProcessTable; t = ProcessTable();"
        "f = t.look([os.getpid()], listed_at=time.time())[os.getpid()]; print(t.blind, f.command, f.unknown['command'])"
    )
    done = subprocess.run(
        [unshare, "--pid", "--fork", "--mount-proc", sys.executable, "-c", code],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode != 0 and "unshare" in done.stderr:
        pytest.skip(f"no pid namespace can be made here: {done.stderr.strip()}")
    assert done.stdout.startswith("True None gpuconsole runs in a container")
    assert "--pid=host" in done.stdout


def test_on_the_host_itself_nothing_is_hidden() -> None:
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":
        pytest.skip("the tests themselves run in a pid namespace of their own")
    assert ProcessTable().blind is False


def test_processes_that_are_gone_are_forgotten(start: Start) -> None:
    table = ProcessTable()
    process = start(["sleep", "600"])
    look_at(process.pid, table)
    table.look([], listed_at=time.time())
    assert look_at(process.pid, table).cpu_pct is None
    process.send_signal(signal.SIGTERM)


def test_processes_that_a_real_proc_hides_from_this_user_are_not_said_to_have_ended(
    start: Start,
) -> None:
    """hidepid=2: another user's process is there, and looks as if it were not."""
    unshare = shutil.which("unshare")
    if unshare is None or os.getuid() != 0:
        pytest.skip("it takes root and unshare to mount a /proc that hides")
    theirs = start(["sleep", "600"])
    code = (
        "import os, sys, time; from pathlib import Path; from gpuconsole.host.processes import ProcessTable;"
        "table = ProcessTable(Path('/mnt')); os.setgroups([]); os.setgid(54321); os.setuid(54321);"
        "pid = int(sys.argv[1]);"
        "found = table.look([pid, os.getpid()], listed_at=time.time());"
        "print(found[pid].unknown['command']); print(found[os.getpid()].uid, found[os.getpid()].state)"
    )
    # Below a folder that everybody may enter, and seen by nobody outside.
    mounted = f'mount -t proc -o hidepid=2 proc /mnt && exec {sys.executable} -c "$0" {theirs.pid}'
    done = subprocess.run(
        [unshare, "--mount", "sh", "-c", mounted, code], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0 and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"no such /proc can be mounted here: {done.stderr.strip()}")
    assert done.stdout.splitlines() == [processes.ENDED_OR_HIDDEN, "54321 alive"], done.stderr


@pytest.mark.parametrize(("letter", "state"), [("S", "alive"), ("R", "alive"), ("D", "stuck"), ("T", "stopped"),
                                               ("t", "stopped"), ("Z", "defunct"), ("X", "defunct")])  # fmt: skip
def test_what_the_kernel_says_a_process_does(tmp_path: Path, letter: str, state: str) -> None:
    proc = fake_proc(tmp_path)
    stat = proc / "7/stat"
    stat.write_text(stat.read_text().replace(") S ", f") {letter} "))
    assert look_at(7, ProcessTable(proc)).state == state

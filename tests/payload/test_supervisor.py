"""The supervisor: what hangs, dies or shouts costs one check, and nothing is left when it ends."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.payload.driving import Listener, Payload, of_type, result

TRAP = """
import sys
class Trap:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            {action}
sys.meta_path.insert(0, Trap())
"""
NUMERICS = "gpuconsole.probes.payload.checks.numerics"
WORKSPACE = "gpuconsole.probes.payload.checks.workspace"
SHM = "gpuconsole.probes.payload.checks.shm"


def trap(payload: Payload, module: str, action: str) -> None:
    """Have ``action`` happen when the worker comes to the check in ``module``."""
    payload.module("sitecustomize", TRAP.format(module=module, action=action))


def processes_of(payload: Payload) -> list[psutil.Process]:
    """Processes that run from the payload's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(payload.folder) in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_a_run_says_hello_and_goodbye_and_removes_its_folder(payload: Payload) -> None:
    records = payload.run("check.workspace", "check.environment")
    assert [record["t"] for record in records][:2] == ["hello", "worker"]
    assert records[0]["plan"] == ["check.workspace", "check.environment"]
    assert records[0]["schema"] == 1
    assert records[0]["pgid"] == records[0]["pid"]
    assert records[-1] == records[-1] | {"t": "bye", "status": "ok", "ran": 2, "left": 0}
    assert all(record["run"] == "a-run" for record in records)
    assert not payload.folder.exists()
    assert not payload.stray
    assert payload.code == 0


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGBUS)", "SIGBUS"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import os; os._exit(7)", "exit code 7"),
        ("import os; os._exit(0)", "exit code 0"),
    ],
)
def test_a_crash_fails_its_check_and_the_next_still_runs(payload: Payload, action: str, why: str) -> None:
    trap(payload, WORKSPACE, action)
    records = payload.run("check.workspace", "check.environment")
    crashed = result(records, "check.workspace")
    assert crashed["status"] == "fail"
    assert why in crashed["why"]
    assert crashed["fix"]
    assert result(records, "check.environment")["status"] == "ok"
    assert len(of_type(records, "worker")) == 2
    assert not payload.folder.exists()


def test_after_a_crash_torch_is_there_again_for_the_rest(payload: Payload) -> None:
    trap(payload, SHM, "import os; os.abort()")
    records = payload.run("check.torch", "check.shm", "check.numerics")
    assert "SIGABRT" in result(records, "check.shm")["why"]
    assert result(records, "check.numerics")["status"] == "ok"
    assert len(of_type(records, "check")) == 3


def test_an_exception_in_a_check_is_its_failure(payload: Payload) -> None:
    trap(payload, WORKSPACE, "raise RuntimeError('no such luck')")
    records = payload.run("check.workspace", "check.environment")
    assert "RuntimeError: no such luck" in result(records, "check.workspace")["why"]
    assert len(of_type(records, "worker")) == 1


def test_a_check_that_hangs_is_ended_at_its_deadline(payload: Payload) -> None:
    """The environment check has ten seconds; the run as a whole has more."""
    trap(payload, "gpuconsole.probes.payload.checks.traps", "import time; time.sleep(600)")
    records = payload.run("check.environment", "check.workspace")
    assert result(records, "check.environment")["status"] == "fail"
    assert "10 s" in result(records, "check.environment")["why"]
    assert result(records, "check.workspace")["status"] in ("ok", "warn")
    assert records[-1]["status"] == "ok"
    assert not processes_of(payload)


def test_the_run_as_a_whole_has_a_deadline(payload: Payload) -> None:
    trap(payload, WORKSPACE, "import time; time.sleep(600)")
    records = payload.run("check.workspace", "check.environment", deadline_s=1)
    assert "the 1 s for the whole check were over" in result(records, "check.workspace")["why"]
    assert not [record for record in of_type(records, "check") if record["id"] == "check.environment"]
    assert records[-1] == records[-1] | {"t": "bye", "status": "timeout", "left": 1}
    assert payload.code == 3
    assert not processes_of(payload)
    assert not payload.folder.exists()


def test_a_flood_of_output_is_kept_short_and_does_not_hold_the_checks_up(payload: Payload) -> None:
    payload.module(
        "sitecustomize",
        "import sys\nfor i in range(20000):\n    print('line', i, 'x' * 100)\nsys.stderr.write('y' * 3_000_000)\n",
    )
    records = payload.run("check.environment")
    assert result(records, "check.environment")["status"] == "ok"
    notes = of_type(records, "note")
    assert len(notes) <= 42
    assert all(len(note["text"]) <= 400 for note in notes)
    assert "left out" in notes[-1]["text"]
    assert not payload.stray


def test_a_process_that_outlives_the_worker_and_writes_on_is_ended_too(payload: Payload) -> None:
    trap(
        payload,
        WORKSPACE,
        "import subprocess; subprocess.Popen(['sh', '-c', 'while :; do echo noise; done # ' + sys.argv[0]])",
    )
    records = payload.run("check.workspace")
    assert records[-1]["status"] == "ok"
    assert not processes_of(payload)


@pytest.mark.parametrize("how", ["input", "term", "hangup"])
def test_it_ends_and_cleans_up_when_it_is_told_to_or_its_host_is_gone(payload: Payload, how: str) -> None:
    trap(payload, WORKSPACE, "import subprocess; subprocess.call(['sleep', '600'])")
    process = payload.start("check.workspace")
    listener = Listener(process)
    listener.wait_for("progress", id="check.workspace")
    assert process.stdin is not None
    if how == "input":
        process.stdin.close()
    else:
        process.send_signal(signal.SIGTERM if how == "term" else signal.SIGHUP)
    assert listener.wait_for("bye")["status"] == "cancelled"
    assert listener.end() == 3
    assert not payload.folder.exists()
    assert not processes_of(payload)


def test_a_reader_that_goes_away_ends_it_quietly(payload: Payload) -> None:
    process = payload.start("check.torch", "check.workspace", "check.environment")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 1
    assert not payload.folder.exists()
    assert not processes_of(payload)


def test_a_killed_supervisor_takes_its_worker_along(payload: Payload) -> None:
    trap(payload, WORKSPACE, "import time; time.sleep(600)")
    process = payload.start("check.workspace")
    group = Listener(process).wait_for("worker")["pgid"]
    deadline = time.monotonic() + 30
    while not _sleeps(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    while psutil.pid_exists(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(group) or psutil.Process(group).status() == psutil.STATUS_ZOMBIE


def _sleeps(pid: int) -> bool:
    """The worker has come far enough to have asked for its parent's death signal."""
    try:
        return any("payload.pyz" in word for word in psutil.Process(pid).cmdline()) and os.getpgid(pid) == pid
    except (psutil.Error, ProcessLookupError):
        return False


def test_temporary_files_and_byte_code_of_a_check_go_with_the_folder(payload: Payload) -> None:
    payload.module("lonely", "VALUE = 1\n")
    trap(payload, WORKSPACE, "import tempfile, lonely; print(tempfile.mkdtemp())")
    records = payload.run("check.workspace")
    made = Path(of_type(records, "note")[0]["text"])
    assert made.parent == payload.folder
    assert not made.exists()
    assert not list(payload.modules.glob("__pycache__/lonely*"))


def test_an_unknown_check_is_left_out(payload: Payload) -> None:
    records = payload.run("check.nonsense", "check.environment")
    assert records[0]["plan"] == ["check.environment"]
    assert records[-1]["status"] == "ok"


def test_what_comes_by_its_input_is_not_read_as_the_end(payload: Payload) -> None:
    process = payload.start("check.environment")
    assert process.stdin is not None
    process.stdin.write(b"noise that nobody asked for\n" * 10)
    process.stdin.flush()
    listener = Listener(process)
    assert listener.wait_for("bye")["status"] == "ok"
    assert listener.end() == 0

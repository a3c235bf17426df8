"""Real processes are ended or left alone: one's own, another user's, one that is gone, one that has its number now."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import psutil
import pytest

from gpuconsole.core.errors import ConsoleError, NotFound, Refused
from gpuconsole.core.users import user_name
from gpuconsole.host.model import Holder
from gpuconsole.services.killing import SOMEBODY, end_process, someone_elses_process

OTHER_UID = 54321
Start = Callable[..., subprocess.Popen[bytes]]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of others")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts processes that wait, of the caller or of another user; none outlives the test."""
    monkeypatch.delenv("SUDO_USER", raising=False)
    started: list[subprocess.Popen[bytes]] = []

    def begin(uid: int | None = None) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "600"], user=uid))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def holder(pid: int, **changes: object) -> Holder:
    process = psutil.Process(pid)
    uid = process.uids().real
    seen = Holder(pid=pid, gpu_index=0, gpu_uuid=None, memory_bytes=None, user=user_name(uid), uid=uid,
                  started_at=process.create_time())  # fmt: skip
    return replace(seen, **changes)  # type: ignore[arg-type]


def ended_by(process: subprocess.Popen[bytes]) -> int:
    return -process.wait(timeout=60)


def test_ones_own_is_ended(start: Start) -> None:
    process = start()
    assert someone_elses_process(holder(process.pid)) is None
    assert str(process.pid) in end_process(holder(process.pid))
    assert ended_by(process) == signal.SIGTERM


def test_ones_own_that_was_not_known_to_be_is_asked_for_and_ended(start: Start) -> None:
    process = start()
    seen = holder(process.pid, user=None, uid=None)
    assert someone_elses_process(seen) == SOMEBODY
    end_process(seen)
    assert ended_by(process) == signal.SIGTERM


@as_root
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_another_users_is_ended_only_when_that_is_meant(start: Start, known: bool) -> None:
    process = start(OTHER_UID)
    seen = holder(process.pid) if known else holder(process.pid, user=None, uid=None)
    assert someone_elses_process(seen) == (str(OTHER_UID) if known else SOMEBODY)
    with pytest.raises(Refused, match=f"belongs to {OTHER_UID}"):
        end_process(seen)
    assert process.poll() is None
    end_process(seen, others=True)
    assert ended_by(process) == signal.SIGTERM


@as_root
def test_what_was_seen_as_ones_own_and_is_anothers_stays(start: Start) -> None:
    process = start(OTHER_UID)
    with pytest.raises(Refused, match=f"belongs to {OTHER_UID}"):
        end_process(holder(process.pid, user=user_name(os.getuid()), uid=os.getuid()))
    assert process.poll() is None


@as_root
def test_behind_sudo_the_superusers_is_anothers(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start()
    monkeypatch.setenv("SUDO_USER", "ada")
    assert someone_elses_process(holder(process.pid)) == "root"
    with pytest.raises(Refused, match="belongs to root"):
        end_process(holder(process.pid))
    assert process.poll() is None


_AS_ANOTHER = """
import os, sys
from gpuconsole.core.errors import Refused
from gpuconsole.host.model import Holder
from gpuconsole.services.killing import end_process
import psutil
os.setgid({uid}); os.setuid({uid})
holder = Holder(pid={pid}, gpu_index=0, gpu_uuid=None, memory_bytes=None, user=None, started_at={started})
try:
    end_process(holder, others=sys.argv[1] == "meant")
except Refused as error:
    print(error.message)
"""


@as_root
@pytest.mark.parametrize(("meant", "words"), [("meant", "You may not end"), ("not", "belongs to")])
def test_who_is_not_root_cannot_end_anothers(start: Start, meant: str, words: str) -> None:
    process = start(OTHER_UID)
    code = _AS_ANOTHER.format(uid=OTHER_UID + 1, pid=process.pid, started=holder(process.pid).started_at)
    told = subprocess.run([sys.executable, "-c", code, meant], check=True, capture_output=True, text=True, timeout=60)
    assert words in told.stdout, told
    assert process.poll() is None


def test_one_that_has_its_number_by_now_stays(start: Start) -> None:
    process = start()
    for others in (False, True):
        with pytest.raises(Refused, match="another one by now"):
            end_process(holder(process.pid, started_at=psutil.Process(process.pid).create_time() - 60), others=others)
        with pytest.raises(Refused, match="not known"):
            end_process(holder(process.pid, started_at=None), others=others)
    assert process.poll() is None


def test_one_that_has_ended_is_said_to_have(start: Start) -> None:
    process = start()
    seen = holder(process.pid)
    process.kill()
    process.wait()
    for others in (False, True):
        with pytest.raises(NotFound, match="has ended"):
            end_process(seen, others=others)


def test_one_that_ends_in_the_last_moment_is_said_to_have(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start()

    def gone(descriptor: int, number: int) -> None:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))

    monkeypatch.setattr("signal.pidfd_send_signal", gone)
    with pytest.raises(NotFound, match="has ended"):
        end_process(holder(process.pid))


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EMFILE, errno.ENFILE, errno.EPERM, errno.EINVAL, errno.ENODEV])
def test_a_kernel_that_does_not_hold_on_to_processes_is_said(
    start: Start, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    process = start()
    seen = holder(process.pid)

    def refused(pid: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.pidfd_open", refused)
    with pytest.raises(ConsoleError, match=os.strerror(number)) as raised:
        end_process(seen)
    assert f"kill {process.pid}" in raised.value.hint
    assert process.poll() is None


def test_a_python_that_cannot_hold_on_to_processes_is_said(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start()
    seen = holder(process.pid)
    monkeypatch.delattr("os.pidfd_open")
    with pytest.raises(ConsoleError, match="cannot be held on to"):
        end_process(seen)
    assert process.poll() is None


@pytest.mark.parametrize("pid", [0, -1, 2**31, 2**70])
def test_what_is_no_number_of_a_process_ends_nothing(pid: int) -> None:
    seen = Holder(pid=pid, gpu_index=0, gpu_uuid=None, memory_bytes=None, started_at=1.0)
    with pytest.raises(ConsoleError):
        end_process(seen, others=True)

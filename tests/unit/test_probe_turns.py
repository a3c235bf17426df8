"""Checks and benchmarks of one GPU come one after another, whoever carries them out; locks that users share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuconsole.core.errors import Conflict
from gpuconsole.probes.records import AskedGpu, AskedGpus, Record, Waiting
from gpuconsole.services import hostlock, probeturn
from gpuconsole.services.askedgpus import ELSEWHERE
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.hostlock import FOLDER_VARIABLE, HostLock, shared_folder
from gpuconsole.services.probeturn import alone_on_gpus
from tests.tui.in_tmux import wait

ZERO, ONE = AskedGpu("GPU-0a", index=0), AskedGpu("GPU-1b", index=1)
SLICES = AskedGpu("MIG-0", index=0), AskedGpu("MIG-1", index=0)
MACHINE: Any = SimpleNamespace(
    gpus=SimpleNamespace(snapshot=lambda: SimpleNamespace(gpus=[SimpleNamespace(uuid=each.uuid, index=each.index)
                                                               for each in (ZERO, ONE)]))
)  # fmt: skip
HOLD = """
import sys, time
from tests.unit.test_probe_turns import MACHINE, ONE, ZERO, AskedGpus, Cancellation, alone_on_gpus
with alone_on_gpus(MACHINE, "the check of train", lambda: AskedGpus.of((ZERO,)), print, cancel=Cancellation()):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """Another gpuconsole, which checks GPU 0."""
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


class Other:
    """Wants a turn, on a thread of its own."""

    def __init__(self, asked: AskedGpus) -> None:
        self.told: list[Record] = []
        self.cancel = Cancellation()
        self.done = threading.Event()
        self.asked = 0
        self.failure: Exception | None = None
        self._asked = asked
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _ask(self) -> AskedGpus:
        self.asked += 1
        return self._asked

    def _work(self) -> None:
        try:
            with alone_on_gpus(MACHINE, "the bench of x", self._ask, self.told.append, cancel=self.cancel):
                self.done.set()
        except (Cancelled, Conflict) as error:
            self.failure = error

    def end(self) -> None:
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()


@pytest.mark.parametrize(
    "asked",
    [AskedGpus.of((ZERO,)), AskedGpus.of((ZERO, ONE)), AskedGpus.of((ONE, ZERO)), AskedGpus.unknown("who knows")],
    ids=["it", "it and another", "another and it", "nobody knows which"],
)
@pytest.mark.parametrize("end", ["kill", "cancel"])
def test_the_second_waits_and_says_for_whom(holder: subprocess.Popen[str], asked: AskedGpus, end: str) -> None:
    other = Other(asked)
    wait(lambda: other.told, what="it waits")
    assert other.told == [Waiting(f"waits for GPU 0: the check of train (process {holder.pid})")]
    assert not other.done.is_set()
    with alone_on_gpus(MACHINE, "y", lambda: AskedGpus.of((ONE,)), other.told.append, cancel=Cancellation()):
        pass  # who waits keeps nobody waiting
    if end == "cancel":
        other.cancel.request()
        other.end()
        assert isinstance(other.failure, Cancelled)
        assert "nothing was done" in other.failure.message
        assert not other.done.is_set()
        return
    holder.kill()
    holder.wait()
    other.end()
    assert other.done.is_set()
    assert other.asked == 2  # what is on the GPU is asked anew once it is its turn
    assert len(other.told) == 1


@pytest.mark.parametrize(
    "asked", [AskedGpus.of((ONE,)), AskedGpus.of(()), AskedGpus.of(SLICES), AskedGpus.unknown(ELSEWHERE)],
    ids=["another", "none", "instances", "of another machine"],
)  # fmt: skip
def test_who_has_other_gpus_or_none_does_not_wait(holder: subprocess.Popen[str], asked: AskedGpus) -> None:
    other = Other(asked)
    other.end()
    assert other.done.is_set()
    assert not other.told
    assert other.asked == 1


def test_whoever_waits_too_long_is_told(holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probeturn, "PATIENCE_S", 0.0)
    other = Other(AskedGpus.of((ZERO,)))
    other.end()
    assert isinstance(other.failure, Conflict)
    assert "the check of train" in other.failure.message


def test_a_name_from_outside_leads_nowhere_else(folder: Path) -> None:
    strange = AskedGpus.of((AskedGpu("../../x\n"), AskedGpu("GPU-" + "9" * 500)))
    with alone_on_gpus(MACHINE, "x", lambda: strange, print, cancel=Cancellation()):
        assert len([each for each in folder.iterdir() if each.suffix == ".lock"]) == 2
    assert not list(folder.parent.parent.glob("x*"))


def test_a_lock_that_was_swept_away_as_it_was_taken_holds_others_off_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"

    class Swept(HostLock):
        times = 0

        def _opened(self) -> int | None:
            descriptor = super()._opened()
            self.times += 1
            if self.times == 1:
                path.unlink()
            return descriptor

    lock, other = Swept(path), HostLock(path)
    assert lock.take() is True
    assert lock.times == 2
    assert other.take() is False
    lock.release()
    assert other.take() is True
    other.release()


def test_a_lock_in_use_is_not_old(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.touch()
    os.utime(path, (0, 0))
    lock = HostLock(path)
    assert lock.take() is True
    assert path.stat().st_mtime > 0
    lock.release()


def test_what_it_is_held_for_is_told_only_by_the_holders_own_note(folder: Path) -> None:
    lock, other = HostLock(folder / "a.lock"), HostLock(folder / "a.lock")
    assert other.holder() == ""
    other.note("nothing is ours")
    assert other.holder() == ""
    assert lock.take()
    lock.note("the bench of \x1b[31mtrain\n and more")
    assert other.take() is False
    assert other.holder() == f"the bench of train and more (process {os.getpid()})"
    (folder / f"a.lock.{os.geteuid() + 1}").write_text("1 a lie of another user")
    (folder / f"a.lock.{os.geteuid() + 2}").mkdir()
    (folder / "a.lock.x").symlink_to(folder / f"a.lock.{os.geteuid()}")
    assert "lie" not in other.holder()
    lock.release()
    assert other.holder() == ""
    assert other.take()
    other.release()


_AS_NOBODY = """
import os, sys
from pathlib import Path
from gpuconsole.services.hostlock import HostLock
os.setgid(65534); os.setuid(65534)  # from here on much of a developer's Python cannot be read any more
lock = HostLock(Path(sys.argv[1]))
print(lock.take(), flush=True)
lock.note("the check of theirs")
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_users_share_a_lock_whoever_made_its_file() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o1777)
        path = Path(name) / "a.lock"
        ours = HostLock(path)
        assert ours.take()
        ours.release()
        command = [sys.executable, "-c", _AS_NOBODY, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as theirs:
            assert theirs.stdout is not None
            assert theirs.stdout.readline() == "True\n"
            wait(lambda: ours.take() is False and ours.holder(), what="their note")
            assert ours.holder() == f"the check of theirs by nobody (process {theirs.pid})"
            theirs.kill()
        wait(ours.take, what="the end of their lock")
        ours.release()


def test_the_folder_is_one_for_all_whatever_a_shell_calls_its_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shared_folder() == tmp_path, "as it is named"
    monkeypatch.delenv(FOLDER_VARIABLE)
    found = set()
    for name in ("mine", "yours"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv("TMPDIR", str(tmp_path / name))
        monkeypatch.setattr(tempfile, "tempdir", None)
        found.add(shared_folder())
    assert found == {Path("/tmp")}
    monkeypatch.setattr(hostlock, "_OF_ALL", tmp_path)  # a folder that is its owner's alone
    tmp_path.chmod(0o700)
    assert shared_folder() == tmp_path / "yours"

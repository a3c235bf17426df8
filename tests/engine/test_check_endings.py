"""Checks inside containers that end before their time: by us, by a deadline, or by others; and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from gpuconsole.probes import catalog, conversation
from gpuconsole.probes.records import RunEnd
from gpuconsole.services.cancelling import Cancelled
from tests.engine.checking import FAIL, OK, SKIP, SLEEP, Background, Checked, result
from tests.rig.kinds import NEWEST, RUNTIMES
from tests.rig.owner import wait_until

pytestmark = [pytest.mark.engine(*RUNTIMES), pytest.mark.usefixtures("few_checks")]
OURS = (sys.executable, "-m", "tests.rig.fewchecks")


@pytest.mark.parametrize("moment", ["check.torch", "check.shm"])
def test_cancelling_ends_the_payload_inside(checked: Checked, moment: str) -> None:
    if moment == "check.shm":
        checked.trap("shm", "import subprocess; subprocess.call(['sleep', '999'])")
    name = checked.start("--shm-size", "1g")
    run = Background(checked, name)
    run.until_at(moment)
    run.cancel.request()
    assert run.end() is None
    assert isinstance(run.error, Cancelled)
    assert checked.is_clean(name)


@pytest.mark.parametrize("missing", ["", "kill", "kill sh bash"])
def test_a_payload_that_does_not_listen_is_killed_by_a_second_process(
    checked: Checked, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor is stopped, so that only a signal from outside can end it; with kill, the shell or Python."""
    monkeypatch.setattr(conversation, "_PARTING_S", 0.5)
    checked.trap("workspace", SLEEP)
    name = checked.start()
    run = Background(checked, name)
    run.until_at("check.workspace")
    os.kill(checked.pid(name, "supervise"), signal.SIGSTOP)
    for tool in missing.split():
        checked.engine.docker("exec", name, "python3", "-c", f"import os, shutil; os.unlink(shutil.which({tool!r}))")
    run.cancel.request()
    assert run.end() is None
    assert isinstance(run.error, Cancelled)
    if "sh" not in missing:
        assert checked.is_clean(name)
    else:
        assert "supervise" not in checked.engine.docker("top", name).stdout


def test_when_gpuconsole_itself_is_killed_the_payload_notices(checked: Checked) -> None:
    checked.trap("workspace", SLEEP)
    name = checked.start()
    process = subprocess.Popen(
        [*OURS, "--host", checked.engine.host, "check", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: "supervise" in checked.engine.docker("top", name).stdout, what="the payload")
    process.kill()
    process.communicate()
    assert checked.is_clean(name)


@pytest.mark.parametrize(
    ("action", "why", "fix"),
    [
        (("kill",), "the container ended with exit code 137", "kernel"),
        (("rm", "-f"), "the container was removed", "Launch it again"),
        (("restart", "-t", "0"), "the container was restarted", "again"),
    ],
)
def test_a_container_that_goes_away_in_the_middle(
    checked: Checked, action: tuple[str, ...], why: str, fix: str
) -> None:
    checked.trap("workspace", SLEEP)
    name = checked.start()
    run = Background(checked, name)
    run.until_at("check.workspace")
    checked.engine.docker(*action, name)
    report = run.end()
    assert report is not None, run.error
    assert report.end is RunEnd.BROKEN
    found = result(report, "check.workspace")
    assert found.status is FAIL
    assert found.why == f"{why} while it ran"
    assert fix in found.fix
    assert result(report, "check.numerics").status is OK
    assert result(report, "check.environment").status is SKIP
    assert report.verdict.check == "check.workspace"


def test_a_container_that_is_paused_in_the_middle(modern: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_GRACE_S", 2.0)
    modern.trap("workspace", SLEEP)
    name = modern.start()
    run = Background(modern, name, deadline_s=1.0)
    run.until_at("check.torch")
    modern.engine.docker("pause", name)
    report = run.end()
    assert report is not None, run.error
    assert report.end is RunEnd.TIMEOUT
    assert "the container was paused" in report.verdict.sentence
    modern.engine.docker("unpause", name)
    assert modern.is_clean(name)


@pytest.mark.engine(*NEWEST)  # the payload itself holds it
def test_the_deadline_of_the_whole(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [check for check in catalog.CHECKS if check.id in ("check.workspace", "check.environment")]
    monkeypatch.setattr(catalog, "CHECKS", tuple(quick))  # to import torch can take a busy machine longer than that
    checked.trap("workspace", SLEEP)
    name = checked.start()
    report = checked.check(name, deadline_s=8.0)
    assert report.end is RunEnd.TIMEOUT
    assert "8 s" in result(report, "check.workspace").why
    assert result(report, "check.environment").why == "no time was left for it"
    assert checked.is_clean(name)


def without_sh(checked: Checked) -> str:
    """An image of PyTorch in which only Python can wait."""
    name = checked.start()
    checked.engine.docker("exec", name, "python3", "-c", "import os, shutil; os.unlink(os.path.realpath('/bin/sh'))")
    checked.engine.docker("commit", name, "gpuconsole-test/without-sh:1")
    checked.engine.docker("rm", "-f", name)
    return "gpuconsole-test/without-sh:1"


def kill_in_the_middle(checked: Checked, image: str, *, says: str) -> None:
    """Start the check of an image, kill gpuconsole once ``says`` is among the processes, and wait for what is left."""
    engine = checked.engine
    process = subprocess.Popen(
        [*OURS, "--host", engine.host, "check", "--image", image, "--gpus", "none"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (
        (ids := engine.docker("ps", "-q").stdout.split()) and says in engine.docker("top", ids[0], check=False).stdout
    ):
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60  # by itself the container would take four minutes
    while engine.docker("ps", "-aq").stdout:
        assert time.monotonic() < deadline, engine.docker("ps", "-a").stdout
        time.sleep(0.1)


@pytest.mark.parametrize("says", ["cat", "payload.pyz work"])
def test_when_gpuconsole_itself_is_killed_the_container_for_an_image_goes(checked: Checked, says: str) -> None:
    """Both before the checks have begun and amid them."""
    kill_in_the_middle(checked, checked.engine.load("pytorch"), says=says)


def test_the_container_goes_also_where_only_python_can_wait(modern: Checked) -> None:
    image = without_sh(modern)
    try:
        kill_in_the_middle(modern, image, says="sys.stdin.buffer.read")
    finally:
        modern.engine.docker("rmi", image)

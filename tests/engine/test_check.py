"""Checks inside containers of real engines: what they find, and that nothing of them is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuconsole.core.errors import Conflict, NotFound
from gpuconsole.probes.records import CheckResult, Progress, RunEnd, Started
from tests.engine.checking import FAIL, OK, SKIP, WARN, Background, Checked, result
from tests.rig.kinds import RUNTIMES

pytestmark = [pytest.mark.engine(*RUNTIMES), pytest.mark.usefixtures("few_checks")]


def test_a_sound_container_passes_and_nothing_is_left_in_it(checked: Checked, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    name = checked.start("--shm-size", "1g", "-v", f"{workspace}:/workspace")
    run = Background(checked, name)
    report = run.end()
    assert report is not None, run.error
    assert report.end is RunEnd.COMPLETE
    assert {check.status for check in report.checks} <= {OK, SKIP}, report.checks
    assert [check.id for check in report.checks if check.status is OK] == [
        "check.torch",
        "check.numerics",
        "check.shm",
        "check.workspace",
        "check.environment",
    ]
    assert result(report, "check.shm").value["passed_bytes"] == 128 << 20
    assert "CPU only" in report.verdict.sentence
    assert report.environment.container_id
    assert report.environment.torch_cuda is None
    assert report.environment.shm_bytes == 1 << 30
    assert report.environment.workdir == "/workspace"
    assert isinstance(run.records[0], Started)
    told = [record.id for record in run.records if isinstance(record, CheckResult)]
    assert sorted(told) == sorted(check.id for check in report.checks)
    assert told[-2:] == ["check.gpu-health", "check.gpu-clocks"]
    assert {record.id for record in run.records if isinstance(record, Progress)} == set(told[:-2])
    codes = [check.code for check in report.checks]
    assert codes == sorted(codes)
    assert checked.is_clean(name)
    assert not list(workspace.iterdir())


def test_64_mib_of_shared_memory_are_a_warning_without_gpus(modern: Checked) -> None:
    report = modern.check(modern.start())
    found = result(report, "check.shm")
    assert found.status is WARN
    assert "64 MiB" in found.why
    assert "--shm-size" in found.fix
    assert "goes away with the container" in result(report, "check.workspace").why
    assert report.verdict.check == "check.shm"


def test_shared_memory_that_is_full_is_a_failure(modern: Checked) -> None:
    """The worker is given less than it needs; torch itself hangs then, and says why on its standard error alone."""
    modern.module(
        "sitecustomize",
        "import sys, os\n"
        "class Trap:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gpuconsole.probes.payload.checks.shm':\n"
        "            real, os.statvfs = os.statvfs, lambda path: os.statvfs_result((4096, 4096) + (1 << 18,) * 8)\n"
        "            import torch.utils.data as data\n"
        "            loader = data.DataLoader\n"
        "            data.DataLoader = lambda *given, **named: loader(*given, **{**named, 'timeout': 6})\n"
        "sys.meta_path.insert(0, Trap())\n",
    )
    report = modern.check(modern.start())
    found = result(report, "check.shm")
    assert found.status is FAIL
    told = " ".join([found.why, *(note.text for note in report.notes)])
    assert "Bus error" in told or "No space left on device" in told
    assert "--shm-size" in found.fix


def test_a_read_only_root_takes_the_payload_in_shared_memory(checked: Checked) -> None:
    name = checked.start("--read-only")
    report = checked.check(name)
    assert report.end is RunEnd.COMPLETE
    assert result(report, "check.numerics").status is OK
    assert result(report, "check.workspace").status is FAIL
    assert "/workspace is read-only" in result(report, "check.workspace").why
    assert checked.is_clean(name)


def test_a_read_only_root_with_tmpfs_where_put_archive_would_lie(modern: Checked) -> None:
    name = modern.start("--read-only", "--tmpfs", "/tmp", "--shm-size", "1g")
    report = modern.check(name)
    assert result(report, "check.shm").status is OK
    assert report.verdict.check == "check.workspace"
    assert modern.is_clean(name)


def test_a_container_that_takes_no_file_anywhere(checked: Checked) -> None:
    report = checked.check(checked.start("--read-only", "--ipc", "none"))
    assert report.end is RunEnd.BROKEN
    assert report.checks[0].id == "check.delivery"
    assert "Read-only file system" in report.checks[0].why
    assert "--tmpfs /tmp" in report.checks[0].fix
    assert {check.status for check in report.checks[1:]} == {SKIP}


def test_no_temporary_folder_is_said(modern: Checked, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    mount = f"{tmp_path / 'work'}:/workspace"
    name = modern.start("--read-only", "-v", mount, "--workdir", "/modules/..", "--shm-size", "1g")
    report = modern.check(name)
    assert result(report, "check.workspace").status is FAIL
    name = modern.start("--read-only", "-v", mount, "--shm-size", "1g")
    report = modern.check(name)
    # The workspace itself serves for temporary files then, as Python's own rule has it.
    assert result(report, "check.workspace").value["temporary"] == "/workspace"


def test_a_read_only_workspace(modern: Checked, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    report = modern.check(modern.start("-v", f"{tmp_path / 'work'}:/workspace:ro"))
    found = result(report, "check.workspace")
    assert found.status is FAIL
    assert found.why == "/workspace is read-only"
    assert ":ro" in found.fix


def test_a_workspace_of_somebody_else(modern: Checked, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    found = result(modern.check(modern.start("-v", f"{workspace}:/workspace", "--user", "1234")), "check.workspace")
    assert found.status is FAIL
    assert found.why == "user 1234 may not write /workspace"
    workspace.chmod(0o777)
    os.chown(workspace, 1234, 1234)
    found = result(modern.check(modern.start("-v", f"{workspace}:/workspace")), "check.workspace")
    assert found.status is WARN
    assert "will belong to root, the folder to user 1234" in found.why


def test_an_image_without_python(checked: Checked) -> None:
    report = checked.check(checked.start(image="small"))
    assert report.end is RunEnd.BROKEN
    assert report.verdict.sentence == "Not fit for training: there is no Python in the container."
    assert report.checks[0].fix


def test_a_container_without_a_shell_or_any_tool(modern: Checked) -> None:
    name = modern.start("--shm-size", "1g")
    modern.engine.docker(
        "exec", name, "python3", "-c",
        "import os\n"
        "for folder in ('/bin', '/usr/bin'):\n"
        "    for entry in os.scandir(folder):\n"
        "        if not entry.name.startswith('python'):\n"
        "            os.unlink(entry.path)\n",
    )  # fmt: skip
    report = modern.check(name)
    assert report.end is RunEnd.COMPLETE
    assert result(report, "check.shm").status is OK
    assert "supervise" not in modern.engine.docker("top", name).stdout


def test_a_python_beside_torch_is_passed_over(modern: Checked) -> None:
    """The first interpreter on the PATH has no torch; another one has."""
    name = modern.start()
    modern.engine.docker(
        "exec", name, "sh", "-c",
        "mkdir -p /opt/conda/bin /usr/local/nvidia/bin && "
        "printf '#!/bin/sh\\nexec python3.11 -S \"$@\"\\n' > /usr/local/nvidia/bin/python3 && "
        "chmod +x /usr/local/nvidia/bin/python3 && "
        "ln -s $(ls /usr/local/bin/python3.* | head -1) /opt/conda/bin/python",
    )  # fmt: skip
    report = modern.check(name)
    assert result(report, "check.torch").status is OK
    assert report.environment.python_path != "/usr/local/nvidia/bin/python3"


def test_without_torch_it_is_the_one_thing_named(modern: Checked) -> None:
    modern.module("torch", "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    report = modern.check(modern.start())
    assert report.verdict.check == "check.torch"
    assert "there is no torch for" in report.verdict.sentence
    assert result(report, "check.workspace").status is WARN


def test_a_flood_of_output_is_bounded(modern: Checked) -> None:
    modern.module("sitecustomize", "import sys\nfor i in range(50000): print('noise', i, '\\x1b[2J' + 'x' * 200)\n")
    report = modern.check(modern.start())
    assert report.end is RunEnd.COMPLETE
    assert result(report, "check.numerics").status is OK
    assert 0 < len(report.notes) < 100
    assert not any("\x1b" in note.text for note in report.notes)


def test_a_lack_of_memory_is_called_one(modern: Checked) -> None:
    name = modern.start("--memory", "100m", "--memory-swap", "100m")
    report = modern.check(name)
    found = result(report, "check.torch")
    assert found.status is FAIL, found
    assert "SIGKILL" in found.why
    assert "memory limit" in found.fix
    assert result(report, "check.workspace").status is not SKIP
    assert modern.is_clean(name)


def test_a_limit_of_processes_is_called_one(modern: Checked) -> None:
    name = modern.start("--user", "4321", "--pids-limit", "2")
    report = modern.check(name)
    assert report.verdict.status is FAIL
    assert modern.is_clean(name)


def test_what_does_not_run_is_not_checked(modern: Checked) -> None:
    name = modern.start()
    modern.engine.docker("pause", name)
    with pytest.raises(Conflict, match="is paused") as paused:
        modern.check(name)
    assert "pause --resume" in paused.value.hint
    modern.engine.docker("unpause", name)
    modern.engine.docker("kill", name)
    with pytest.raises(Conflict, match="does not run") as ended:
        modern.check(name)
    assert f"gpuconsole start {name}" in ended.value.hint
    with pytest.raises(NotFound):
        modern.check("nobody")

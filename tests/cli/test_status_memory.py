"""What ``gpuconsole status`` tells of memory: where every byte is, and why some of it has no name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator

import pytest

from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.cli.status_show import document_of
from gpuconsole.cli.status_table import overview_text
from gpuconsole.cli.tables import width_of
from gpuconsole.gpu.model import Gpu, GpuSnapshot
from gpuconsole.host.accounting import NOBODY, account_of
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.processes import BLIND, BLIND_HINT, ENDED_OR_HIDDEN, FIELDS
from tests.rig import prepared
from tests.rig.nvml import GIB, MIB, GpuProcess, NvmlBox, NvmlState, a100_mig, busy, gb10, h200

UTF8 = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}


def status(*arguments: str, box: NvmlBox) -> str:
    done = prepared.in_words(prepared.gpuconsole("status", *arguments, env=box.env() | UTF8))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def zombie() -> Iterator[int]:
    """Pid of a process that has ended, and that nobody has noticed."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid


def test_each_kind_of_part_is_in_the_document_and_the_parts_are_the_whole(nvml_box: NvmlBox, zombie: int) -> None:
    """Every kind of GPU at once: explained in part, not at all, in instances, by shares nobody tells, shared memory."""
    processes = (GpuProcess(os.getpid(), 90 * GIB), GpuProcess(zombie, 2 * GIB), GpuProcess(2**22 - 3, GIB))
    nvml_box.write(
        NvmlState(
            gpus=(
                h200(0, processes=processes, used_bytes=100 * GIB), h200(1, used_bytes=17 * GIB),
                busy(a100_mig(2), GpuProcess(os.getpid(), 4 * GIB)),
                h200(3, processes=(GpuProcess(os.getpid(), None), GpuProcess(os.getppid(), None)), used_bytes=9 * GIB),
                gb10(index=4, processes=(GpuProcess(os.getpid(), 64 * MIB),)), h200(5, lost=True),
            )
        )
    )  # fmt: skip
    gpus = json.loads(status("--json", box=nvml_box))["gpus"]
    accounts = [gpu["account"] for gpu in gpus] + [mig["account"] for mig in gpus[2]["migs"]]
    for account in accounts:
        assert sum(part["bytes"] for part in account["parts"]) == (account["total_bytes"] or 0)
        listed = sum(part["bytes"] for part in account["parts"] if part["kind"] in ("process", "hidden", "ended"))
        for group in ("containers", "users"):
            assert sum(share["bytes"] for share in account[group]) == listed
    kinds = [{part["kind"]: part["bytes"] for part in account["parts"]} for account in accounts]
    assert {"process", "ended", "unattributed", "reserve", "free"} == set(kinds[0])
    assert (kinds[0]["unattributed"], kinds[1]["unattributed"]) == (7 * GIB, 17 * GIB)
    assert kinds[2]["process"] == kinds[6]["process"] == 4 * GIB
    assert kinds[3]["undivided"] == 9 * GIB
    assert kinds[4]["process"] == 64 * MIB
    assert accounts[4]["of"] == "system"
    assert accounts[5]["total_bytes"] is None
    assert accounts[5]["reason"]
    text = status(box=nvml_box)
    assert f"GPU 0: Process {zombie} holds 2 GiB: it has ended" in text
    assert re.search(r"^0 +unattributed +7 GiB +\(no process explains it\)$", text, re.MULTILINE)
    assert f"GPU 1: 17 GiB unattributed: {NOBODY}. → 'sudo fuser -v /dev/nvidia1' shows who has it open." in text
    assert "GPU 3: 9 GiB in use; the driver does not tell which of 2 processes has how much." in text
    assert re.search(r"^4 GB10 +\S+ %  \S* +\d+\.\d/\d+\.\d ", text, re.MULTILINE), "the machine's figures"
    assert "GPU 4: GPU and CPU share the machine's memory" in text


def seen(*holders: Holder, used: int, **changes: object) -> HostView:
    gpu = Gpu(0, "GPU-0", "NVIDIA H200", minor=0, memory_total_bytes=140 * GIB, memory_used_bytes=used,
              memory_free_bytes=140 * GIB - used, memory_reserved_bytes=0, utilization_pct=0)  # fmt: skip
    account = account_of(gpu, holders, why=lambda count: "process 7 ended just now")
    return HostView(GpuSnapshot(time.time(), (gpu,)), (GpuView(gpu, holders, account=account, **changes),))  # type: ignore[arg-type]


def unseen(pid: int, reason: str) -> Holder:
    return Holder(pid, gpu_index=0, gpu_uuid="GPU-0", memory_bytes=GIB, unknown=dict.fromkeys(FIELDS, reason))


def test_what_is_true_of_all_processes_is_said_once() -> None:
    reason = f"{BLIND}; {BLIND_HINT}"
    view = seen(*(unseen(pid, reason) for pid in (7, 8, 9)), used=3 * GIB)
    text = overview_text(HostView(view.snapshot, view.gpus, notes=(f"{reason}.",)), Glyphs())
    assert text.count(BLIND) == 1
    assert [line.split()[2] for line in text.splitlines() if re.match(r"0 +– ", line)] == ["7", "8", "9"]
    assert ENDED_OR_HIDDEN in overview_text(seen(unseen(7, ENDED_OR_HIDDEN), used=GIB), Glyphs())


def test_a_reason_stands_below_the_table_and_is_not_cut(nvml_box: NvmlBox) -> None:
    text = overview_text(seen(used=20 * GIB), Glyphs(width=80))
    assert "GPU 0: 20 GiB unattributed: process 7 ended just now." in text
    assert all(width_of(line) <= 80 for line in text.splitlines())
    assert "unattributed" not in overview_text(seen(used=20 * MIB), Glyphs(width=80)), "the driver's own rounding"


def test_a_gpu_that_was_given_away_is_idle_and_names_who_has_it() -> None:
    view = seen(used=0, given_to=("jupyter-mei",))
    lines = overview_text(view, Glyphs(width=80)).splitlines()
    assert lines[3].endswith(" idle")
    assert any(line.split()[:2] == ["0", "jupyter-mei"] and "(given to it, holds nothing)" in line for line in lines)
    assert document_of(view)["gpus"][0]["given_to"] == ["jupyter-mei"]

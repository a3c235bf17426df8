"""What was recorded on a real H200 holds together, and what is printed today has the same form."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.rig.nvml import GpuProcess, NvmlBox, NvmlState, busy, h200

LINE = Path(__file__).parents[1] / "fixtures/h200-line"


def recorded(name: str) -> Any:
    return json.loads((LINE / name).read_text())


def form(value: Any) -> Any:
    """Names and nesting, without values; a list by the form of its first item."""
    if isinstance(value, dict):
        return {key: form(item) for key, item in value.items()}
    return [form(item) for item in value[:1] if isinstance(item, dict)] if isinstance(value, list) else None


def test_status_ps_and_check_of_the_recording_agree_with_each_other() -> None:
    (gpu,) = recorded("status.json")["gpus"]
    (container,) = recorded("ps.json")["containers"]
    (holder,) = gpu["holders"]
    assert holder["container_id"] == container["id"]
    assert holder["memory_bytes"] == container["gpu_memory_bytes"] > 8 * 2**30
    assert [each["uuid"] for each in container["gpus"]] == [gpu["uuid"]]
    report = recorded("check.json")
    assert {check["status"] for check in report["checks"]} == {"ok"}
    assert [f"GPU-{each['uuid']}" for each in report["environment"]["gpus"]] == [gpu["uuid"]]  # torch leaves GPU- out
    assert recorded("status-after.json")["gpus"][0]["memory_used_bytes"] < 2**30


def test_status_prints_today_what_it_printed_on_the_h200(nvml_box: NvmlBox) -> None:

    nvml_box.write(NvmlState(gpus=(busy(h200(0), GpuProcess(os.getpid(), 2**33)),)))
    answer = nvml_box.python("import sys; from gpuconsole.cli.main import main; sys.exit(main(['status', '--json']))")
    now, then = form(json.loads(answer)), form(recorded("status.json"))
    for each in (now, then):
        each["gpus"][0]["unknown"] = each["unknown"] = None
        each["gpus"][0]["holders"][0]["unknown"] = None
    del now["gpus"][0]["holders"][0]["state"]
    later = {
        "account", "eta_s", "given_to", "power_default_w", "recovery_action", "state", "virtualization", "why"
    }  # fmt: skip
    assert now["gpus"][0].keys() - then["gpus"][0].keys() == later
    assert now["gpus"][0]["ecc"].keys() - then["gpus"][0]["ecc"].keys() == {
        "remapped_rows", "retired_pages", "retired_pending"
    }  # fmt: skip
    for part, old in ((now["gpus"][0], then["gpus"][0]), (now["gpus"][0]["ecc"], then["gpus"][0]["ecc"])):
        for name in part.keys() - old.keys():
            del part[name]
    assert now == then

"""Two containers on two H200, recorded: one grows until its GPU is full and is gone, the other goes on untouched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuconsole.cli.main import main

RECORDING = Path(__file__).parents[1] / "fixtures" / "two-tenants-h200.jsonl.gz"
_ALARMS = {"risk", "critical", "failed"}


def test_what_grows_on_one_gpu_is_no_matter_of_the_other(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", str(RECORDING), "--json"]) == 0
    schema, *changes = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert schema == {"schema": "gpuconsole.forecast/1"}
    on = {index: [change for change in changes if change["gpu"] == index] for index in (0, 1)}
    assert {change["pid"] for change in on[0]} & {change["pid"] for change in on[1]} <= {None}
    assert [change["state"] for change in on[1] if change["subject"] == "gpu"] == ["free", "loading", "steady"]
    assert not any(change["state"] in _ALARMS for change in on[1])
    assert [change["state"] for change in on[0] if change["subject"] == "gpu"][-1] == "free"

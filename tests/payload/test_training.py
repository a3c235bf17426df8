"""The checks of training on this machine's torch: that they pass on a sound one, and that each can say no."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuconsole.probes import archive
from gpuconsole.probes.payload.checks import collective
from gpuconsole.probes.payload.outcome import Context
from tests.payload.driving import Payload, of_type, result

ON_CPU = (
    "check.torch", "check.cudnn", "check.attention", "check.amp", "check.bf16", "check.optimizer", "check.determinism",
    "check.limits", "check.host-memory", "check.cpu", "check.clock", "check.all-reduce",
)  # fmt: skip
SABOTAGED = """
import os
import torch
import torch.distributed

functional = torch.nn.functional
convolve, attend, drop, multiply = (
    functional.conv2d, functional.scaled_dot_product_attention, functional.dropout, torch.mm
)
single = torch.float32
functional.conv2d = lambda x, *a, **o: convolve(x, *a, **o) * (1.01 if x.dtype == single and "groups" in o else 1)
functional.scaled_dot_product_attention = lambda *a, **o: attend(*a, **o) * 1.1
functional.dropout = lambda x, share: drop(x, share) + os.urandom(1)[0] / 1e3 + os.urandom(1)[0] / 1e4
torch.mm = lambda x, y: multiply(x, y) * (1.05 if x.dtype == torch.bfloat16 else 1)
step = torch.optim.AdamW.step
def fused(self):
    step(self)
    if self.defaults["fused"]:
        with torch.no_grad():
            self.param_groups[0]["params"][0].mul_(1.001)
torch.optim.AdamW.step = fused
torch.amp.GradScaler.step = lambda self, optimizer: (self.unscale_(optimizer), optimizer.step())
torch.compile = lambda function: lambda *arguments: function(*arguments) * 1.01
torch.distributed.all_reduce = lambda tensor: None
"""
OLD = """
import torch
import torch.amp
import torch.optim
del torch.compile, torch.nn.functional.scaled_dot_product_attention, torch.amp.GradScaler
del type(torch.backends).fp32_precision
plain = torch.optim.AdamW.__init__
def without_fused(self, parameters, lr=1e-3, weight_decay=1e-2):
    plain(self, parameters, lr=lr, weight_decay=weight_decay)
torch.optim.AdamW.__init__ = without_fused
"""


def test_a_sound_torch_passes_on_the_cpu_too(payload: Payload) -> None:
    records = payload.run(*ON_CPU)
    statuses = {record["id"]: record["status"] for record in of_type(records, "check")}
    assert tuple(statuses) == ON_CPU
    machine = {"check.limits", "check.host-memory", "check.cpu", "check.clock"}
    assert {status for slug, status in statuses.items() if slug not in machine} == {"ok"}, records
    assert {statuses[slug] for slug in machine} <= {"ok", "warn"}
    reduced = result(records, "check.all-reduce")
    assert reduced["value"] | {"ranks": 2, "exact": [True, True]} == reduced["value"]
    assert "no GPU took part" in reduced["why"]
    attention = result(records, "check.attention")["value"]["back_ends"]["the CPU"]
    assert 0 < attention["math"] < 1e-4
    assert set(result(records, "check.cudnn")["value"]["errors"]["the CPU"]) == {"3x3", "grouped", "dilated"}
    assert result(records, "check.amp")["value"]["results"]["the CPU"]["scale"] == 512
    assert result(records, "check.determinism")["value"]["equal"] == {"the CPU": True}
    assert not payload.folder.exists()
    assert not payload.stray


def test_each_of_them_can_say_no(payload: Payload) -> None:
    payload.module("sitecustomize", SABOTAGED)
    records = payload.run(*ON_CPU[:7], "check.compile", "check.all-reduce")
    found = {record["id"]: (record["status"], record["why"]) for record in of_type(records, "check")}
    assert found.pop("check.torch")[0] == "ok"
    for slug, status, words in (
        ("check.cudnn", "fail", "the grouped convolution on the CPU is off by"),
        ("check.attention", "fail", "math attention gives wrong results"),
        ("check.amp", "fail", "although a gradient is infinite"),
        ("check.bf16", "warn", "is off by 5e-02"),
        ("check.optimizer", "warn", "the fused AdamW on the CPU is off by"),
        ("check.determinism", "warn", "other bits the second time on the CPU"),
        ("check.compile", "warn", "is off by 1e-02"),
        ("check.all-reduce", "fail", "the sum over 2 processes of the CPU by gloo is wrong"),
    ):
        assert found[slug][0] == status, found
        assert words in found[slug][1], found
    assert "3x3" not in found["check.cudnn"][1]
    assert all(record["fix"] for record in of_type(records, "check") if record["status"] != "ok")


def test_a_torch_with_the_names_of_1_13_alone_is_checked_as_far_as_it_goes(payload: Payload) -> None:
    """The names that came later are taken away; what a torch of then computes, only such a torch can show."""
    payload.module("sitecustomize", OLD)
    records = payload.run(*ON_CPU[:7], "check.compile")
    found = {record["id"]: record["status"] for record in of_type(records, "check")}
    assert found == {
        "check.torch": "ok", "check.cudnn": "ok", "check.attention": "skip", "check.amp": "ok", "check.bf16": "ok",
        "check.optimizer": "skip", "check.determinism": "ok", "check.compile": "skip",
    }  # fmt: skip
    assert result(records, "check.amp")["value"]["results"]["the CPU"]["skipped"] is None
    assert "has no torch.compile" in result(records, "check.compile")["why"]


AS_NCCL = """
import os, sys, time
import torch
import torch.distributed as distributed

full, join = torch.full, distributed.init_process_group
torch.full = lambda *a, device=None, **o: full(*a, **o)
torch.cuda.set_device = lambda number: None
def as_gloo(name, **options):
    if options["rank"] == 1 and {when}:
        {action}
    join("gloo", **options)
distributed.init_process_group = as_gloo
"""
WITH_P2P = "os.environ.get('NCCL_P2P_DISABLE') != '1'"


@pytest.fixture
def two_gpus(payload: Payload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    """What the check is given in a worker that sees two GPUs; its ranks talk by gloo."""
    payload.folder.mkdir()
    (payload.folder / "payload.pyz").write_bytes(archive.build().data)
    monkeypatch.setenv("PYTHONPATH", str(payload.modules))
    monkeypatch.delenv("NCCL_P2P_DISABLE", raising=False)
    config = {
        "archive": str(payload.folder / "payload.pyz"), "folder": str(payload.folder),
        "statuses": {"check.cuda-available": "ok"},
    }  # fmt: skip
    context = Context(config, lambda text: None, lambda facts: None)
    yes = lambda: True  # noqa: E731
    context.torch = SimpleNamespace(
        cuda=SimpleNamespace(device_count=lambda: 2),
        distributed=SimpleNamespace(is_available=yes, is_nccl_available=yes),
    )
    return context


def pretend(payload: Payload, *, when: str = "False", action: str = "pass") -> None:
    payload.module("sitecustomize", AS_NCCL.format(when=when, action=action))


def test_the_ranks_are_processes_of_their_own_that_begin_early(payload: Payload, two_gpus: Context) -> None:
    pretend(payload)
    collective.begin(two_gpus)
    begun: Any = two_gpus.apart["reduced"]
    assert len(begun.ranks) == 2
    found = collective.run(two_gpus)
    assert found.status == "ok", found.value
    assert found.value["exact"] == [True, True]
    assert found.value["worked_without_p2p"] is None
    assert two_gpus.apart == {}


def test_ranks_that_hang_with_direct_traffic_alone_are_told_so(
    payload: Payload, two_gpus: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collective, "LIMIT_S", 4.0)
    monkeypatch.setattr(collective, "RETRY_S", 90.0)
    pretend(payload, when=WITH_P2P, action="time.sleep(600)")
    found = collective.run(two_gpus)
    assert found.status == "fail"
    assert "hangs" in found.why
    assert "works without direct traffic between them" in found.why
    assert "NCCL_P2P_DISABLE=1" in found.fix
    assert found.value["worked_without_p2p"] is True


def test_a_rank_that_dies_is_named_with_its_last_words(
    payload: Payload, two_gpus: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    monkeypatch.setattr(collective, "LIMIT_S", 90.0)
    pretend(payload, when="True", action="sys.stderr.write('no such luck\\\\n'); sys.stderr.flush(); os._exit(7)")
    found = collective.run(two_gpus)
    assert found.status == "fail"
    assert "dies in rank 1" in found.why
    assert "no such luck" in found.why

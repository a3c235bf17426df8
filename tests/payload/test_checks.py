"""The checks on this machine's torch: what they see, and that each can say no."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
import torch

from tests.payload.driving import Payload, of_type, result

CUDA_BUILD = "import torch; torch.version.cuda = '12.8'\n"


def test_a_cpu_build_is_said_to_be_one(payload: Payload) -> None:
    records = payload.run("check.torch", "check.cuda-available", "check.kernel", "check.gpu-memory", "check.driver")
    built = result(records, "check.torch")
    assert built["status"] == "ok"
    assert "CPU build" in built["why"]
    assert built["value"]["version"] == torch.__version__
    for slug in ("check.cuda-available", "check.kernel", "check.gpu-memory", "check.driver"):
        assert result(records, slug)["status"] == "skip"
        assert result(records, slug)["why"] == "torch is a CPU build"


def test_a_cpu_build_where_gpus_were_given_is_the_one_failure(payload: Payload) -> None:
    asked = [{"uuid": "GPU-1", "index": 0}, {"uuid": "GPU-2", "index": 1}]
    records = payload.run("check.torch", "check.cuda-available", "check.devices", "check.numerics", asked=asked)
    built = result(records, "check.torch")
    assert built["status"] == "fail"
    assert "CPU build" in built["why"]
    assert "2 GPUs" in built["why"]
    assert "CUDA build" in built["fix"]
    assert [record["status"] for record in of_type(records, "check")] == ["fail", "skip", "skip", "ok"]


def test_without_torch_the_rest_is_still_looked_at(payload: Payload) -> None:
    payload.module("torch", "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    records = payload.run("check.torch", "check.numerics", "check.shm", "check.workspace")
    assert result(records, "check.torch")["status"] == "fail"
    assert "there is no torch" in result(records, "check.torch")["why"]
    assert result(records, "check.numerics")["why"] == "torch cannot be imported"
    assert result(records, "check.shm")["value"]["passed_bytes"] is None
    assert "a worker passes" not in result(records, "check.shm")["why"]
    assert result(records, "check.workspace")["status"] in ("ok", "warn")


@pytest.mark.parametrize(
    ("text", "why", "fix"),
    [
        ("raise OSError('libcudart.so.13: cannot open shared object file: No such file')", "libcudart.so.13", "pip"),
        ("raise ImportError('libcuda.so.1: cannot open shared object file: No such file')", "driver", "--gpus 1"),
        ("raise ImportError('undefined symbol: ncclCommResume')", "undefined symbol", "as it was published"),
    ],
)
def test_a_torch_that_cannot_be_imported_is_explained(payload: Payload, text: str, why: str, fix: str) -> None:
    payload.module("torch", text + "\n")
    found = payload.check("check.torch")
    assert found["status"] == "fail"
    assert why in found["why"]
    assert fix in found["fix"]


def test_an_import_that_kills_the_process_fails_the_check_alone(payload: Payload) -> None:
    """As on a processor without the instructions that torch was built for."""
    payload.module("torch", "import os, signal; os.kill(os.getpid(), signal.SIGILL)\n")
    records = payload.run("check.torch", "check.numerics", "check.shm", "check.environment")
    assert "SIGILL" in result(records, "check.torch")["why"]
    assert "processor" in result(records, "check.torch")["fix"]
    assert result(records, "check.numerics")["why"] == "torch cannot be imported"
    assert result(records, "check.environment")["status"] == "ok"


def test_the_environment_is_told(payload: Payload) -> None:
    payload.extra = {"NCCL_DEBUG": "INFO", "NCCL_TOKEN": "hush", "MY_PASSWORD": "hush", "OMP_NUM_THREADS": "1"}
    records = payload.run("check.torch")
    facts: dict[str, object] = {}
    for record in of_type(records, "env"):
        facts.update(record["env"])
    assert facts["torch"] == torch.__version__
    assert facts["torch_cuda"] is None
    assert facts["kernel"] == os.uname().release
    assert isinstance(facts["memory_bytes"], int)
    assert facts["variables"] == {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "1"}


def test_results_agree_with_float64(payload: Payload) -> None:
    found = payload.check("check.numerics")
    assert found["status"] == "ok"
    assert "CPU" in found["why"]
    errors = found["value"]["errors"]["CPU"]
    assert 0 < errors["float32"] < found["value"]["tolerances"]["float32"]
    assert 0 < errors["network"] < found["value"]["tolerances"]["network"]


BROKEN = """
import torch
whole = torch.mm
def broken(one, other):
    product = whole(one, other)
    {damage}
    return product
torch.mm = broken
"""


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("product[0, 0] += 20", "off by"),
        ("product *= 1.001", "off by"),
        ("product[3, 4] = float('nan')", "not a number"),
        ("product[3, 4] = float('inf')", "not a number"),
    ],
)
def test_a_product_that_is_wrong_in_one_place_is_found(payload: Payload, damage: str, words: str) -> None:
    payload.module("sitecustomize", BROKEN.format(damage=damage))
    found = payload.check("check.numerics")
    assert found["status"] == "fail"
    assert words in found["why"]
    assert "float32 on CPU" in found["why"]
    assert found["fix"]


def test_a_gradient_that_is_wrong_is_found(payload: Payload) -> None:
    """The forward pass is right, the backward pass is not."""
    payload.module(
        "sitecustomize",
        "import torch\n"
        "class Wrong(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.single = x.dtype == torch.float32\n"
        "        return x.clone()\n"
        "    @staticmethod\n"
        "    def backward(ctx, grad):\n"
        "        return grad * (1.01 if ctx.single else 1)\n"
        "whole = torch.nn.functional.gelu\n"
        "torch.nn.GELU.forward = lambda self, x: Wrong.apply(whole(x))\n",
    )
    found = payload.check("check.numerics")
    assert found["status"] == "fail"
    assert "network on CPU" in found["why"]
    assert math.isclose(found["value"]["errors"]["CPU"]["float32"], 0, abs_tol=1e-5)


def test_an_older_torch_without_the_new_names_for_precision_works(payload: Payload) -> None:
    """Until 2.8 there was ``allow_tf32`` and no ``fp32_precision``."""
    payload.module(
        "sitecustomize",
        "import torch\ndel type(torch.backends).fp32_precision\nassert not hasattr(torch.backends, 'fp32_precision')\n",
    )
    found = payload.check("check.numerics")
    assert found["status"] == "ok", found


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_passes_a_tensor_however_it_is_started(payload: Payload, method: str) -> None:
    payload.module(
        "sitecustomize", f"import multiprocessing\nmultiprocessing.set_start_method({method!r}, force=True)\n"
    )
    found = payload.check("check.shm")
    assert found["status"] == "ok", found
    assert found["value"]["start_method"] == method
    assert found["value"]["passed_bytes"] == 128 << 20


def test_a_worker_that_dies_is_found(payload: Payload) -> None:
    payload.module(
        "sitecustomize",
        "import os, signal, torch.utils.data._utils.fetch as fetch\n"
        "def dies(*arguments):\n"
        "    os.kill(os.getpid(), signal.SIGBUS)\n"
        "fetch._MapDatasetFetcher.fetch = dies\n",
    )
    found = payload.check("check.shm")
    assert found["status"] == "fail"
    assert "Bus error" in found["why"] or "killed by signal" in found["why"]
    assert "--shm-size" in found["fix"]


def test_the_workspace_is_used_and_left_clean(payload: Payload, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    found = payload.check("check.workspace", workdir=str(workspace), ephemeral=True)
    assert found["value"]["path"] == str(workspace)
    assert found["value"]["write_mb_s"] > 0
    assert found["value"]["owner"] == os.getuid()
    assert not list(workspace.iterdir())


def test_a_workspace_that_does_not_exist_is_a_failure(payload: Payload, tmp_path: Path) -> None:
    found = payload.check("check.workspace", workdir=str(tmp_path / "nowhere"))
    assert found["status"] == "fail"
    assert "does not exist" in found["why"]


def test_traps_in_the_environment_are_named(payload: Payload) -> None:
    payload.extra = {"CUDA_LAUNCH_BLOCKING": "1", "CUDA_VISIBLE_DEVICES": "-1", "CUDA_VISIBLE_DEVICE": "0"}
    found = payload.check("check.environment")
    assert found["status"] == "warn"
    assert found["value"]["traps"] == ["CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICE"]


def test_a_cuda_build_that_was_given_nothing_is_no_failure(payload: Payload) -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU")
    payload.module("sitecustomize", CUDA_BUILD)
    records = payload.run("check.torch", "check.cuda-available", "check.devices", "check.numerics")
    assert [record["status"] for record in of_type(records, "check")] == ["ok", "skip", "skip", "ok"]


def test_a_cuda_build_whose_gpus_are_not_there_is_a_failure(payload: Payload) -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU")
    payload.module("sitecustomize", CUDA_BUILD)
    found = payload.check("check.cuda-available", asked=[{"uuid": "GPU-1", "index": 3, "minor": 0}])
    assert found["status"] == "fail"
    assert "no GPU is in the container" in found["why"]
    assert "--gpus" in found["fix"]

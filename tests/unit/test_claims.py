"""GPU claims of a container, resolved against the GPUs of a machine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.engine.docker.gpus import gpu_claims
from gpuconsole.engine.model import GpuClaim, GpuRequestKind
from gpuconsole.gpu.model import Gpu, Mig
from gpuconsole.host.claims import ClaimedGpu, resolve_claims

A = "GPU-3fe1b2c4-0000-1111-2222-333344445555"
B = "GPU-3fe1ffff-0000-1111-2222-333344445555"
C = "GPU-a81c0000-0000-1111-2222-333344445555"
MIG = "MIG-11111111-2222-3333-4444-555555555555"
MACHINE = (
    Gpu(index=0, uuid=A, name="NVIDIA H200", minor=2),
    Gpu(index=1, uuid=B, name="NVIDIA H200", minor=0),
    Gpu(
        index=2,
        uuid=C,
        name="NVIDIA A100",
        minor=1,
        migs=(
            Mig(
                uuid=MIG,
                name="1g.10gb",
                gpu_instance=7,
                compute_instance=0,
                memory_total_bytes=None,
                memory_used_bytes=None,
            ),
        ),
    ),
)
FIRST, SECOND, THIRD = (ClaimedGpu(index=gpu.index, uuid=gpu.uuid) for gpu in MACHINE)
SLICE = ClaimedGpu(index=2, uuid=C, mig_uuid=MIG)


def request(*devices: str) -> GpuClaim:
    return GpuClaim(GpuRequestKind.DEVICE_REQUEST, devices=devices)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("0", FIRST),
        ("1", SECOND),
        (A, FIRST),
        (A.lower(), FIRST),
        ("GPU-a81c", THIRD),
        (MIG, SLICE),
        (f"MIG-{C}/7/0", SLICE),
        ("2:0", SLICE),
        ("/dev/nvidia0", SECOND),
        ("/dev/nvidia2", FIRST),
    ],
)
def test_a_device_is_found_by_every_name_it_goes_by(device: str, expected: ClaimedGpu) -> None:
    found = resolve_claims([request(device)], MACHINE)
    assert found.gpus == (expected,)
    assert found.count == 1
    assert found.reason is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia.com/gpu=2", (THIRD,)),
        (f"nvidia.com/gpu={B}", (SECOND,)),
        ("nvidia.com/gpu=gpu1", (SECOND,)),
        ("nvidia.com/gpu=2:0", (SLICE,)),
        ("nvidia.com/gpu=mig2:0", (SLICE,)),
        (f"nvidia.com/mig={MIG}", (SLICE,)),
        ("k8s.nvidia.com/gpu=1", (SECOND,)),
        ("nvidia.com/gpu=all", (FIRST, SECOND, THIRD)),
        ("nvidia.com/gpu=none", ()),
        ("vendor.com/net=0", ()),
    ],
)
def test_a_cdi_name_an_engine_was_given_is_found(name: str, expected: tuple[ClaimedGpu, ...]) -> None:
    """All the way from the engine's answer, wherever the name stands in it."""
    answers: list[dict[str, Any]] = [
        {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": [name]}]},
        {"Devices": [{"PathOnHost": name}]},
        {"Annotations": {"cdi.k8s.io/any": name}},
    ]
    for answer in answers:
        assert resolve_claims(gpu_claims(answer, ()), MACHINE).gpus == expected, answer


@pytest.mark.parametrize(
    "device", ["none", "void", "", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1"]
)
def test_words_and_control_nodes_name_no_gpu(device: str) -> None:
    assert resolve_claims([request(device)], MACHINE).gpus == ()


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        ("7", "GPU 7 is not in this machine"),
        ("GPU-3fe1", "several UUIDs"),
        ("GPU-dead", "GPU-dead is not in this machine"),
        ("MIG-dead", "MIG-dead is not in this machine"),
        ("2:5", "MIG instance 2:5 is not in this machine"),
        ("/dev/nvidia9", "belongs to no GPU"),
        ("banana", "not a GPU's index or UUID"),
    ],
)
def test_a_device_that_is_not_there_stays_a_claim_with_a_reason(device: str, reason: str) -> None:
    found = resolve_claims([request("0", device)], MACHINE)
    assert found.gpus is not None
    assert len(found.gpus) == 2
    assert found.gpus[0] == FIRST
    assert reason in (found.reason or "")


@pytest.mark.parametrize(
    "claim",
    [
        GpuClaim(GpuRequestKind.DEVICE_REQUEST, everything=True),
        GpuClaim(GpuRequestKind.DEVICE_REQUEST, count=-1),
        GpuClaim(GpuRequestKind.CDI, everything=True),
        GpuClaim(GpuRequestKind.ENVIRONMENT, everything=True),
    ],
)
def test_all_means_every_gpu_of_the_machine(claim: GpuClaim) -> None:
    assert resolve_claims([claim], MACHINE).gpus == (FIRST, SECOND, THIRD)
    blind = resolve_claims([claim], None, unknown="no driver answers")
    assert blind.gpus is None
    assert blind.count is None
    assert "no driver answers" in (blind.reason or "")


def test_a_number_means_the_first_gpus_because_engines_count_from_zero() -> None:
    two = GpuClaim(GpuRequestKind.DEVICE_REQUEST, count=2)
    assert resolve_claims([two], MACHINE).gpus == (FIRST, SECOND)
    assert resolve_claims([two], None).gpus == (ClaimedGpu(index=0), ClaimedGpu(index=1))


def test_nodes_tell_which_gpus_a_number_amounts_to() -> None:
    claims = [
        GpuClaim(GpuRequestKind.DEVICE_REQUEST, count=1),
        GpuClaim(GpuRequestKind.DEVICE_NODE, devices=("/dev/nvidia1", "/dev/nvidiactl")),
    ]
    assert resolve_claims(claims, MACHINE).gpus == (THIRD,)


def test_a_request_overrides_the_environment_the_image_came_with() -> None:
    image = GpuClaim(GpuRequestKind.ENVIRONMENT, everything=True)
    assert resolve_claims([request("1"), image], MACHINE).gpus == (SECOND,)
    assert resolve_claims([image], MACHINE).count == 3


def test_the_same_gpu_named_twice_is_one_gpu() -> None:
    assert resolve_claims([request("0", A, "/dev/nvidia2")], MACHINE).gpus == (FIRST,)


def test_without_gpus_known_the_names_are_kept() -> None:
    found = resolve_claims([request("1", A, MIG)], None, unknown="the engine is on another machine")
    assert set(found.gpus or ()) == {ClaimedGpu(index=1), ClaimedGpu(uuid=A), ClaimedGpu(mig_uuid=MIG)}
    assert found.reason == "the engine is on another machine"


def test_no_claim_is_no_gpu() -> None:
    assert resolve_claims([], MACHINE).gpus == ()
    assert resolve_claims([], None).count == 0


@given(st.lists(st.text(max_size=40)), st.sampled_from([MACHINE, (), None]), st.sampled_from(list(GpuRequestKind)))
def test_no_text_breaks_it(devices: list[str], machine: tuple[Gpu, ...] | None, kind: GpuRequestKind) -> None:
    found = resolve_claims([GpuClaim(kind, devices=tuple(devices))], machine)
    assert found.gpus is None or len(found.gpus) == found.count


def test_an_instance_without_uuid_is_not_taken_for_the_whole_gpu() -> None:
    nameless = Mig(None, "1g.10gb", 7, 0, None, None)
    machine = (Gpu(index=0, uuid=A, name="NVIDIA A100", migs=(nameless,)),)
    found = resolve_claims([request("0:0")], machine)
    assert found.gpus == (ClaimedGpu(index=0),)
    assert found.reason == "MIG instance 0:0 does not tell its UUID"
    assert resolve_claims([request("MIG-")], machine).gpus == (ClaimedGpu(mig_uuid="MIG-"),)

"""Which GPUs a container was given, however that was written down."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpuconsole.engine.docker.answers import Answer, lines, objects, part, whole
from gpuconsole.engine.model import GpuClaim, GpuRequestKind

_CDI_NAME = re.compile(r"(?:[\w.-]+\.)?nvidia\.com/(?:gpu|mig)=(\S+)")
_NODE = re.compile(r"/dev/nvidia\d+")
_NO_GPU = ("", "void", "none")
_ANNOTATION = "cdi.k8s.io/"


def cdi_devices(uuids: Iterable[str]) -> tuple[str, ...]:
    """The CDI names of GPUs, as NVIDIA's generator writes them when it names devices by UUID."""
    return tuple(f"nvidia.com/gpu={uuid}" for uuid in uuids)


def gpu_claims(host: Answer, environment: tuple[tuple[str, str | None], ...]) -> tuple[GpuClaim, ...]:
    """The claims in a container's ``HostConfig`` and environment.

    Docker's command, its libraries, compose and Podman write the same request differently; a claim is what they mean.

    Args:
        host: ``HostConfig`` of the container.
        environment: Its environment.
    """
    claims = [claim for request in objects(host, "DeviceRequests") if (claim := _requested(request))]
    claims += _cdi(_named_elsewhere(host))
    if not claims:
        # A device request overrides the variable, which then is only what the image brought along.
        claims += _environment(host, dict(environment))
    nodes = tuple(
        dict.fromkeys(
            path
            for device in objects(host, "Devices")
            if isinstance(path := device.get("PathOnHost"), str) and _NODE.fullmatch(path)
        )
    )
    if nodes:
        claims.append(GpuClaim(kind=GpuRequestKind.DEVICE_NODE, devices=nodes))
    return tuple(dict.fromkeys(claims))


def _requested(request: Answer) -> GpuClaim | None:
    driver = request.get("Driver") or ""
    names = lines(request, "DeviceIDs")
    if driver == "cdi":
        return next(iter(_cdi(names)), None)
    capabilities = request.get("Capabilities")
    capable = isinstance(capabilities, list) and any("gpu" in one for one in capabilities if isinstance(one, list))
    if driver not in ("", "nvidia") or not (capable or driver == "nvidia"):
        return None
    if names:
        return _named(GpuRequestKind.DEVICE_REQUEST, names)
    count = whole(request, "Count") or 0
    if count < 0:
        return GpuClaim(kind=GpuRequestKind.DEVICE_REQUEST, everything=True)
    # Count 0 without names is accepted by engines, and gives no GPU.
    return GpuClaim(kind=GpuRequestKind.DEVICE_REQUEST, count=count) if count else None


def _named(kind: GpuRequestKind, names: Iterable[str]) -> GpuClaim | None:
    devices = tuple(dict.fromkeys(_bare(name) for name in names if name.strip() not in _NO_GPU))
    if "all" in devices:
        return GpuClaim(kind=kind, everything=True)
    return GpuClaim(kind=kind, devices=devices) if devices else None


def _bare(name: str) -> str:
    """The index or UUID in a device's name: ``nvidia.com/gpu=0`` and ``gpu0`` are ``0``."""
    match = _CDI_NAME.fullmatch(name.strip())
    bare = match[1] if match else name.strip()
    return re.sub(r"^(?:gpu|mig)(?=\d)", "", bare)


def _cdi(names: Iterable[str]) -> list[GpuClaim]:
    ours = [name for name in names if _CDI_NAME.fullmatch(name)]
    claim = _named(GpuRequestKind.CDI, ours)
    return [claim] if claim else []


def _named_elsewhere(host: Answer) -> list[str]:
    """CDI names outside of device requests: in annotations, and where Podman lists them among the devices."""
    names = [name for device in objects(host, "Devices") if isinstance(name := device.get("PathOnHost"), str)]
    for key, value in part(host, "Annotations").items():
        if str(key).startswith(_ANNOTATION) and isinstance(value, str):
            names += value.split(",")
    return [name.strip() for name in names]


def _environment(host: Answer, environment: dict[str, str | None]) -> list[GpuClaim]:
    """What NVIDIA's runtime reads from the environment; any other runtime takes no notice of it."""
    if not str(host.get("Runtime") or "").startswith("nvidia"):
        return []
    visible = environment.get("NVIDIA_VISIBLE_DEVICES")
    if visible is None:
        # Images from before the variable existed get all GPUs.
        legacy = "CUDA_VERSION" in environment and "NVIDIA_REQUIRE_CUDA" not in environment
        return [GpuClaim(kind=GpuRequestKind.ENVIRONMENT, everything=True)] if legacy else []
    claim = _named(GpuRequestKind.ENVIRONMENT, visible.split(","))
    return [claim] if claim else []

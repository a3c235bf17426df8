"""What is right in an option alone and wrong beside another one."""

from __future__ import annotations

from typing import Protocol

from gpuconsole.launch.changes import Change
from gpuconsole.launch.fields import shown
from gpuconsole.launch.spec import GpuWishKind, LaunchSpec
from gpuconsole.launch.work import TOKEN_NAME, Kind, wrong_together


class Wrong(Protocol):
    """Takes an option, what is wrong with it, and what mends it where one change does."""

    def __call__(self, field: str, message: str, *, change: Change | None = None) -> None:
        """Keep it."""


GPU_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
"""NVIDIA's runtime reads the GPUs a container gets from it, so nobody else may set it."""


def check_together(wrong: Wrong, spec: LaunchSpec, *, kind_known: bool = True) -> None:
    """What is right alone and wrong beside another option."""
    if spec.entrypoint == ("",) and not spec.command:
        wrong("--entrypoint", "'' takes the image's command away as well; give a command after --")
    if spec.shm_bytes is not None and spec.ipc_mode is not None and not own_shm(spec.ipc_mode):
        wrong(
            "--shm-size",
            f"has no effect with --ipc {spec.ipc_mode}; leave one of them out",
            change=_without("shm_size"),
        )
    if spec.auto_remove and spec.restart_policy is not None:
        wrong(
            "--restart",
            f"--rm removes the container when it ends, and --restart {spec.restart_policy} starts it again then; "
            "leave one of them out",
            change=_without("restart"),
        )
    if spec.hostname is not None and spec.network is not None and spec.network.startswith("container:"):
        wrong("--hostname", f"has no effect with --network {spec.network}", change=_without("hostname"))
    if spec.ports and spec.network is not None and spec.network.partition(":")[0] in ("host", "none", "container"):
        wrong("--publish", f"has no effect with --network {spec.network}", change=_without("ports"))
    if (
        spec.memory_bytes is not None
        and spec.shm_bytes is not None
        and (spec.ipc_mode is None or own_shm(spec.ipc_mode))
        and spec.shm_bytes > spec.memory_bytes
    ):
        wrong("--shm-size", "is larger than --memory, which it counts against", change=_without("shm_size"))
    without_gpus = spec.gpus is not None and spec.gpus.kind is GpuWishKind.NONE
    if not without_gpus and any(variable.name == GPU_VARIABLE for variable in spec.variables):
        wrong("--env", f"{GPU_VARIABLE} would override the choice of GPUs; use --gpus")
    if kind_known:
        _check_work(wrong, spec)
    _check_twice(wrong, spec)


def _without(option: str) -> Change:
    return Change(option, None)


def own_shm(ipc_mode: str) -> bool:
    """Whether a container in this ipc mode has a ``/dev/shm`` of its own."""
    return ipc_mode in ("private", "shareable")


def _check_work(wrong: Wrong, spec: LaunchSpec) -> None:
    for option, message in wrong_together(spec.work, spec.command, network=spec.network):
        wrong(option, message)
    if spec.work.kind is Kind.JUPYTER and any(variable.name == "JUPYTER_TOKEN" for variable in spec.variables):
        wrong("--env", f"a token there is seen by who can inspect; give a file by --secret {TOKEN_NAME}=FILE")


def _check_twice(wrong: Wrong, spec: LaunchSpec) -> None:
    targets = [*(m.target for m in spec.mounts), *(t.target for t in spec.tmpfs), *(s.target for s in spec.secrets)]
    for target in dict.fromkeys(target for target in targets if targets.count(target) > 1):
        wrong("--volume", f"{shown(target)} is mounted twice")
    taken = [(port.host_ip, port.host_port, port.protocol) for port in spec.ports if port.host_port]
    for place in dict.fromkeys(place for place in taken if taken.count(place) > 1):
        wrong("--publish", f"{place[0]}:{place[1]}/{place[2]} is given twice")

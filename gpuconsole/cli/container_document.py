"""Containers as JSON: the fields that ``ps --json`` and ``inspect --json`` promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuconsole.images.facts import ImageFacts
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.endings import describe_ending, state_words
from gpuconsole.services.imagenames import written_name
from gpuconsole.services.secrets import mask_arguments, mask_environment, mask_text, mask_value
from gpuconsole.services.tunnels import Server, tunnel

if TYPE_CHECKING:
    from gpuconsole.services.session import Session


def endpoint_part(session: Session) -> dict[str, Any]:
    """Where the engine is, and whether this machine's GPUs and paths are its own."""
    endpoint = session.endpoint
    return {"url": mask_text(endpoint.url), "source": endpoint.source, "local": session.engine.info().local}


def listed(view: ContainerView, *, now: float) -> dict[str, Any]:
    """One container as ``ps --json`` lists it."""
    container, usage = view.container, view.usage
    unknown = dict(view.unknown)
    why = unknown.pop("usage", None)
    if why is not None:
        unknown |= {"cpu_pct": why, "memory_bytes": why}
    elif usage is not None and usage.cpu_pct is None:
        unknown["cpu_pct"] = "it takes two looks"
    return {
        "id": container.id,
        "name": container.name,
        "image": written_name(container),
        "image_id": container.image_id,
        "image_digest": view.image_digest,
        "state": container.state,
        "status": state_words(container, now=now),
        "health": container.health,
        "gpus": view.gpus,
        "gpu_memory_bytes": view.gpu_memory_bytes,
        "cpu_pct": None if usage is None else usage.cpu_pct,
        "memory_bytes": None if usage is None else usage.memory_bytes,
        "memory_limit_bytes": container.memory_limit_bytes,
        "user": view.user,
        "created_at": container.created_at,
        "started_at": container.started_at,
        "finished_at": container.finished_at,
        "exit_code": container.exit_code,
        "oom_killed": container.oom_killed,
        "ending": describe_ending(container),
        "unknown": unknown,
    }


def inspected(view: ContainerView, *, facts: ImageFacts | None, server: Server, now: float) -> dict[str, Any]:
    """One container as ``inspect --json`` shows it; secrets masked."""
    container = view.container
    return listed(view, now=now) | {
        "image_facts": facts,
        "pid": container.pid,
        "command": mask_arguments(container.command),
        "entrypoint": mask_arguments(container.entrypoint),
        "working_dir": container.working_dir,
        "runs_as": container.user,
        "hostname": container.hostname,
        "tty": container.tty,
        "stdin": container.open_stdin,
        "environment": [{"name": name, "value": value} for name, value in mask_environment(container.environment)],
        "labels": {name: mask_value(name, value) for name, value in container.labels.items()},
        "mounts": container.mounts,
        "ports": [
            {
                "container_port": port.container_port,
                "protocol": port.protocol,
                "host_ip": port.host_ip,
                "host_port": port.host_port,
                "tunnel": tunnel(port, server),
            }
            for port in container.ports
        ],
        "networks": container.networks,
        "gpu_claims": container.gpu_claims,
        "runtime": container.runtime,
        "shm_bytes": container.shm_bytes,
        "ipc_mode": container.ipc_mode,
        "cpu_limit": container.cpu_limit,
        "privileged": container.privileged,
        "restart_policy": container.restart_policy,
        "restart_count": container.restart_count,
        "auto_remove": container.auto_remove,
        "error": container.error,
    }

"""One container told to a person: what ``inspect`` prints without ``--json``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gpuconsole.core.text import gib, size
from gpuconsole.engine.model import Container, Port
from gpuconsole.images.facts import Fact, ImageFacts, Source
from gpuconsole.services.containers import ContainerGpu, ContainerView, FoundBy
from gpuconsole.services.endings import describe_ending, state_words
from gpuconsole.services.imagenames import written_name
from gpuconsole.services.secrets import mask_arguments, mask_environment, mask_value
from gpuconsole.services.tunnels import Server, is_open, tunnel

_TITLE = 12
_UNKNOWN = "–"


def inspection(view: ContainerView, *, facts: ImageFacts | None, server: Server, now: float) -> str:
    """The whole text."""
    container = view.container
    lines = [f"{container.name}  {state_words(container, now=now)}"]
    for title, texts in _sections(view, facts, server):
        for position, text in enumerate(texts):
            lines.append(f"  {title if position == 0 else '':{_TITLE}}{text}".rstrip())
    return "\n".join(lines)


def _sections(view: ContainerView, facts: ImageFacts | None, server: Server) -> Iterator[tuple[str, list[str]]]:
    container = view.container
    yield "id", [container.short_id]
    yield "ending", _some(describe_ending(container))
    yield "health", _some(container.health)
    known_by = f"digest {view.image_digest}" if view.image_digest else f"id {container.image_id}"
    yield "image", [written_name(container), known_by]
    yield "inside", _some(facts_line(facts))
    yield "command", _some(shlex.join(mask_arguments((*container.entrypoint, *container.command))))
    yield "GPUs", _gpus(view)
    yield "CPU", _some(_load(view))
    yield "user", [_user(view)]
    yield "directory", _some(container.working_dir)
    yield (
        "mounts",
        [
            f"{mount.source or mount.kind} → {mount.target}{' (read-only)' if mount.read_only else ''}"
            for mount in container.mounts
        ],
    )
    yield "ports", [line for port in container.ports for line in _port(port, server)]
    yield "limits", [_limits(container)]
    yield "restart", _some(_restart(container))
    yield "environment", _pairs(mask_environment(container.environment))
    yield "labels", _pairs((name, mask_value(name, value)) for name, value in sorted(container.labels.items()))


def _some(text: str | None) -> list[str]:
    return [text] if text else []


def _pairs(pairs: Iterator[tuple[str, str]] | tuple[tuple[str, str | None], ...]) -> list[str]:
    # A value of several lines would pass for further entries.
    return [name if value is None else f"{name}={_one_line(value)}" for name, value in pairs]


def _one_line(value: str) -> str:
    return value.replace("\n", "⏎").replace("\t", " ")


def facts_line(facts: ImageFacts | None) -> str:
    """Versions in one line, each with where it was read: ``torch 2.9.0 (env) · CUDA 12.8 (tag)``."""
    if facts is None:
        return ""
    named: list[tuple[str, Fact | None]] = [
        ("torch", facts.torch),
        ("CUDA", facts.cuda),
        ("cuDNN", facts.cudnn),
        ("NCCL", facts.nccl),
        ("Python", facts.python),
    ]
    words = [f"{name} {fact.value} ({fact.source})" for name, fact in named if fact is not None]
    looked = facts.torch.key if facts.torch is not None and facts.torch.source is Source.CHECK else None
    words += ["CPU only"] if facts.cpu_only else []
    return " · ".join([*words, *([f"seen in {looked}"] if looked else [])])


def _gpus(view: ContainerView) -> list[str]:
    if view.gpus is None:
        lines = [f"{_UNKNOWN} ({view.unknown.get('gpus', 'which ones is unknown')})"]
    elif not view.gpus:
        lines = ["none"]
    else:
        lines = [_gpu(gpu) for gpu in view.gpus]
        if "gpus" in view.unknown:
            lines.append(f"({view.unknown['gpus']})")
    if view.gpus == () and not view.gpu_memory_bytes:
        return lines
    if view.gpu_memory_bytes is not None:
        return [*lines, f"{gib(view.gpu_memory_bytes)} GiB held by its processes"]
    reason = view.unknown.get("gpu_memory_bytes", "unknown")
    return [*lines, f"GPU memory {_UNKNOWN} ({'for the same reason' if reason in ''.join(lines) else reason})"]


def _gpu(gpu: ContainerGpu) -> str:
    words = [str(gpu.index) if gpu.index is not None else "", gpu.name or "", gpu.mig_uuid or gpu.uuid or ""]
    if gpu.found_by is FoundBy.PROCESS:
        words.append("(seen there, though not asked for)")
    return "  ".join(word for word in words if word) or _UNKNOWN


def _load(view: ContainerView) -> str:
    usage = view.usage
    if usage is None:
        return "" if not view.container.running else f"{_UNKNOWN} ({view.unknown.get('usage', 'unknown')})"
    cpu = _UNKNOWN if usage.cpu_pct is None else f"{usage.cpu_pct:.0f} %"
    return f"{cpu} (100 % is one core), memory {size(usage.memory_bytes)}"


def _user(view: ContainerView) -> str:
    who = view.user or f"{_UNKNOWN} ({view.unknown.get('user', 'unknown')})"
    return f"{who}; inside as {view.container.user or 'root'}"


def _port(port: Port, server: Server) -> list[str]:
    inside = f"{port.container_port}/{port.protocol}"
    if port.host_port is None:
        return [f"{inside}  not published"]
    address = f"[{port.host_ip}]" if ":" in port.host_ip else port.host_ip or "*"
    line = f"{inside}  at {address}:{port.host_port}"
    through = tunnel(port, server)
    if through is None:
        return [f"{line}  (open to the network)" if is_open(port) else line]
    return [line, f"  from your own machine: {through}"]


def _limits(container: Container) -> str:
    memory = "no limit" if container.memory_limit_bytes is None else size(container.memory_limit_bytes)
    cpus = "no limit" if container.cpu_limit is None else f"{container.cpu_limit:g}"
    shm = f"shared memory {size(container.shm_bytes)}"
    ipc = f" · ipc {container.ipc_mode}" if container.ipc_mode else ""
    return f"memory {memory} · CPUs {cpus} · {shm}{ipc}{' · privileged' if container.privileged else ''}"


def _restart(container: Container) -> str:
    policy = container.restart_policy or "no"
    times = f", restarted {container.restart_count} times" if container.restart_count else ""
    return f"{policy}{times}{', removed when it ends' if container.auto_remove else ''}"

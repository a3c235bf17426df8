"""A container in full, the things one looks for first on top."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuconsole.core.text import gib, size
from gpuconsole.engine.model import Container, Mount, Port
from gpuconsole.gpu.forecast_model import Subject
from gpuconsole.gpu.names import short_name
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.images.facts import ImageFacts
from gpuconsole.services.containers import ContainerGpu, ContainerView, FoundBy
from gpuconsole.services.endings import describe_ending, state_words
from gpuconsole.services.imagenames import written_name
from gpuconsole.services.runs import Run
from gpuconsole.services.secrets import mask_arguments
from gpuconsole.services.tunnels import Server, is_open, tunnel
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present import details
from gpuconsole.tui.present import gpu as gpus
from gpuconsole.tui.present.benchbrief import bench_field
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.details import Field, Line, field, unknown
from gpuconsole.tui.present.gpumemory import processes_of
from gpuconsole.tui.present.imagedetails import facts_words
from gpuconsole.tui.present.outlook import MEMORY_OF, is_worth_telling, told
from gpuconsole.tui.theme import Glyphs


@dataclass(frozen=True, slots=True)
class Known:
    """What else is known when a container is shown."""

    now: float
    glyphs: Glyphs
    server: Server
    """How the engine's machine is reached, for ``ssh -L`` lines."""
    host: HostView | None = None
    facts: ImageFacts | None = None
    """Versions inside its image."""
    runs: Sequence[Run] = ()
    keys: Keymap = USUAL


def fields(view: ContainerView, known: Known) -> tuple[Field, ...]:
    """Everything known of a container."""
    container = view.container
    return (
        *_state(container, known.now),
        Field("GPUs", tuple(_gpus(view, known))),
        *_load(view),
        Field("forecast", tuple(_ahead(view, known.glyphs))),
        field("user", _user(view)),
        field("image", written_name(container), Cell(_digest(view), "dim")),
        field("inside", facts_words(known.facts)),
        details.check_field(
            known.runs, container.id, now=known.now, glyphs=known.glyphs, keys=known.keys, action="container.check"
        ),
        bench_field(
            known.runs, container.id, now=known.now, glyphs=known.glyphs, keys=known.keys, action="container.bench"
        ),
        field("command", shlex.join(mask_arguments((*container.entrypoint, *container.command)))),
        Field("ports", tuple(line for port in container.ports for line in _port(port, known.server))),
        Field("mounts", tuple(_mount(mount) for mount in container.mounts)),
        field("limits", _limits(container)),
        field("restart", _restart(container)),
        field("directory", container.working_dir),
        field("network", ", ".join(container.networks)),
        field("id", container.id),
        Field("environment", details.variables(container.environment)),
        Field("labels", details.labels(container.labels.items())),
    )


def _state(container: Container, now: float) -> tuple[Field, ...]:
    health = None
    if container.health:
        health = Cell(f"health: {container.health}", "risk" if container.health == "unhealthy" else "")
    ending = describe_ending(container)
    tone = "ok" if container.running else ("critical" if ending and container.exit_code else "dim")
    state = Cell(state_words(container, now=now), tone)  # type: ignore[arg-type]
    return (field("state", state, ending, health),)


def _digest(view: ContainerView) -> str:
    return f"digest {view.image_digest}" if view.image_digest else f"id {view.container.image_id}"


def _gpus(view: ContainerView, known: Known) -> list[Line]:
    if view.gpus is None:
        return [(unknown(view.unknown.get("gpus", "which ones cannot be told")),)]
    if not view.gpus and not view.gpu_memory_bytes:
        return [(Cell("none", "dim"),)]
    seen = {each.gpu.index: each for each in known.host.gpus} if known.host else {}
    lines = [_gpu(gpu, seen.get(gpu.index) if gpu.index is not None else None, known.glyphs) for gpu in view.gpus]
    if "gpus" in view.unknown:
        lines.append((Cell(f"({view.unknown['gpus']})", "dim"),))
    if view.gpu_memory_bytes is None:
        return [*lines, (Cell("its own memory "), unknown(view.unknown.get("gpu_memory_bytes")))]
    held = processes_of(view.container.id, known.host.gpus) if known.host else []
    return [*lines, (Cell(f"{gib(view.gpu_memory_bytes)} GiB held by its own processes"),), *held]


def _gpu(gpu: ContainerGpu, seen: GpuView | None, glyphs: Glyphs) -> Line:
    words = [str(gpu.index) if gpu.index is not None else "–", short_name(gpu.name)]
    name = Cell("  ".join(words) + "  ", "strong")
    tail = gpu.mig_uuid or gpu.uuid or ""
    if gpu.found_by is FoundBy.PROCESS:
        tail = f"{tail} (seen there, though not asked for)".strip()
    if seen is None:
        return name, Cell(tail, "dim")
    state = gpus.state_cell(seen, glyphs)
    live = [Cell(f"  {gpus.utilization_cell(seen.gpu).text}  "), Cell(f"{gpus.memory_cell(seen).text} GiB  ")]
    return name, Cell(state.text.strip(), state.tone), *live, Cell(tail, "dim")


def _load(view: ContainerView) -> tuple[Field, ...]:
    usage = view.usage
    if usage is None:
        return (field("CPU", unknown(view.unknown.get("usage"))),) if view.container.running else ()
    cpu = unknown("it takes two looks") if usage.cpu_pct is None else Cell(f"{usage.cpu_pct:.0f} % (100 is one core)")
    limit = view.container.memory_limit_bytes
    memory = f"{size(usage.memory_bytes)}{f' of {size(limit)}' if limit else ''}"
    processes = "" if usage.pids is None else f", {usage.pids} processes"
    return field("CPU", cpu), field("memory", memory + processes)


def _ahead(view: ContainerView, glyphs: Glyphs) -> Iterator[Line]:
    """Where its RAM, its shared memory and the GPU memory of its processes are going."""
    limited = view.container.memory_limit_bytes is not None
    for said in view.outlooks:
        if said.state is MemoryState.FREE or (said.subject is Subject.CONTAINER and not limited):
            continue
        if said.subject is not Subject.PROCESS or is_worth_telling(said):
            name = MEMORY_OF[said.subject] if said.pid is None else f"process {said.pid}"
            yield from told(said, glyphs, name)


def _user(view: ContainerView) -> Line:
    who = Cell(view.user) if view.user else unknown(view.unknown.get("user"))
    return who, Cell(f"; inside as {view.container.user or 'root'}", "dim")


def _port(port: Port, server: Server) -> list[Line]:
    inside = Cell(f"{port.container_port}/{port.protocol}  ", "strong")
    if port.host_port is None:
        return [(inside, Cell("not published", "dim"))]
    address = f"[{port.host_ip}]" if ":" in port.host_ip else port.host_ip or "*"
    through = tunnel(port, server)
    if through is None:
        open_to_all = is_open(port)
        words = f"at {address}:{port.host_port}{' (open to the network)' if open_to_all else ''}"
        return [(inside, Cell(words, "watch" if open_to_all else ""))]
    return [(inside, Cell(f"at {address}:{port.host_port}")), (Cell("  "), Cell(through, "accent"))]


def _mount(mount: Mount) -> Line:
    mode = " (read-only)" if mount.read_only else ""
    return (Cell(f"{mount.source or mount.kind} → {mount.target}{mode}"),)


def _limits(container: Container) -> str:
    memory = "no limit" if container.memory_limit_bytes is None else size(container.memory_limit_bytes)
    cpus = "no limit" if container.cpu_limit is None else f"{container.cpu_limit:g}"
    parts = [f"memory {memory}", f"CPUs {cpus}", f"shared memory {size(container.shm_bytes)}"]
    parts += [f"ipc {container.ipc_mode}"] if container.ipc_mode else []
    return " · ".join([*parts, *(["privileged"] if container.privileged else [])])


def _restart(container: Container) -> str:
    times = f", restarted {container.restart_count} times" if container.restart_count else ""
    return f"{container.restart_policy or 'no'}{times}{', removed when it ends' if container.auto_remove else ''}"

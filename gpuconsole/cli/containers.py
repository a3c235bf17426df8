"""``gpuconsole ps`` and ``inspect``; ``logs`` is beside them."""

from __future__ import annotations

import time

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.glyphs import glyphs_of_stdout
from gpuconsole.cli.logs import logs
from gpuconsole.cli.names import container_argument
from gpuconsole.cli.output import data, json_document, talk
from gpuconsole.cli.tables import Column, table
from gpuconsole.core.errors import ConsoleError
from gpuconsole.services.containers import ContainerGpu, ContainerView
from gpuconsole.services.endings import state_words

_COLUMNS = (
    Column("NAME", flexible=True),
    Column("IMAGE", flexible=True),
    Column("GPU"),
    Column("GPU GiB", align="right"),
    Column("CPU", align="right"),
    Column("RAM GiB", align="right"),
    Column("STATE"),
    Column("USER", flexible=True),
)
_UNKNOWN = "–"


@click.command(
    epilog="\b\nExamples:\n  gpuconsole ps\n  gpuconsole ps --running --filter pytorch\n"
    "  gpuconsole ps --json | jq '.containers[] | select(.gpu_memory_bytes > 0) | .name'"
)
@click.option("--json", "as_json", is_flag=True, help="A JSON document.")
@click.option("-a", "--all", "everything", is_flag=True, help="Also containers that ended; they are shown anyway.")
@click.option("-r", "--running", is_flag=True, help="Only containers that run.")
@click.option("--no-stats", is_flag=True, help="Leave CPU and memory out; quicker.")
@click.option("-f", "--filter", "text", default="", metavar="TEXT", help="Only those with TEXT in a column.")
@pass_settings
def ps(settings: Settings, as_json: bool, everything: bool, running: bool, no_stats: bool, text: str) -> None:
    """List containers with their GPUs, GPU memory, CPU, memory and user, the newest first.

    All containers are listed, those that ended too: how a run ended is what one looks for in the morning. CPU is in
    per cent of one core. A dash is "unknown" or "does not apply"; --json says why.
    """
    from gpuconsole.services.containers import containers

    session = settings.session()
    if everything and running:
        raise click.UsageError("--all and --running exclude each other.")
    views = containers(session, usage=not no_stats, everything=not running)
    now = time.time()
    kept = [view for view in views if _matches(view, text, now)]
    if as_json:
        from gpuconsole.cli.container_document import endpoint_part, listed

        entries = [listed(view, now=now) for view in kept]
        json_document("ps", endpoint=endpoint_part(session), containers=entries)
        return
    if kept:
        data(glyphs_of_stdout().text(table(_COLUMNS, [row(view, now=now) for view in kept])))
    else:
        talk(f"No container matches {text!r}." if views else f"No containers at {session.endpoint.url}.")
    _tell_unknown(kept)


def _matches(view: ContainerView, text: str, now: float) -> bool:
    uuids = [uuid for gpu in view.gpus or () for uuid in (gpu.uuid, gpu.mig_uuid) if uuid]
    hay = [*row(view, now=now), view.container.image, view.container.id, *uuids]
    return not text or any(text.lower() in cell.lower() for cell in hay)


def _tell_unknown(views: list[ContainerView]) -> None:
    """Say once why GPU memory is missing where it would matter."""
    reasons = [
        view.unknown["gpu_memory_bytes"]
        for view in views
        if view.container.running and view.gpus != () and "gpu_memory_bytes" in view.unknown
    ]
    for reason in dict.fromkeys(reasons):
        talk(f"GPU memory unknown: {reason.rstrip('.')}.")


def row(view: ContainerView, *, now: float) -> tuple[str, ...]:
    """The cells of one container."""
    usage = view.usage
    has_gpus = view.gpus is None or len(view.gpus) > 0
    return (
        view.container.name,
        view.image,
        gpu_cell(view.gpus),
        _gib_cell(view.gpu_memory_bytes) if has_gpus else _UNKNOWN,
        _UNKNOWN if usage is None or usage.cpu_pct is None else f"{usage.cpu_pct:.0f} %",
        _gib_cell(usage.memory_bytes) if usage is not None else _UNKNOWN,
        state_words(view.container, now=now),
        view.user or _UNKNOWN,
    )


def _gib_cell(size: int | None) -> str:
    if size is None:
        return _UNKNOWN
    value = size / 2**30
    return "<0.1" if 0 < value < 0.05 else f"{value:.1f}"


def gpu_cell(gpus: tuple[ContainerGpu, ...] | None) -> str:
    """GPUs in few characters: ``0``, ``0,2``, ``0-7``; ``?`` when it has some and which is unknown."""
    if gpus is None:
        return "?"
    indices = sorted({gpu.index for gpu in gpus if gpu.index is not None})
    parts = _ranges(indices)
    parts += sorted({(gpu.uuid or gpu.mig_uuid or "?")[:8] for gpu in gpus if gpu.index is None})
    return ",".join(parts) or _UNKNOWN


def _ranges(indices: list[int]) -> list[str]:
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return [f"{start}-{end}" if end - start > 1 else ",".join(map(str, range(start, end + 1))) for start, end in runs]


@click.command(
    epilog="\b\nExamples:\n  gpuconsole inspect train\n  gpuconsole inspect train --json | jq .container.ports[].tunnel"
)
@container_argument
@click.option("--json", "as_json", is_flag=True, help="A JSON document.")
@pass_settings
def inspect(settings: Settings, name: str, as_json: bool) -> None:
    """Show all about one container: GPUs, mounts, ports, limits, environment.

    What looks like a secret is masked, in the environment, in the command and in labels; with --json too. Each port
    on loopback comes with the ssh line that brings it to the machine you sit at.
    """
    from gpuconsole.cli.container_document import endpoint_part, inspected
    from gpuconsole.cli.inspection import inspection
    from gpuconsole.services.containers import view as join_view
    from gpuconsole.services.images import known_facts
    from gpuconsole.services.naming import find
    from gpuconsole.services.seenimages import seen_images
    from gpuconsole.services.tunnels import server_of

    session = settings.session()
    container = find(session.engine, name)
    view = join_view(session, [container])[0]
    try:
        image = session.engine.image(container.image_id)
        facts = known_facts(image, seen=seen_images().get(image.id))
    except ConsoleError:  # the image may be gone; the container runs on without
        facts = None
    server = server_of(session.endpoint.url)
    now = time.time()
    if as_json:
        entry = inspected(view, facts=facts, server=server, now=now)
        json_document("inspect", endpoint=endpoint_part(session), container=entry)
    else:
        data(glyphs_of_stdout().text(inspection(view, facts=facts, server=server, now=now)))


__all__ = ["inspect", "logs", "ps"]

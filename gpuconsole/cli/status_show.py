"""What ``gpuconsole status`` shows: every GPU, and who holds it; for people, for tmux, and as JSON."""

from __future__ import annotations

import os

from gpuconsole.cli.glyphs import glyphs_of_stdout
from gpuconsole.cli.output import data, json_data
from gpuconsole.core.errors import DriverMissing, ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gpuconsole.cli.settings import Settings
    from gpuconsole.host.account import Account, Share
    from gpuconsole.host.model import GpuView, HostView
    from gpuconsole.services.overview import Overview


def show_status(settings: Settings, *, as_json: bool = False, watch: float | None = None, tmux: bool = False) -> int:
    """Look and write; returns the exit code.

    Args:
        settings: Lead to the GPUs.
        as_json: As JSON.
        watch: Seconds between looks, until ctrl+c; None for one.
        tmux: One line for tmux's ``status-right``.

    Raises:
        DriverMissing: A person asked, and there is nothing to show.
    """
    if tmux:
        return _for_tmux(settings)
    from gpuconsole.services.overview import Overview

    overview = Overview(settings.session(one_look=watch is None), remembering=True)
    if watch is not None:
        _watch(overview, as_json=as_json, every_s=watch)
        return ExitCode.OK
    view = overview.look()
    if as_json:
        json_data(_schema() | document_of(view))
    else:
        _for_people(overview, view)
    return ExitCode.OK if view.snapshot.problem is None else ExitCode.NO_GPU


def _for_tmux(settings: Settings) -> int:
    from gpuconsole.cli.status_line import tmux_line
    from gpuconsole.services.glance import glance

    seen = glance(settings.session(one_look=True))
    data(glyphs_of_stdout().text(tmux_line(seen, colour=not os.environ.get("NO_COLOR"))))
    return ExitCode.OK if seen.snapshot.problem is None else ExitCode.NO_GPU


def _for_people(overview: Overview, view: HostView) -> None:
    from gpuconsole.cli.status_table import overview_text
    from gpuconsole.host.processes import FIRST_LOOK

    snapshot = view.snapshot
    if snapshot.problem is not None:
        raise DriverMissing(snapshot.problem, hint=snapshot.hint or "")
    # CPU use is what happens between two looks. Who watches may have shared it; else all of it is what ps says.
    averaged = any(one.unknown.get("cpu_pct") == FIRST_LOOK for entry in view.gpus for one in entry.holders)
    if averaged:
        view = overview.averaged(view)
    data(overview_text(view, glyphs_of_stdout(), averaged=averaged))


def _watch(overview: Overview, *, as_json: bool, every_s: float) -> None:
    from gpuconsole.cli.status_watch import repeat, screen
    from gpuconsole.services.sharedwatch import SharedWatch

    watched = SharedWatch(overview, every_s=every_s)

    if as_json:
        json_data(_schema(), indent=None)
        repeat(lambda: json_data(document_of(watched.look()), indent=None), every_s=every_s)
        return
    from gpuconsole.cli.status_table import overview_text

    with screen() as show:
        repeat(lambda: show(overview_text(watched.look(), glyphs_of_stdout())), every_s=every_s)


def _schema() -> dict[str, str]:
    from gpuconsole.core.document import SCHEMA_VERSION

    return {"schema": f"gpuconsole.status/{SCHEMA_VERSION}"}


def document_of(view: HostView) -> dict[str, Any]:
    """The view as JSON's own types: what ``--json`` prints, less the schema."""
    from gpuconsole.core.document import jsonable

    snapshot = view.snapshot
    return {
        "taken_at": snapshot.taken_at,
        "driver_version": snapshot.driver_version,
        "cuda_version": snapshot.cuda_version,
        "nvml_version": snapshot.nvml_version,
        "problem": snapshot.problem,
        "hint": snapshot.hint,
        "reason": snapshot.reason,
        "unknown": jsonable(snapshot.unknown),
        "notes": list(view.notes),
        "gpus": [_gpu(entry) for entry in view.gpus],
    }


def _gpu(entry: GpuView) -> dict[str, Any]:
    from gpuconsole.core.document import jsonable
    from gpuconsole.host.accounting import account_in
    from gpuconsole.host.state import ahead_of, memory_state

    body: dict[str, Any] = jsonable(entry.gpu)
    instances = dict(enumerate(entry.instances))
    for place, (mig, instance) in enumerate(zip(body["migs"], entry.gpu.migs, strict=True)):
        mig["unattributed_bytes"] = instance.unattributed_bytes
        mig["account"] = _account(instances[place], entry) if place in instances else None
    said = ahead_of(entry)
    return body | {
        "holders": jsonable(entry.holders),
        "unattributed_bytes": entry.unattributed_bytes,
        "given_to": list(entry.given_to),
        "state": memory_state(entry).value,
        "eta_s": None if said is None else said.eta_s,
        "why": None if said is None else said.why,
        "account": _account(account_in(entry), entry),
        "unknown": {**entry.gpu.unknown, **entry.unknown},
    }


def _account(account: Account, entry: GpuView) -> dict[str, Any]:
    """Where the bytes are, ``parts`` adding up to ``total_bytes``; beside it the processes' parts by who has them."""
    from gpuconsole.core.document import jsonable
    from gpuconsole.host.account import by_container, by_user

    containers = [
        {"container_id": one.container_id, "container_name": one.name if one.container_id else None} | _share(one)
        for one in by_container(account, entry.holders)
    ]
    users = [{"user": one.name, "uid": one.uid} | _share(one) for one in by_user(account, entry.holders)]
    body: dict[str, Any] = jsonable(account)
    return body | {"containers": containers, "users": users}


def _share(share: Share) -> dict[str, Any]:
    return {
        "bytes": share.bytes,
        "pids": list(share.pids),
        "visible": share.visible,
        "complete": share.complete,
    }

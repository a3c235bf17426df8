"""``gpuconsole status``: every GPU, and who holds it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.glyphs import glyphs_of_stdout
from gpuconsole.cli.output import data, json_data
from gpuconsole.cli.seconds import Seconds
from gpuconsole.core.document import SCHEMA_VERSION, jsonable
from gpuconsole.core.errors import DriverMissing, ExitCode
from gpuconsole.services.overview import Overview

if TYPE_CHECKING:
    from gpuconsole.host.account import Account, Share
    from gpuconsole.host.model import GpuView, HostView

_SCHEMA = f"gpuconsole.status/{SCHEMA_VERSION}"
_CPU_SPAN_S = 0.1
"""CPU use is what happens between two looks; a single ``status`` for people takes the second so much later."""


@click.command(
    epilog="\b\nExamples:\n  gpuconsole status                 # the GPUs, and who holds them\n"
    "  gpuconsole status --watch 5       # the same, anew every 5 seconds\n"
    "  gpuconsole status --json | jq '.gpus[] | {index, memory_used_bytes}'\n"
    "  set -g status-right '#(gpuconsole status --tmux)'    # in ~/.tmux.conf\n\n"
    "\b\nExit codes: 0 the GPUs were read, or a watch was ended; 3 no driver, no GPU, or no answer."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document; with --watch JSON Lines, the schema first.")
@click.option(
    "-w",
    "--watch",
    is_flag=False,
    flag_value=2.0,
    type=Seconds(0.5, 3600),
    metavar="[SECONDS]",
    help="Look again every SECONDS (2), until ctrl+c.",
)
@click.option("--tmux", is_flag=True, help="One line for tmux's status-right.")
@pass_settings
def status(settings: Settings, as_json: bool, watch: float | None, tmux: bool) -> int:
    """Show every GPU: use, memory, temperature, power, and who holds it.

    Memory that no process explains is "unattributed"; below the table stands why. What the driver does not tell is
    shown as a dash; --json has the reason, and for each GPU an account whose parts add up to its memory.

    Where memory is going takes more than one look: while a console of yours is open, or a --watch runs, each GPU's
    state is theirs, with the time until it is full. In --json that is state, eta_s and why of each GPU.
    """
    if tmux and (as_json or watch is not None):
        raise click.UsageError("--tmux goes with neither --json nor --watch; tmux itself asks again.")
    overview = Overview(settings.session(), remembering=True)
    if watch is not None:
        _watch(overview, as_json=as_json, every_s=watch)
        return ExitCode.OK
    view = overview.look()
    if as_json:
        json_data({"schema": _SCHEMA} | document_of(view))
    elif tmux:
        from gpuconsole.cli.status_table import tmux_line

        data(glyphs_of_stdout().text(tmux_line(view, colour=not os.environ.get("NO_COLOR"))))
    else:
        _for_people(overview, view)
    return ExitCode.OK if view.snapshot.problem is None else ExitCode.NO_GPU


def _for_people(overview: Overview, view: HostView) -> None:
    from gpuconsole.cli.status_table import overview_text

    snapshot = view.snapshot
    if snapshot.problem is not None:
        raise DriverMissing(snapshot.problem, hint=snapshot.hint or "")
    if any(entry.holders for entry in view.gpus):
        time.sleep(_CPU_SPAN_S)
        view = overview.look_at_holders(view)
    data(overview_text(view, glyphs_of_stdout()))


def _watch(overview: Overview, *, as_json: bool, every_s: float) -> None:
    from gpuconsole.cli.status_table import overview_text
    from gpuconsole.cli.status_watch import repeat, screen
    from gpuconsole.services.sharedwatch import SharedWatch

    watched = SharedWatch(overview, every_s=every_s)

    if as_json:
        json_data({"schema": _SCHEMA}, indent=None)
        repeat(lambda: json_data(document_of(watched.look()), indent=None), every_s=every_s)
        return
    with screen() as show:
        repeat(lambda: show(overview_text(watched.look(), glyphs_of_stdout())), every_s=every_s)


def document_of(view: HostView) -> dict[str, Any]:
    """The view as JSON's own types: what ``--json`` prints, less the schema."""
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

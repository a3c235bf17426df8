"""``gpuconsole status``: its options and its help."""

from __future__ import annotations

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.seconds import Seconds
from gpuconsole.cli.status_show import show_status


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

    CPU is what a process used between the last two looks of a --watch or of a console of yours that is open. Without
    these there is one look only, and the table has CPU AVG: since the process began, as ps counts it.

    Where memory is going takes more than one look: while a console of yours is open, or a --watch runs, each GPU's
    state is theirs, with the time until it is full. In --json that is state, eta_s and why of each GPU.
    """
    if tmux and (as_json or watch is not None):
        raise click.UsageError("--tmux goes with neither --json nor --watch; tmux itself asks again.")
    return show_status(settings, as_json=as_json, watch=watch, tmux=tmux)

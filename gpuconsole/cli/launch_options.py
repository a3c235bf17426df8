"""The options of ``gpuconsole launch`` that describe the container, under docker's names where docker has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

_FIELDS = {
    "volume": "volumes", "publish": "ports", "env": "environment", "env_file": "env_files", "workdir": "working_dir",
    "label": "labels", "ulimit": "ulimits", "mount": "mounts", "secret": "secrets", "device": "devices",
    "add_host": "extra_hosts", "nproc_per_node": "processes", "nnodes": "nodes", "rdzv_endpoint": "rendezvous",
    "rdzv_id": "rendezvous_id",
}  # fmt: skip
"""Option → field of the launch's options, where the two are called differently."""
_SWITCHES = ("interactive", "tty")

_MANY: dict[str, Any] = {"multiple": True}
_OPTIONS = (
    click.option("--kind", metavar="KIND", help="shell, jupyter, tensorboard, torchrun or script."),
    click.option("--gpus", metavar="GPUS", help="N, device=0,2, device=GPU-…, all, auto or none."),
    click.option("--name", metavar="NAME", help="Its name; made from the image's unless given."),
    click.option("-v", "--volume", metavar="HOST:CONTAINER[:ro]", help="A folder or named volume.", **_MANY),
    click.option("--mount", metavar="type=…,source=…,target=…", help="The same; paths may hold ':'.", **_MANY),
    click.option("--tmpfs", metavar="CONTAINER[:OPTIONS]", help="Memory as a folder: /tmp:size=8g.", **_MANY),
    click.option("-p", "--publish", metavar="[[IP:]HOST:]CONTAINER[/PROTO]", help="A port.", **_MANY),
    click.option("-e", "--env", metavar="NAME[=VALUE]", help="A variable; alone, from this shell.", **_MANY),
    click.option("--env-file", metavar="FILE", help="Variables from a file, a line each.", **_MANY),
    click.option("--secret", metavar="NAME=FILE", help="A file at /run/secrets/NAME; never shown.", **_MANY),
    click.option("-w", "--workdir", metavar="PATH", help="Where its command starts."),
    click.option(
        "-u", "--user", metavar="me|image|UID:GID", help="Who runs it: me (default with folders of the host) or image."
    ),
    click.option("--group-add", metavar="GROUP", help="A further group of its user.", **_MANY),
    click.option("--entrypoint", metavar="PROGRAM", help="In place of the image's; '' for none."),
    click.option("--shm-size", metavar="SIZE", help="Size of /dev/shm."),
    click.option("--ipc", metavar="MODE", help="private, host, shareable, none or container:NAME."),
    click.option("-m", "--memory", metavar="SIZE", help="Limit of its memory."),
    click.option("--cpus", metavar="N", help="Limit in cores."),
    click.option("--ulimit", metavar="NAME=SOFT[:HARD]", help="A resource limit.", **_MANY),
    click.option("--network", metavar="NAME", help="Network; bridge, host, none or a name."),
    click.option("--hostname", metavar="NAME", help="What it calls itself."),
    click.option("--add-host", metavar="NAME:ADDRESS", help="A line of its hosts file.", **_MANY),
    click.option("--device", metavar="/dev/X[:/dev/Y[:rwm]]", help="A device that is no GPU.", **_MANY),
    click.option("--restart", metavar="POLICY", help="no, on-failure[:N], unless-stopped or always."),
    click.option("-l", "--label", metavar="KEY=VALUE", help="A label.", **_MANY),
    click.option("--init/--no-init", default=None, help="A small init that reaps processes (default)."),
    click.option("-i", "--interactive", is_flag=True, help="Terminal and input, also with a command."),
    click.option("-t", "--tty", is_flag=True, help="The same as -i; both are always given together."),
    click.option("--rm/--no-rm", "auto_remove", default=None, help="Remove it when it ends."),
    click.option("--read-only/--no-read-only", default=None, help="Its own file system cannot be written."),
    click.option(
        "--privileged/--no-privileged", default=None, help="Every right of this machine; needs --force privileged."
    ),
    click.option("--logdir", metavar="PATH", help="For tensorboard: the folder of the runs, in the container."),
    click.option("--nproc-per-node", metavar="N", help="For torchrun: processes; one for each GPU unless given."),
    click.option("--nnodes", metavar="N", help="For torchrun: machines that work together."),
    click.option("--rdzv-endpoint", metavar="HOST:PORT", help="For torchrun: where they meet."),
    click.option("--rdzv-id", metavar="NAME", help="For torchrun: what they call their meeting."),
    click.option("--pull", metavar="missing|never|always", help="When to pull."),
    click.option("--gpu-path", metavar="auto|cdi|hook|runtime", help="The way GPUs take into it."),
    click.option("--force", metavar="RULE", help="Lift a refusal, as the refusal names it.", **_MANY),
)
"""In the order of ``--help``."""


def launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that describe a container."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def typed_fields(given: Mapping[str, Any], *, command: tuple[str, ...]) -> dict[str, Any]:
    """What was typed, as fields of a launch's options; what was not typed is not in it."""
    fields: dict[str, Any] = {
        _FIELDS.get(name, name): value
        for name, value in given.items()
        if name not in _SWITCHES and value is not None and value != ()
    }
    if any(given[name] for name in _SWITCHES):
        fields["interactive"] = True
    return fields | ({"command": command} if command else {})

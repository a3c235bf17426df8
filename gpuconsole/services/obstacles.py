"""What stands in a launch's way on the engine and on this machine: taken names, taken ports."""

from __future__ import annotations

from gpuconsole.core.errors import Conflict, NotFound
from gpuconsole.core.text import plain_line
from gpuconsole.engine.model import Container
from gpuconsole.engine.protocol import Engine
from gpuconsole.engine.request import PortRequest
from gpuconsole.host.ports import can_bind, listener
from gpuconsole.services.planning import LaunchPlan

_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  # compared with, never listened on
_TRIES_FOR_FREE = 100


class PortTaken(Conflict):
    """A port of the host is in use.

    Args:
        port: As it was wanted.
        holder: Who uses it.
        free: The next one that is free; None when that is not known.
    """

    def __init__(self, port: PortRequest, holder: str, free: int | None) -> None:
        super().__init__(
            f"Port {port.host_port} of {port.host_ip} is taken by {holder}.",
            hint=f"Publish {free} instead: -p {free}:{port.container_port}."
            if free
            else f"Publish another port, or let the engine choose: -p {port.container_port}.",
        )
        self.port = port
        self.free = free


def refuse_taken_name(engine: Engine, name: str | None) -> None:
    """Refuse a name that a container has, running or not.

    Raises:
        Conflict: It is taken; the hint says how to go on.
    """
    if name is None:
        return
    try:
        holder = engine.container(name)
    except NotFound:
        return
    if holder.name != name:  # a container whose id begins with these letters
        return
    running = holder.running
    raise Conflict(
        f"The name {name} is taken by a container {holder.short_id} that {'runs' if running else 'has ended'}.",
        hint=f"Join it by 'gpuconsole attach {name}', or choose another --name."
        if running
        else f"Start it by 'gpuconsole start {name}', remove it by 'gpuconsole rm {name}', or choose another --name.",
    )


def refuse_taken_ports(engine: Engine, plan: LaunchPlan) -> None:
    """Refuse host ports that are in use, and name who uses them.

    Raises:
        Conflict: A port is taken; the hint names the next free one.
    """
    for taken in taken_ports(engine, plan):
        raise taken


def taken_ports(engine: Engine, plan: LaunchPlan) -> tuple[PortTaken, ...]:
    """A refusal for each host port that is in use: by whom, and the next free one."""
    wanted = [port for port in plan.request.ports if port.host_port]
    running = engine.containers(everything=False) if wanted else ()
    found = []
    for port in wanted:
        holder = _container_on(port, running)
        if holder is None and plan.info.local and not plan.info.rootless:
            holder = _process_on(port)
        if holder is not None:
            free = _next_free(port, running) if plan.info.local else None
            found.append(PortTaken(port, holder, free))
    return tuple(found)


def _container_on(port: PortRequest, running: tuple[Container, ...]) -> str | None:
    for container in running:
        for published in container.ports:
            same = published.host_port == port.host_port and published.protocol == port.protocol
            if same and (
                published.host_ip == port.host_ip or published.host_ip in _EVERYWHERE or port.host_ip in _EVERYWHERE
            ):
                return f"the container {plain_line(container.name)}"
    return None


def _process_on(port: PortRequest) -> str | None:
    if can_bind(port.host_ip, port.host_port, protocol=port.protocol) is not False:
        return None
    process = listener(port.host_port, protocol=port.protocol)
    return str(process) if process else "a process of another user"


def _next_free(port: PortRequest, running: tuple[Container, ...]) -> int | None:
    taken = {published.host_port for container in running for published in container.ports}
    for number in range(port.host_port + 1, min(port.host_port + _TRIES_FOR_FREE, 65536)):
        if number not in taken and can_bind(port.host_ip, number, protocol=port.protocol):
            return number
    return None

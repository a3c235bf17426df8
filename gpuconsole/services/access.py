"""How a container is used through a browser: its address, its token, the tunnel from another machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuconsole.engine.model import Container, Port
from gpuconsole.engine.protocol import Engine
from gpuconsole.launch.fields import LOOPBACK
from gpuconsole.launch.labels import LAUNCH
from gpuconsole.launch.work import TOKEN_NAME, Kind
from gpuconsole.services.identities import write_files
from gpuconsole.services.notebooks import needs_token, sweep_tokens, token_mount, write_token
from gpuconsole.services.planning import LaunchPlan
from gpuconsole.services.tunnels import server_of, tunnel

_TITLES = {Kind.JUPYTER: "JupyterLab", Kind.TENSORBOARD: "TensorBoard"}
_PATHS = {Kind.JUPYTER: "lab"}
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  # compared with


@dataclass(frozen=True, slots=True)
class Access:
    """Where to point a browser."""

    title: str
    """``JupyterLab``."""
    url: str = field(repr=False)
    """With the token, where there is one: not for a log."""
    token_file: str | None = None
    """Where the token is kept."""
    tunnel: str | None = None
    """The ``ssh -L`` line for the machine one sits at; None when the port is not on loopback."""


def access_of(plan: LaunchPlan, container: Container | None, token: str | None) -> Access | None:
    """How the container of ``plan`` is used; None when its kind of work opens no port, or it has none by now."""
    kind, inside = plan.spec.work.kind, plan.spec.work.port
    if kind is None or inside is None:
        return None
    port = _port(plan, container, inside)
    if port is None or port.host_port is None:
        return None
    host = LOOPBACK if port.host_ip in _EVERYWHERE else port.host_ip
    host = f"[{host}]" if ":" in host else host
    query = f"?token={token}" if token else ""
    return Access(
        title=_TITLES[kind],
        url=f"http://{host}:{port.host_port}/{_PATHS.get(kind, '')}{query}",
        token_file=_token_file(plan),
        tunnel=tunnel(port, server_of(plan.info.endpoint)),
    )


def _port(plan: LaunchPlan, container: Container | None, inside: int) -> Port | None:
    if plan.spec.network == "host":
        return Port(inside, host_ip=LOOPBACK, host_port=plan.port or inside)
    published = container.ports if container is not None else ()
    known = [port for port in published if port.container_port == inside and port.host_port]
    asked = [Port(p.container_port, p.protocol, p.host_ip, p.host_port or None) for p in plan.request.ports]
    return next((port for port in (*known, *asked) if port.container_port == inside), None)


def _word(plan: LaunchPlan) -> str:
    return plan.request.labels[LAUNCH]


def _token_file(plan: LaunchPlan) -> str | None:
    if plan.spec.work.kind is not Kind.JUPYTER:
        return None
    own = next((secret.path for secret in plan.spec.secrets if secret.name == TOKEN_NAME), None)
    return own or token_mount(_word(plan)).source


def _selinux(plan: LaunchPlan) -> bool:
    return any("name=selinux" in option for option in plan.info.security_options)


def write_launch_files(engine: Engine, plan: LaunchPlan) -> str | None:
    """Make the small files that the container of ``plan`` is given, and return Jupyter's token if one was made.

    Raises:
        BadFile: The state folder cannot be written.
    """
    if plan.who is not None:
        write_files(engine, plan.spec, plan.who, plan.image.image, selinux=_selinux(plan))
    if not needs_token(plan.spec):
        return None
    sweep_tokens(engine, endpoint=plan.info.endpoint)
    return write_token(_word(plan), endpoint=plan.info.endpoint, selinux=_selinux(plan))


def write_line_files(engine: Engine, plan: LaunchPlan) -> None:
    """Make the small files that a printed form of ``plan`` names; a container made by hand keeps them.

    Raises:
        BadFile: The state folder cannot be written.
    """
    if plan.who is not None:
        write_files(engine, plan.spec, plan.who, plan.image.image, selinux=_selinux(plan))
    if needs_token(plan.spec):
        write_token(_word(plan), endpoint=None, selinux=_selinux(plan))

"""Containers: what the engine lists and what it says of each, as one description."""

from __future__ import annotations

import re
from types import MappingProxyType

from gpuconsole.core.errors import EngineRefused, NotFound
from gpuconsole.core.text import plain_line
from gpuconsole.engine.docker.answers import (
    Answer,
    labels,
    limit,
    line,
    lines,
    moment,
    objects,
    pairs,
    part,
    whole,
    words,
    yes,
)
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.errors import clean_daemon_error
from gpuconsole.engine.docker.gpus import gpu_claims
from gpuconsole.engine.model import Container, ContainerState, Mount, Port

_REFERENCE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
"""What a name, an id or the start of an id can be, with every engine."""


def list_containers(connection: Connection, *, everything: bool) -> tuple[Container, ...]:
    """All containers, or those that run, newest first. One that vanishes meanwhile is left out."""
    summaries = connection.ask(lambda client: client.containers(all=everything))
    found = []
    for summary in summaries:
        reference = summary.get("Id")
        if not isinstance(reference, str):
            continue
        try:
            found.append(_inspected(connection, reference, summary))
        except NotFound:
            continue
        except EngineRefused as error:
            # One that the engine itself cannot describe does not hide the others.
            found.append(described(MappingProxyType({}), summary, error=error.message))
    return tuple(sorted(found, key=lambda container: container.created_at or 0.0, reverse=True))


def find_container(connection: Connection, reference: str) -> Container:
    """The container with this name, id or unambiguous start of an id.

    Raises:
        NotFound: There is none, or more than one.
    """
    if not _REFERENCE.fullmatch(reference):
        # Never sent: in a request's path it would ask for something else (``..``), or could not be written at all.
        raise NotFound(f"There is no container {reference!r}.", hint="'gpuconsole ps' lists the names.")
    answer = connection.ask(lambda client: client.inspect_container(reference))
    found = str(answer.get("Id", ""))
    summaries = connection.ask(lambda client: client.containers(all=True, filters={"id": found}))
    return described(answer, next((item for item in summaries if item.get("Id") == found), MappingProxyType({})))


def _inspected(connection: Connection, reference: str, summary: Answer) -> Container:
    return described(connection.ask(lambda client: client.inspect_container(reference)), summary)


def described(inspection: Answer, summary: Answer, *, error: str | None = None) -> Container:
    """A container from its inspection and its line in the list; either may lack anything."""
    config, host, state = part(inspection, "Config"), part(inspection, "HostConfig"), part(inspection, "State")
    identity = line(inspection, "Id") or line(summary, "Id")
    condition = _state(line(state, "Status") or line(summary, "State"))
    lives = condition in (ContainerState.RUNNING, ContainerState.PAUSED, ContainerState.RESTARTING)
    environment = pairs(config, "Env")
    return Container(
        id=identity,
        name=_name(inspection, summary) or identity[:12],
        image=line(config, "Image") or line(summary, "Image"),
        image_id=line(inspection, "Image") or line(summary, "ImageID"),
        state=condition,
        status=line(summary, "Status"),
        health=_health(state),
        pid=limit(state, "Pid"),
        created_at=moment(inspection.get("Created") or summary.get("Created")),
        started_at=moment(state.get("StartedAt")),
        finished_at=moment(state.get("FinishedAt")),
        exit_code=None if lives else _exit_code(condition, state),
        oom_killed=yes(state, "OOMKilled"),
        error=error or clean_daemon_error(str(state.get("Error") or "")) or None,
        restart_count=whole(inspection, "RestartCount") or 0,
        command=words(config, "Cmd"),
        entrypoint=words(config, "Entrypoint"),
        environment=environment,
        working_dir=line(config, "WorkingDir"),
        user=line(config, "User"),
        hostname=line(config, "Hostname"),
        labels=labels(config) or labels(summary),
        mounts=_mounts(inspection, host),
        ports=_ports(inspection, config, host),
        networks=tuple(plain_line(str(name)) for name in part(inspection, "NetworkSettings", "Networks")),
        gpu_claims=gpu_claims(host, environment),
        runtime=line(host, "Runtime"),
        shm_bytes=limit(host, "ShmSize"),
        ipc_mode=line(host, "IpcMode"),
        memory_limit_bytes=limit(host, "Memory"),
        cpu_limit=_cpu_limit(host),
        restart_policy=_restart_policy(part(host, "RestartPolicy")),
        auto_remove=yes(host, "AutoRemove"),
        privileged=yes(host, "Privileged"),
        tty=yes(config, "Tty"),
        open_stdin=yes(config, "OpenStdin"),
        init=yes(host, "Init") if host.get("Init") is not None else None,
        read_only=yes(host, "ReadonlyRootfs"),
        ulimits=tuple(
            f"{line(one, 'Name')}={whole(one, 'Soft')}:{whole(one, 'Hard')}" for one in objects(host, "Ulimits")
        ),
        group_add=lines(host, "GroupAdd"),
        devices=tuple(
            ":".join(line(one, key) for key in ("PathOnHost", "PathInContainer", "CgroupPermissions"))
            for one in objects(host, "Devices")
        ),
        extra_hosts=lines(host, "ExtraHosts"),
        tmpfs=tuple(
            plain_line(f"{target}:{options}" if options else str(target))
            for target, options in part(host, "Tmpfs").items()
        ),
    )


def _name(inspection: Answer, summary: Answer) -> str:
    named = line(inspection, "Name").lstrip("/")
    if named:
        return named
    # A container also goes by the names that links to it have, which hold a second slash.
    own = [name.lstrip("/") for name in lines(summary, "Names") if name.count("/") <= 1]
    return own[0] if own else ""


def _state(word: str) -> ContainerState:
    try:
        return ContainerState(word.lower())
    except ValueError:
        # Podman's words for the same.
        return {"configured": ContainerState.CREATED, "stopped": ContainerState.EXITED}.get(
            word.lower(), ContainerState.UNKNOWN
        )


def _health(state: Answer) -> str | None:
    word = line(part(state, "Health"), "Status")
    return word if word and word != "none" else None


def _exit_code(condition: ContainerState, state: Answer) -> int | None:
    """Exit code of one that has ended; one that never ran has none, unless its start failed."""
    code = whole(state, "ExitCode")
    return None if condition is ContainerState.CREATED and not code else code


def _mounts(inspection: Answer, host: Answer) -> tuple[Mount, ...]:
    found = [
        Mount(
            kind=line(mount, "Type") or "bind",
            source=(line(mount, "Name") if mount.get("Type") == "volume" else "") or line(mount, "Source"),
            target=line(mount, "Destination"),
            read_only=mount.get("RW") is False,
        )
        for mount in objects(inspection, "Mounts")
    ]
    targets = {mount.target for mount in found}
    for target, options in part(host, "Tmpfs").items():
        if target not in targets:
            found.append(
                Mount(
                    kind="tmpfs",
                    source="",
                    target=plain_line(str(target)),
                    read_only="ro" in str(options).split(","),
                )
            )
    return tuple(found)


def _ports(inspection: Answer, config: Answer, host: Answer) -> tuple[Port, ...]:
    published = part(inspection, "NetworkSettings", "Ports")
    if not published:
        published = MappingProxyType(dict.fromkeys([*part(config, "ExposedPorts"), *part(host, "PortBindings")]))
    found: list[Port] = []
    for key in published:
        number, _, protocol = str(key).partition("/")
        if not number.isdigit():
            continue
        bindings = objects(published, key)
        found += [
            Port(
                container_port=int(number),
                protocol=plain_line(protocol) or "tcp",
                host_ip=line(binding, "HostIp"),
                host_port=_port_number(binding),
            )
            for binding in bindings
        ] or [Port(container_port=int(number), protocol=plain_line(protocol) or "tcp")]
    return tuple(sorted(found, key=lambda port: (port.container_port, port.protocol, port.host_ip)))


def _port_number(binding: Answer) -> int | None:
    written = line(binding, "HostPort")
    return int(written) if written.isdigit() and int(written) else None


def _cpu_limit(host: Answer) -> float | None:
    nano = limit(host, "NanoCpus")
    if nano is not None:
        return nano / 1e9
    quota = limit(host, "CpuQuota")
    return None if quota is None else quota / (limit(host, "CpuPeriod") or 100_000)


def _restart_policy(policy: Answer) -> str:
    name, tries = line(policy, "Name"), limit(policy, "MaximumRetryCount")
    return f"{name}:{tries}" if name == "on-failure" and tries else name

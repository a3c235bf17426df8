"""Named volumes: which there are with a label, and removing one."""

from __future__ import annotations

from gpuconsole.core.errors import NotFound
from gpuconsole.engine.docker.answers import Answer, line, objects, part
from gpuconsole.engine.docker.connection import Connection


def volume_names(connection: Connection, *, label: str | None) -> frozenset[str]:
    """The names of all volumes, or of those with ``label``; those of anonymous ones are hexadecimal digits."""
    filters = {} if label is None else {"label": label}
    answer: Answer = connection.ask(lambda client: client.volumes(filters=filters))
    return frozenset(line(volume, "Name") for volume in objects(answer, "Volumes"))


def volume_folder(connection: Connection, name: str) -> str | None:
    """The path that a volume was made over (``docker volume create --opt o=bind --opt device=…``); None of another."""
    try:
        answer: Answer = connection.ask(lambda client: client.inspect_volume(name))
    except NotFound:
        return None
    options = part(answer, "Options")
    path = str(options.get("device", ""))
    words = {str(options.get("type", "")), *str(options.get("o", "")).split(",")}
    return path if path.startswith("/") and words & {"bind", "rbind"} else None


def remove_volume(connection: Connection, name: str) -> None:
    """Remove a volume that no container uses."""
    connection.tell(lambda client: client.remove_volume(name))

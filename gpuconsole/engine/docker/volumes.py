"""Named volumes: which there are with a label, and removing one."""

from __future__ import annotations

from gpuconsole.engine.docker.answers import Answer, line, objects
from gpuconsole.engine.docker.connection import Connection


def volume_names(connection: Connection, *, label: str | None) -> frozenset[str]:
    """The names of all volumes, or of those with ``label``; those of anonymous ones are hexadecimal digits."""
    filters = {} if label is None else {"label": label}
    answer: Answer = connection.ask(lambda client: client.volumes(filters=filters))
    return frozenset(line(volume, "Name") for volume in objects(answer, "Volumes"))


def remove_volume(connection: Connection, name: str) -> None:
    """Remove a volume that no container uses."""
    connection.tell(lambda client: client.remove_volume(name))

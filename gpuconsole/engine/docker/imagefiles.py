"""Small files of an image, read without running anything of it."""

from __future__ import annotations

import contextlib
import io
import secrets
import tarfile
from collections.abc import Iterable, Mapping, Sequence

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.engine.docker.answers import Answer, line
from gpuconsole.engine.docker.connection import Connection

_MOST_BYTES = 2**20
"""Of one file; who knows more users than fit in has a directory service."""
_READ_TIMEOUT_S = 60.0


def image_files(connection: Connection, reference: str, paths: Sequence[str]) -> Mapping[str, bytes]:
    """The contents of ``paths`` in an image; what is no plain file, too large, or not there is left out.

    For that the engine makes a container of it that is never started, and removes it.

    Raises:
        NotFound: There is no such image.
        ConsoleError: The engine does not make one, or does not answer.
    """
    body = {"Image": reference, "Cmd": ["-"], "Entrypoint": [""], "NetworkDisabled": True}
    name = f"gpuconsole-look-{secrets.token_hex(6)}"
    try:
        made: Answer = connection.tell(
            lambda client: client.create_container_from_config(body, name),  # type: ignore[no-untyped-call]
            timeout_s=_READ_TIMEOUT_S,
        )
        identity = line(made, "Id") or name
        return {path: content for path in paths if (content := _content(connection, identity, path)) is not None}
    finally:
        # Whatever interrupted it, and when no answer came as well.
        with contextlib.suppress(ConsoleError):
            connection.tell(lambda client: client.remove_container(name, force=True, v=True))


def _content(connection: Connection, container_id: str, path: str) -> bytes | None:
    try:
        chunks: Iterable[bytes] = connection.tell(lambda client: client.get_archive(container_id, path)[0])
        archive = bytearray()
        for chunk in chunks:
            archive += chunk
            if len(archive) > _MOST_BYTES:
                return None
        with tarfile.open(fileobj=io.BytesIO(bytes(archive))) as tar:
            member = tar.next()
            file = tar.extractfile(member) if member is not None and member.isfile() else None
            return file.read() if file is not None else None
    except (NotFound, tarfile.TarError):
        return None

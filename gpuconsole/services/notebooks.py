"""The token of a Jupyter container: made here, in a file that only its user and the container read."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from pathlib import Path

from gpuconsole.core.errors import BadFile, ConsoleError
from gpuconsole.core.files import write_whole
from gpuconsole.core.text import plain_line
from gpuconsole.engine.model import Mount
from gpuconsole.engine.protocol import Engine
from gpuconsole.launch.labels import LAUNCH
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.launch.work import TOKEN_NAME, Kind
from gpuconsole.services.launchfiles import launch_dir, let_containers_read, make_private

_FOLDER = "jupyter"
_TOKEN_BYTES = 24
_KEPT_S = 3600.0
"""A token is not looked at for so long: its container is being made, or is on an engine that does not answer now."""


def needs_token(spec: LaunchSpec) -> bool:
    """Whether a token is to be made: not when the caller brings one as a secret file."""
    return spec.work.kind is Kind.JUPYTER and all(secret.name != TOKEN_NAME for secret in spec.secrets)


def token_mount(word: str) -> Mount:
    """The file with the token, in its place in the container."""
    return Mount("bind", str(_path(word)), f"/run/secrets/{TOKEN_NAME}", True)


def _path(word: str) -> Path:
    return launch_dir() / _FOLDER / word / TOKEN_NAME


def write_token(word: str, *, endpoint: str | None, selinux: bool = False) -> str:
    """Make the token of a launch and return it.

    Args:
        word: The launch's own word.
        endpoint: The engine it is for, so that the token goes when its container is gone; None keeps it.
        selinux: The engine confines containers with SELinux.

    Raises:
        BadFile: The state folder cannot be written.
    """
    path = _path(word)
    if path.is_file():
        return path.read_text().strip()
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    try:
        make_private(path.parent)
        if endpoint is not None:
            write_whole(path.parent / "engine", endpoint)
        write_whole(path, token)
        let_containers_read(path, selinux=selinux)
    except OSError as error:
        raise BadFile(
            f"{plain_line(str(path.parent))} cannot be written ({error.strerror}), so Jupyter has no token.",
            hint="Make room, or give the folder to its user.",
        ) from error
    return token


def drop_token(word: str) -> None:
    """Remove the token of a launch that came to nothing."""
    shutil.rmtree(_path(word).parent, ignore_errors=True)


def sweep_tokens(engine: Engine, *, endpoint: str) -> None:
    """Remove the tokens whose containers are gone from this engine."""
    with contextlib.suppress(ConsoleError, OSError):
        old = [folder for folder in (launch_dir() / _FOLDER).iterdir() if _is_old(folder, endpoint)]
        if not old:
            return
        alive = {container.labels.get(LAUNCH) for container in engine.containers()}
        for folder in old:
            if folder.name not in alive:
                shutil.rmtree(folder, ignore_errors=True)


def _is_old(folder: Path, endpoint: str) -> bool:
    try:
        return (folder / "engine").read_text() == endpoint and time.time() - folder.stat().st_mtime > _KEPT_S
    except OSError:
        return False

"""Docker's own configuration: its folder, the context in force, and what a context says of its engine."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuconsole.core.errors import BadFile, NotFound
from gpuconsole.core.text import plain_line

DEFAULT_CONTEXT = "default"
"""The context that is not stored: environment variables and the default socket."""
TLS_FILES = ("ca.pem", "cert.pem", "key.pem")
"""Names of authority, certificate and key in any folder of Docker's."""
_MAKE_AGAIN = "Make the context again with 'docker context create'."


@dataclass(frozen=True, slots=True)
class StoredContext:
    """What a stored context says of its engine."""

    host: str
    """Empty when it names none, so the default one is meant."""
    tls: tuple[str, str, str] | None
    verify: bool


def config_folder(environ: Mapping[str, str]) -> Path:
    """Docker's configuration folder: ``DOCKER_CONFIG``, else ``~/.docker``."""
    named = environ.get("DOCKER_CONFIG")
    return Path(named) if named else Path(environ.get("HOME") or os.path.expanduser("~")) / ".docker"


def context_name(environ: Mapping[str, str]) -> tuple[str, str]:
    """The context in force, and where that was said: ``DOCKER_CONTEXT``, the file's path, or nowhere.

    Raises:
        BadFile: ``config.json`` is there but cannot be understood.
    """
    named = environ.get("DOCKER_CONTEXT")
    if named:
        return named, "DOCKER_CONTEXT"
    path = config_folder(environ) / "config.json"
    content = _object(path)
    if content is None:
        return DEFAULT_CONTEXT, ""
    current = content.get("currentContext", "")
    if not isinstance(current, str):
        raise BadFile(f"currentContext in {path} is not text.", hint="Set it with 'docker context use NAME'.")
    return (current, str(path)) if current else (DEFAULT_CONTEXT, "")


def load_context(name: str, environ: Mapping[str, str], *, said_by: str) -> StoredContext:
    """What the stored context ``name`` says.

    Args:
        name: Its name.
        environ: The environment, for the configuration folder.
        said_by: Where the name came from, for the message.

    Raises:
        NotFound: There is no such context.
        BadFile: Its file cannot be understood.
    """
    folder = config_folder(environ) / "contexts"
    key = hashlib.sha256(name.encode()).hexdigest()
    path = folder / "meta" / key / "meta.json"
    content = _object(path)
    if content is None:
        raise _unknown(name, folder, said_by)
    endpoint = content.get("Endpoints", {})
    endpoint = endpoint.get("docker", {}) if isinstance(endpoint, dict) else None
    if not isinstance(endpoint, dict):
        raise BadFile(f"Endpoints.docker in {path} is not an object.", hint=_MAKE_AGAIN)
    host = endpoint.get("Host", "")
    if not isinstance(host, str):
        raise BadFile(f"Endpoints.docker.Host in {path} is not text.", hint=_MAKE_AGAIN)
    verify = not endpoint.get("SkipTLSVerify", False)
    files = folder / "tls" / key / "docker"
    tls = tuple(str(file) if file.is_file() else "" for file in (files / name for name in TLS_FILES))
    if not any(tls) and verify:
        return StoredContext(host=host, tls=None, verify=True)
    return StoredContext(host=host, tls=(tls[0], tls[1], tls[2]), verify=verify)


def known_contexts(folder: Path) -> tuple[str, ...]:
    """Names of the contexts stored in ``folder``, sorted, the default one first; unreadable ones are left out."""
    names = []
    for path in sorted((folder / "meta").glob("*/meta.json")):
        try:
            content = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        name = content.get("Name") if isinstance(content, dict) else None
        if isinstance(name, str) and name:
            names.append(plain_line(name))
    return (DEFAULT_CONTEXT, *sorted(names))


def _unknown(name: str, folder: Path, said_by: str) -> NotFound:
    known = known_contexts(folder)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return NotFound(
        f"There is no Docker context {plain_line(name)!r}, which {said_by} names.",
        hint=f"{hint}Known contexts: {', '.join(known)}.",
    )


def _object(path: Path) -> dict[str, Any] | None:
    """The JSON object in ``path``; None when there is no such file.

    Raises:
        BadFile: It cannot be read, or holds something else.
    """
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error.strerror}.", hint="Look at its owner and mode.") from error
    if not raw.strip():
        return {}
    try:
        content = json.loads(raw)
    except json.JSONDecodeError as error:
        raise BadFile(
            f"{path} is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}.",
            hint="Correct it, or move it away: docker writes a new one.",
        ) from error
    except UnicodeDecodeError as error:
        raise BadFile(f"{path} is not text in UTF-8.", hint="Correct it, or move it away.") from error
    if not isinstance(content, dict):
        raise BadFile(f"{path} does not hold a JSON object.", hint="Correct it, or move it away.")
    return content

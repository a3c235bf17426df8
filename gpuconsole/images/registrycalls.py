"""How a registry is asked: over HTTP, with the token or login it wants; whatever it answers, one kind of error.

A registry asks who we are in one of two ways: by name and password, or by a token from a server it names. Public images
give a token to anybody; for others the caller brings what ``docker login`` left.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.images.findings import Trouble
from gpuconsole.images.reference import Reference

Login = Callable[[str], tuple[str, str] | None]
"""Registry → user and password, None without a login; a ConsoleError when they cannot be read."""
_TIMEOUT_S = 15.0
_MOST_BYTES = 4 * 2**20
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_SERVERS = {"docker.io": "registry-1.docker.io"}


class RegistryError(Exception):
    """No answer to go by, and why, in half a sentence."""

    def __init__(self, trouble: Trouble, text: str) -> None:
        super().__init__(text)
        self.trouble = trouble
        self.text = plain_line(text, limit=300)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a registry sent; nothing in it is checked yet."""

    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes

    def json(self) -> dict[str, Any]:
        """The object in the body.

        Raises:
            RegistryError: It is none.
        """
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise RegistryError(Trouble.ANSWER, "it sent no JSON") from error
        if not isinstance(value, dict):
            raise RegistryError(Trouble.ANSWER, "it sent JSON of another kind")
        return value


class Calls:
    """Asks registries and remembers their tokens; may be used by several threads at once.

    Args:
        login: What ``docker login`` left for a registry. Where that cannot be read, a registry is asked as by anybody.
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self._lock = threading.Lock()
        self._authorizations: dict[tuple[str, str], str] = {}
        self._schemes: dict[str, str] = {}
        self._unread: dict[str, str] = {}

    def login(self, registry: str) -> tuple[str, str] | None:
        """User and password for a registry; None also when they cannot be read."""
        try:
            return self._login(registry)
        except ConsoleError as error:
            self._unread[registry] = error.message.rstrip(".")
            return None

    def ask(self, reference: Reference, path: str, *, accept: str, method: str = "GET") -> Answer:
        """What the registry answers about ``path`` of the reference's repository.

        Args:
            reference: Its registry and repository are asked.
            path: Below the repository: ``manifests/1.0``.
            accept: The types of an answer that can be read.
            method: ``GET``, or ``HEAD`` for the headers alone.

        Raises:
            RegistryError: It has nothing there, refuses, cannot be reached, or answers what makes no sense.
        """
        registry, repository = reference.registry, reference.repository

        def get(authorization: str | None) -> Answer:
            return self._get(registry, f"/v2/{repository}/{path}", accept, authorization, method=method)

        try:
            return get(self._authorizations.get((registry, repository)))
        except urllib.error.HTTPError as error:
            if error.code != http.client.UNAUTHORIZED:
                raise self._refusal(error, registry) from error
            challenge = error.headers.get("WWW-Authenticate", "")
        # Tokens last some minutes only: one that was good before is replaced like one that was never there.
        authorization = self._authorization(reference, challenge)
        with self._lock:
            self._authorizations[registry, repository] = authorization
        try:
            return get(authorization)
        except urllib.error.HTTPError as error:
            raise self._refusal(error, registry) from error

    def _get(self, registry: str, path: str, accept: str, authorization: str | None, *, method: str) -> Answer:
        """Ask, by HTTPS; on this machine's own loopback also by HTTP, as an engine does."""
        server = _SERVERS.get(registry, registry)
        schemes = [self._schemes[registry]] if registry in self._schemes else ["https", "http"]
        if not _is_loopback(registry):
            schemes = ["https"]
        for scheme in schemes:
            try:
                answer = _fetch(f"{scheme}://{server}{path}", {"Accept": accept}, authorization, method=method)
            except urllib.error.HTTPError:
                self._schemes[registry] = scheme
                raise
            except (OSError, http.client.HTTPException) as error:
                if scheme is schemes[-1]:
                    raise RegistryError(Trouble.UNREACHED, _network_words(error)) from error
            else:
                self._schemes[registry] = scheme
                return answer
        raise AssertionError("there is always a last scheme")

    def _authorization(self, reference: Reference, challenge: str) -> str:
        kind, _, rest = challenge.partition(" ")
        registry = reference.registry
        login = self.login(registry)
        if kind.lower() == "basic":
            if login is None:
                why = self._unread.get(registry, "it asks for a login ('docker login' gives it one)")
                raise RegistryError(Trouble.REFUSED, why)
            return _basic(login)
        given = dict(_PARAMETER.findall(rest))
        realm = given.get("realm", "")
        if kind.lower() != "bearer" or not _may_be_asked(realm, registry):
            raise RegistryError(Trouble.ANSWER, f"it asks for a login in a way not known here ({kind or 'none named'})")
        query = {"service": given.get("service", ""), "scope": f"repository:{reference.repository}:pull"}
        try:
            answer = _fetch(f"{realm}?{urlencode(query)}", {}, _basic(login) if login else None)
        except urllib.error.HTTPError as error:
            raise self._refusal(error, registry) from error
        except (OSError, http.client.HTTPException) as error:
            raise RegistryError(Trouble.UNREACHED, _network_words(error)) from error
        body = answer.json()
        token = body.get("token") or body.get("access_token")
        if not isinstance(token, str) or not token.isprintable():
            raise RegistryError(Trouble.ANSWER, "its login server gave no token")
        return f"Bearer {token}"

    def _refusal(self, error: urllib.error.HTTPError, registry: str) -> RegistryError:
        code = error.code
        if code == http.client.NOT_FOUND:
            return RegistryError(Trouble.GONE, "it has no such image")
        if code in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            why = self._unread.get(registry, "it does not give it out without a login that may see it")
            return RegistryError(Trouble.REFUSED, why)
        if code == http.client.TOO_MANY_REQUESTS:
            return RegistryError(Trouble.LIMIT, "it has been asked too often; log in, or wait some hours")
        return RegistryError(Trouble.ANSWER, f"it answers {code} {error.reason}")


def _fetch(url: str, headers: Mapping[str, str], authorization: str | None, *, method: str = "GET") -> Answer:
    """One question.

    Raises:
        RegistryError: The address, or what came back, is none that can be used.
        OSError: HTTPError with a status that is no success, or the server cannot be reached.
        HTTPException: What the server speaks is not HTTP.
    """
    try:
        asked = urllib.request.Request(  # noqa: S310 - http or https
            url, headers={"User-Agent": "gpuconsole", **headers}, method=method
        )
        if authorization:
            # Not sent on: a blob may lie on another server.
            asked.add_unredirected_header("Authorization", authorization)
        with urllib.request.urlopen(asked, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            body = answer.read(_MOST_BYTES + 1)
            names = {name.lower(): value for name, value in answer.headers.items()}
    except ValueError as error:  # a host that is none, in a realm or a redirect; a token no header can carry
        raise RegistryError(Trouble.ANSWER, "it leads to an address that cannot be asked") from error
    if len(body) > _MOST_BYTES:
        raise RegistryError(Trouble.ANSWER, "it sent more than a manifest can be")
    return Answer(names, body)


def _may_be_asked(realm: str, registry: str) -> bool:
    """Whether a login may be shown to the server a registry names: never in the clear, but on loopback."""
    try:
        parts = urlsplit(realm)
    except ValueError:
        return False
    clear = parts.scheme == "http" and _is_loopback(registry) and _is_loopback(parts.netloc)
    return bool(parts.netloc) and (parts.scheme == "https" or clear)


def _is_loopback(registry: str) -> bool:
    try:
        host = urlsplit(f"//{registry}").hostname or ""
    except ValueError:
        return False
    return host == "localhost" or host == "::1" or re.fullmatch(r"127(?:\.\d{1,3}){3}", host) is not None


def _basic(login: tuple[str, str]) -> str:
    return "Basic " + base64.b64encode(":".join(login).encode()).decode()


def _network_words(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return f"it cannot be reached: {text}"

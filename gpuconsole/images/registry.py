"""What a registry says of an image: its digest, its platforms, its size. Asked over HTTP, nothing is pulled.

A registry asks who we are in one of two ways: by name and password, or by a token from a server it names. Public images
give a token to anybody; for others the caller brings what ``docker login`` left.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from gpuconsole.core.text import plain_line
from gpuconsole.images.findings import Trouble
from gpuconsole.images.reference import Reference

Login = Callable[[str], tuple[str, str] | None]
"""Registry → user and password, None without a login."""
_TIMEOUT_S = 15.0
_MOST_BYTES = 4 * 2**20
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_ACCEPT = ", ".join((*_INDEXES, *_MANIFESTS))
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_SERVERS = {"docker.io": "registry-1.docker.io"}
_TAG = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")
_PLATFORM = re.compile(r"^[a-z0-9]+/[a-z0-9]+(?:/[a-z0-9.]+)?$")


class RegistryError(Exception):
    """No answer to go by, and why, in half a sentence."""

    def __init__(self, trouble: Trouble, text: str) -> None:
        super().__init__(text)
        self.trouble = trouble
        self.text = plain_line(text, limit=300)


@dataclass(frozen=True, slots=True)
class Manifest:
    """An image as its registry describes it."""

    digest: str
    """``sha256:…`` of what the tag points to now."""
    sizes: Mapping[str, int]
    """Platform (``linux/amd64``) → compressed bytes of a pull."""
    layers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Platform → digest of each layer → its compressed bytes."""


@dataclass(frozen=True, slots=True)
class _Answer:
    headers: Mapping[str, str]
    body: bytes


class Registries:
    """Asks registries; may be used by several threads at once.

    Args:
        login: What ``docker login`` left for a registry.
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self._lock = threading.Lock()
        self._authorizations: dict[tuple[str, str], str] = {}
        self._schemes: dict[str, str] = {}

    def describe(self, reference: Reference) -> Manifest:
        """What the registry has under a tag or digest.

        Raises:
            RegistryError: It has nothing there, refuses, or cannot be reached.
        """
        answer = self._manifest(reference, reference.digest or reference.tag or "latest")
        digest = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
        said = answer.headers.get("docker-content-digest", digest)
        if said.startswith("sha256:") and said != digest:
            raise RegistryError(Trouble.ANSWER, "what it sent has not the digest it names")
        manifests = self._manifests(reference, _json(answer))
        return Manifest(
            digest=said,
            sizes={platform: _size(manifest) for platform, manifest in manifests.items()},
            layers={platform: _layers(manifest) for platform, manifest in manifests.items()},
        )

    def tags(self, reference: Reference) -> tuple[str, ...]:
        """The tags of its repository; of one with very many the registry may name the first thousands only.

        Raises:
            RegistryError: It has no such repository, refuses, or cannot be reached.
        """
        named = _json(self._ask(reference, "tags/list", accept="application/json")).get("tags")
        return (
            tuple(tag for tag in named if isinstance(tag, str) and _TAG.match(tag)) if isinstance(named, list) else ()
        )

    def has_login(self, registry: str) -> bool:
        """Whether there is a login for it."""
        return self._login(registry) is not None

    def _manifest(self, reference: Reference, what: str) -> _Answer:
        return self._ask(reference, f"manifests/{what}", accept=_ACCEPT)

    def _manifests(self, reference: Reference, manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """By platform."""
        if "manifests" not in manifest:
            return {self._platform(reference, manifest): manifest}
        found: dict[str, Mapping[str, Any]] = {}
        for each in _list(manifest["manifests"]):
            platform = _platform(each.get("platform"))
            # Attestations stand beside the images, as "unknown/unknown".
            if platform and not platform.startswith("unknown") and platform not in found:
                found[platform] = _json(self._manifest(reference, str(each.get("digest"))))
        return found

    def _platform(self, reference: Reference, manifest: Mapping[str, Any]) -> str:
        """Of a manifest by itself the platform stands in its configuration."""
        config = manifest.get("config")
        digest = config.get("digest") if isinstance(config, dict) else None
        if not isinstance(digest, str):
            raise RegistryError(Trouble.ANSWER, "its manifest names no configuration")
        platform = _platform(_json(self._ask(reference, f"blobs/{digest}", accept="*/*")))
        if platform is None:
            raise RegistryError(Trouble.ANSWER, "its configuration names no platform")
        return platform

    def _ask(self, reference: Reference, path: str, *, accept: str) -> _Answer:
        registry = reference.registry
        known = self._authorizations.get((registry, reference.repository))
        try:
            return self._get(registry, f"/v2/{reference.repository}/{path}", accept, known)
        except urllib.error.HTTPError as error:
            if error.code != http.client.UNAUTHORIZED or known is not None:
                raise _refusal(error) from error
            challenge = error.headers.get("WWW-Authenticate", "")
        authorization = self._authorization(reference, challenge)
        with self._lock:
            self._authorizations[registry, reference.repository] = authorization
        try:
            return self._get(registry, f"/v2/{reference.repository}/{path}", accept, authorization)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from error

    def _get(self, registry: str, path: str, accept: str, authorization: str | None) -> _Answer:
        """Ask, by HTTPS; on this machine's own loopback also by HTTP, as an engine does."""
        server = _SERVERS.get(registry, registry)
        schemes = [self._schemes[registry]] if registry in self._schemes else ["https", "http"]
        if not _is_loopback(registry):
            schemes = ["https"]
        for scheme in schemes:
            try:
                answer = _fetch(f"{scheme}://{server}{path}", {"Accept": accept}, authorization)
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
        login = self._login(reference.registry)
        if kind.lower() == "basic":
            if login is None:
                raise RegistryError(Trouble.REFUSED, "it asks for a login ('docker login' gives it one)")
            return _basic(login)
        given = dict(_PARAMETER.findall(rest))
        realm = given.get("realm", "")
        if kind.lower() != "bearer" or not _may_be_asked(realm, reference.registry):
            raise RegistryError(Trouble.ANSWER, f"it asks for a login in a way not known here ({kind or 'none named'})")
        query = {"service": given.get("service", ""), "scope": f"repository:{reference.repository}:pull"}
        try:
            answer = _fetch(f"{realm}?{urlencode(query)}", {}, _basic(login) if login else None)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise RegistryError(Trouble.UNREACHED, _network_words(error)) from error
        body = _json(answer)
        token = body.get("token") or body.get("access_token")
        if not isinstance(token, str) or not token.isprintable():
            raise RegistryError(Trouble.ANSWER, "its login server gave no token")
        return f"Bearer {token}"


def _fetch(url: str, headers: Mapping[str, str], authorization: str | None) -> _Answer:
    asked = urllib.request.Request(url, headers={"User-Agent": "gpuconsole", **headers})  # noqa: S310 - http or https
    if authorization:
        # Not sent on: a blob may lie on another server.
        asked.add_unredirected_header("Authorization", authorization)
    with urllib.request.urlopen(asked, timeout=_TIMEOUT_S) as answer:  # noqa: S310
        body = answer.read(_MOST_BYTES + 1)
        names = {name.lower(): value for name, value in answer.headers.items()}
    if len(body) > _MOST_BYTES:
        raise RegistryError(Trouble.ANSWER, "it sent more than a manifest can be")
    return _Answer(names, body)


def _may_be_asked(realm: str, registry: str) -> bool:
    """Whether a login may be shown to the server a registry names: never in the clear, but on loopback."""
    parts = urlsplit(realm)
    clear = parts.scheme == "http" and _is_loopback(registry) and _is_loopback(parts.netloc)
    return bool(parts.netloc) and (parts.scheme == "https" or clear)


def _is_loopback(registry: str) -> bool:
    host = urlsplit(f"//{registry}").hostname or ""
    return host == "localhost" or host == "::1" or re.fullmatch(r"127(?:\.\d{1,3}){3}", host) is not None


def _basic(login: tuple[str, str]) -> str:
    return "Basic " + base64.b64encode(":".join(login).encode()).decode()


def _refusal(error: urllib.error.HTTPError) -> RegistryError:
    code = error.code
    if code == http.client.NOT_FOUND:
        return RegistryError(Trouble.GONE, "it has no such image")
    if code in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        return RegistryError(Trouble.REFUSED, "it does not give it out without a login that may see it")
    if code == http.client.TOO_MANY_REQUESTS:
        return RegistryError(Trouble.LIMIT, "it has been asked too often; log in, or wait some hours")
    return RegistryError(Trouble.ANSWER, f"it answers {code} {error.reason}")


def _network_words(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return f"it cannot be reached: {text}"


def _json(answer: _Answer) -> dict[str, Any]:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise RegistryError(Trouble.ANSWER, "it sent no JSON") from error
    if not isinstance(value, dict):
        raise RegistryError(Trouble.ANSWER, "it sent JSON of another kind")
    return value


def _size(manifest: Mapping[str, Any]) -> int:
    parts = [manifest.get("config"), *_list(manifest.get("layers"))]
    sizes = [part.get("size") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise RegistryError(Trouble.ANSWER, "its manifest names no sizes")
    return sum(size for size in sizes if isinstance(size, int))


def _layers(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Those that name both digest and size; a layer that is there twice counts once, as in a pull."""
    rows = [(layer.get("digest"), layer.get("size")) for layer in _list(manifest.get("layers"))]
    return {digest: size for digest, size in rows if isinstance(digest, str) and isinstance(size, int)}


def _list(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _platform(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    text = "/".join(str(value[key]) for key in ("os", "architecture") if value.get(key))
    return text if _PLATFORM.match(text) else None

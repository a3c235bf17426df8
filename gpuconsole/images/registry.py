"""What a registry says of an image: its digest, its platforms, its size. Asked over HTTP, nothing is pulled.

A registry is a stranger: no digest, platform or size is taken from it unless it is written as one, and no content
unless it has the digest it was asked for by.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from gpuconsole.images.findings import Trouble
from gpuconsole.images.reference import Reference, is_content_digest, is_platform
from gpuconsole.images.registrycalls import Answer, Calls, Login, RegistryError

_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_ACCEPT = ", ".join((*_INDEXES, *_MANIFESTS))
_TAG = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_DIGEST_HEADER = "docker-content-digest"
_TOO_LARGE = 2**63


@dataclass(frozen=True, slots=True)
class Manifest:
    """An image as its registry describes it."""

    digest: str
    """``sha256:…`` of what the tag points to now."""
    platforms: tuple[str, ...]
    """``linux/amd64``: all it is published for, without variants of a processor."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Platform → compressed bytes of a pull; of those that were asked about."""
    layers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Platform → digest of each layer → its compressed bytes; of those that were asked about."""


class Registries:
    """Asks registries; may be used by several threads at once.

    Registries count what is fetched from them, and Docker Hub allows few manifests an hour: each question here costs
    no more of them than its answer needs.

    Args:
        login: What ``docker login`` left for a registry.
    """

    def __init__(self, login: Login) -> None:
        self._calls = Calls(login)

    def describe(self, reference: Reference, platform: str | None = None) -> Manifest:
        """What the registry has under a tag or digest.

        Args:
            reference: Which.
            platform: The one whose size and layers are wanted; None asks for all, one manifest each; empty for none.

        Raises:
            RegistryError: It has nothing there, refuses, or cannot be reached.
        """
        answer = self._calls.ask(reference, f"manifests/{_what(reference)}", accept=_ACCEPT)
        digest = _digest_of(answer, reference.digest)
        said = answer.json()
        if "manifests" in said:
            named = _named(said)
            wanted = {name: each for name, each in named.items() if platform in (None, name)}
            found = {name: self._content(reference, "manifests", each, accept=_ACCEPT) for name, each in wanted.items()}
            platforms = tuple(named)
        else:
            found = {self._platform(reference, said): said}
            platforms = tuple(found)
        return Manifest(
            digest=digest,
            platforms=platforms,
            sizes={name: _size(manifest) for name, manifest in found.items()},
            layers={name: _layers(manifest) for name, manifest in found.items()},
        )

    def digest(self, reference: Reference) -> str:
        """``sha256:…`` of what the tag or digest leads to now, for the least that a registry can be asked.

        Raises:
            RegistryError: As :meth:`describe`.
        """
        path = f"manifests/{_what(reference)}"
        try:
            said = self._calls.ask(reference, path, accept=_ACCEPT, method="HEAD").headers.get(_DIGEST_HEADER, "")
        except RegistryError as error:
            if error.trouble is not Trouble.ANSWER:
                raise
            said = ""  # some answer nothing of use without the content
        if is_content_digest(said) and reference.digest in (None, said):
            return said
        return _digest_of(self._calls.ask(reference, path, accept=_ACCEPT), reference.digest)

    def tags(self, reference: Reference) -> tuple[str, ...]:
        """The tags of its repository; of one with very many the registry may name the first thousands only.

        Raises:
            RegistryError: It has no such repository, refuses, or cannot be reached.
        """
        named = self._calls.ask(reference, "tags/list", accept="application/json").json().get("tags")
        return (
            tuple(tag for tag in named if isinstance(tag, str) and _TAG.match(tag)) if isinstance(named, list) else ()
        )

    def has_login(self, registry: str) -> bool:
        """Whether there is a login for it that can be read."""
        return self._calls.login(registry) is not None

    def _content(self, reference: Reference, kind: str, digest: object, *, accept: str) -> dict[str, Any]:
        """What the repository has under a digest that the registry named."""
        if not is_content_digest(digest):
            raise RegistryError(Trouble.ANSWER, "its manifest names a part by no digest")
        answer = self._calls.ask(reference, f"{kind}/{digest}", accept=accept)
        _digest_of(answer, str(digest))
        return answer.json()

    def _platform(self, reference: Reference, manifest: Mapping[str, Any]) -> str:
        """Of a manifest by itself the platform stands in its configuration."""
        config = manifest.get("config")
        if not isinstance(config, dict):
            raise RegistryError(Trouble.ANSWER, "its manifest names no configuration")
        platform = _platform(self._content(reference, "blobs", config.get("digest"), accept="*/*"))
        if platform is None:
            raise RegistryError(Trouble.ANSWER, "its configuration names no platform")
        return platform


def _what(reference: Reference) -> str:
    return reference.digest or reference.tag or "latest"


def _digest_of(answer: Answer, wanted: str | None) -> str:
    """The digest of what was sent, which is both what was wanted and what the registry says of it, if it says so."""
    digest = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
    if answer.headers.get(_DIGEST_HEADER, digest) != digest or wanted not in (None, digest):
        raise RegistryError(Trouble.ANSWER, "what it sent has not the digest it names")
    return digest


def _named(index: Mapping[str, Any]) -> dict[str, object]:
    """Platform → digest of its manifest, the first of each."""
    found: dict[str, object] = {}
    for each in _list(index["manifests"]):
        platform = _platform(each.get("platform"))
        # Attestations stand beside the images, as "unknown/unknown".
        if platform and not platform.startswith("unknown"):
            found.setdefault(platform, each.get("digest"))
    return found


def _size(manifest: Mapping[str, Any]) -> int:
    parts = [manifest.get("config"), *_list(manifest.get("layers"))]
    sizes = [part.get("size") if isinstance(part, dict) else None for part in parts]
    whole = sum(size for size in sizes if _is_size(size))
    if not all(_is_size(size) for size in sizes) or whole >= _TOO_LARGE:
        raise RegistryError(Trouble.ANSWER, "its manifest names no sizes")
    return whole


def _layers(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Those that name both digest and size; a layer that is there twice counts once, as in a pull."""
    rows = [(layer.get("digest"), layer.get("size")) for layer in _list(manifest.get("layers"))]
    return {digest: size for digest, size in rows if is_content_digest(digest) and _is_size(size)}


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_LARGE


def _list(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _platform(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    text = "/".join(str(value[key]) for key in ("os", "architecture") if value.get(key))
    return text if is_platform(text) else None

"""Image references: parsed as docker reads them, and written short enough for a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeGuard

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"^{_COMPONENT}(?:/{_COMPONENT})*\Z")
_DOMAIN = re.compile(
    r"^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])"
    r"(?::[0-9]+)?\Z"
)
_TAG = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_DIGEST = re.compile(r"^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-fA-F]{32,}\Z")
_IMAGE_ID = re.compile(r"^(?:sha256:)?[0-9a-f]{64}\Z")

_CONTENT = re.compile(r"^sha256:[0-9a-f]{64}\Z")
_PLATFORM = re.compile(r"^[a-z0-9]+/[a-z0-9]+(?:/[a-z0-9.]+)?\Z")

_HUB = "docker.io"
_HUB_ALIASES = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
_PYTORCH_TAG = re.compile(r"^(?P<torch>\d+\.\d+(?:\.\d+)?)-cuda(?P<cuda>\d+\.\d+)-cudnn\d+-(?P<kind>runtime|devel)$")
_NGC_TAG = re.compile(r"^(?P<month>\d\d\.\d\d)-py3(?P<rest>-\w+)?$")


@dataclass(frozen=True, slots=True)
class Reference:
    """``registry/repository:tag@digest``, with what docker leaves out filled in."""

    registry: str
    """``docker.io``, ``nvcr.io``, ``localhost:5000`` …"""
    repository: str
    """``pytorch/pytorch``; official images of Docker Hub under ``library/``."""
    tag: str | None = None
    digest: str | None = None
    """``sha256:…``."""

    def __str__(self) -> str:
        return self.name + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")

    @property
    def name(self) -> str:
        """Registry and repository as people write them: ``ubuntu``, ``pytorch/pytorch``, ``nvcr.io/nvidia/pytorch``."""
        if self.registry != _HUB:
            return f"{self.registry}/{self.repository}"
        short = self.repository.removeprefix("library/")
        first = self.repository.partition("/")[0]
        if "/" not in short:
            return short
        # Written without its registry, such a name would be read back as one of another registry.
        return f"{_HUB}/{self.repository}" if _is_domain(first) else self.repository


def is_image_id(text: str) -> bool:
    """Whether ``text`` is a whole image id and no reference."""
    return _IMAGE_ID.match(text) is not None


def is_content_digest(value: object) -> TypeGuard[str]:
    """Whether it is a digest of content as registries and engines give it: ``sha256:`` and 64 hexadecimal digits."""
    return isinstance(value, str) and _CONTENT.match(value) is not None


def is_platform(value: object) -> TypeGuard[str]:
    """Whether it is a platform, written as ``linux/amd64`` or ``linux/arm64/v8``."""
    return isinstance(value, str) and _PLATFORM.match(value) is not None


@lru_cache(maxsize=1024)  # those of the containers are asked for at every look
def parse(text: str) -> Reference:
    """The reference written as ``text``; without tag and digest the tag is ``latest``.

    Raises:
        ValueError: It is no image reference; the message says which part is wrong.
    """
    if is_image_id(text):
        raise ValueError(f"{text!r} is an image's id, not its name")
    rest, at, digest = text.partition("@")
    if at and not _DIGEST.match(digest):
        raise ValueError(f"{digest!r} is not a digest; it looks like sha256: and 64 hexadecimal digits")
    head, slash, last = rest.rpartition("/")
    last, colon, tag = last.partition(":")
    if colon and not _TAG.match(tag):
        raise ValueError(f"{tag!r} is not a tag; letters, digits, '_', '.' and '-' may be in it, 128 at most")
    registry, repository = _split(head + slash + last)
    if not _PATH.match(repository) or len(repository) > 255:
        raise ValueError(f"{text!r} is not an image name; it is lower case, like pytorch/pytorch:2.9.0")
    return Reference(
        registry=registry,
        repository=repository,
        tag=tag or (None if digest else "latest"),
        digest=digest or None,
    )


def _split(name: str) -> tuple[str, str]:
    """Registry and repository of ``name``, as docker tells them apart."""
    first, slash, rest = name.partition("/")
    if not slash or not _is_domain(first):
        registry, repository = _HUB, name
    elif _DOMAIN.match(first):
        registry, repository = (_HUB if first in _HUB_ALIASES else first), rest
    else:
        raise ValueError(f"{first!r} is not a registry")
    if registry == _HUB and "/" not in repository:
        repository = f"library/{repository}"
    return registry, repository


def _is_domain(first: str) -> bool:
    return "." in first or ":" in first or first == "localhost" or first != first.lower()


def short_digest(digest: str) -> str:
    """Enough of a digest to tell images in a table apart: ``@3fe1``."""
    return f"@{digest.rpartition(':')[2][:4]}"


def shorter(text: str) -> str:
    """A reference with the first twelve digits of its digest only, for what is read and not typed."""
    name, at, digest = text.partition("@")
    return f"{name}@{digest.rpartition(':')[2][:12]}" if at else text


@lru_cache(maxsize=1024)
def short(text: str, *, digest: str | None = None) -> str:
    """An image in few words: ``pytorch 2.9.0-cu128 @3fe1``, ``ngc 25.10 @a81c``, ``small 1``.

    Args:
        text: A reference or an id, from anywhere; what is no reference stays as it is.
        digest: The digest it is known to have, when ``text`` does not name it.
    """
    if is_image_id(text):
        return f"id {text.removeprefix('sha256:')[:12]}"
    try:
        reference = parse(text)
    except ValueError:
        return text
    words = [*_words(reference)]
    if known := digest or reference.digest:
        words.append(short_digest(known))
    return " ".join(words)


def _words(reference: Reference) -> tuple[str, ...]:
    tag = reference.tag or ""
    if is_pytorch(reference) and (match := _PYTORCH_TAG.match(tag)):
        kind = "" if match["kind"] == "runtime" else f"-{match['kind']}"
        return "pytorch", f"{match['torch']}-cu{match['cuda'].replace('.', '')}{kind}"
    if is_ngc_pytorch(reference) and (match := _NGC_TAG.match(tag)):
        return "ngc", f"{match['month']}{match['rest'] or ''}"
    last = reference.repository.rpartition("/")[2]
    return (last,) if tag in ("", "latest") else (last, tag)


def is_pytorch(reference: Reference) -> bool:
    """It is an official image of the PyTorch project."""
    return reference.repository == "pytorch/pytorch" and reference.registry in (_HUB, "ghcr.io")


def is_ngc_pytorch(reference: Reference) -> bool:
    """It is NVIDIA's PyTorch image."""
    return reference.registry == "nvcr.io" and reference.repository == "nvidia/pytorch"


@dataclass(frozen=True, slots=True)
class PytorchTag:
    """What the tag of an official PyTorch image says is inside."""

    torch: str
    cuda: str
    kind: str
    """``runtime`` or ``devel``."""


def pytorch_tag(reference: Reference) -> PytorchTag | None:
    """What the tag says, for an official image with a tag of the official form."""
    match = _PYTORCH_TAG.match(reference.tag or "") if is_pytorch(reference) else None
    return PytorchTag(torch=match["torch"], cuda=match["cuda"], kind=match["kind"]) if match else None


def ngc_month(reference: Reference) -> str | None:
    """``25.10`` of an NGC PyTorch image."""
    match = _NGC_TAG.match(reference.tag or "") if is_ngc_pytorch(reference) else None
    return match["month"] if match else None

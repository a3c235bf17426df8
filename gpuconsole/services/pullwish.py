"""What a wish to pull comes to: the reference itself, or what the folder's lock file holds it to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpuconsole.core.errors import NotFound
from gpuconsole.images.pins import Pin
from gpuconsole.images.reference import Reference, short_digest
from gpuconsole.services.lockfile import LockFile


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be pulled."""

    reference: Reference
    """With the digest, where a pin says it."""
    note: str = ""
    """A sentence about what may not be expected; empty when there is nothing."""


def as_pinned(reference: Reference, lock: LockFile, pins: Mapping[str, Pin]) -> Wish:
    """``reference`` as the lock file pins it; as it is where it is not pinned.

    Raises:
        NotFound: It is pinned by an id, which no registry knows.
    """
    pin = pins.get(str(reference))
    if pin is None:
        return Wish(reference)
    if pin.digest is None:
        raise NotFound(
            f"{lock.shown} pins {reference} by an id, and no registry knows that.",
            hint=f"Take the pin away to pull the tag: gpuconsole pin --remove {reference}",
        )
    note = f"{reference} is pulled as {lock.shown} pins it ({short_digest(pin.digest)})."
    return Wish(replace(reference, digest=pin.digest), note)

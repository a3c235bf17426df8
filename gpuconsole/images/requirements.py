"""``NVIDIA_REQUIRE_*``: what an image demands of driver and GPU, in the grammar of NVIDIA's hook.

A space is "or", a comma is "and", several variables must all hold; the properties are ``cuda``, ``driver``, ``arch``
and ``brand``. Versions are compared part by part, names without regard to case. The hook reads a demand from the left
and stops at the first alternative that holds, so a mistake behind it goes unnoticed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from gpuconsole.images.versions import Version, minor, version

_EXPRESSION = re.compile(r"^([^<>=!]+)(!=|<=|>=|=|<|>)([^<>=!].*)$")
_VERSION_TEXT = re.compile(r"^[0-9.]+$")
_PREFIX = "NVIDIA_REQUIRE_"
_OPERATORS: Mapping[str, Callable[[Version, Version], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


class Malformed(ValueError):
    """A demand NVIDIA's hook cannot read; it then refuses the container."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a machine has to meet a demand with. None is unknown."""

    driver: str | None = None
    cuda: str | None = None
    """The CUDA version of the driver."""
    cuda_is_exact: bool = True
    """False when the driver offers that version or a newer one."""
    arch: tuple[int, int] | None = None
    brand: str | None = None


def demands(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What a container with this environment demands; all of them must hold.

    An image that names its CUDA and has no ``NVIDIA_REQUIRE_CUDA`` demands that CUDA: so the hook treats images from
    before that variable.
    """
    if environment.get("NVIDIA_DISABLE_REQUIRE", "") in _TRUE:
        return ()
    found = [
        value
        for name, value in sorted(environment.items())
        if name.startswith(_PREFIX) and not name.startswith(f"{_PREFIX}JETPACK")
    ]
    cuda = environment.get("CUDA_VERSION", "")
    if version(cuda) and not environment.get(f"{_PREFIX}CUDA"):
        found.append(f"cuda>={minor(cuda)}")
    return tuple(text for text in found if text.strip())


@dataclass(frozen=True, slots=True)
class _Condition:
    """One ``property sign value``."""

    name: str
    sign: str
    wanted: str
    numbers: Version = ()
    mistake: str | None = None
    """What the hook would stumble over."""


def meets(demand: str, offer: Offer) -> bool | None:
    """Whether ``offer`` meets one demand; None when that depends on what is unknown.

    Raises:
        Malformed: The hook could not read what it had to read of it.
    """
    alternatives = _read(demand)
    unknown = False
    for conditions in alternatives:
        answer = _all_hold(conditions, offer)
        if answer:
            return True
        unknown = unknown or answer is None
    if not alternatives:
        return True
    return None if unknown else False


@lru_cache(maxsize=256)
def _read(demand: str) -> tuple[tuple[_Condition, ...], ...]:
    return tuple(tuple(_condition(part) for part in term.split(",") if part) for term in demand.split(" ") if term)


def _condition(text: str) -> _Condition:
    match = _EXPRESSION.match(text)
    if match is None:
        return _Condition("", "", "", mistake=f"{text!r} is no condition")
    name, sign, wanted = match[1].lower(), match[2], match[3]
    mistake = None
    if name == "brand":
        if sign not in ("=", "!="):
            mistake = f"{text!r}: names are equal or not"
        return _Condition(name, sign, wanted, mistake=mistake)
    if name not in ("cuda", "driver", "arch"):
        mistake = f"{match[1]!r} is nothing that can be demanded"
    elif not _VERSION_TEXT.match(wanted):
        mistake = f"{wanted!r} is no version"
    return _Condition(name, sign, wanted, () if mistake else _numbers(wanted), mistake)


def _all_hold(conditions: tuple[_Condition, ...], offer: Offer) -> bool | None:
    unknown = False
    for condition in conditions:
        answer = _holds(condition, offer)
        if answer is False:
            return False
        unknown = unknown or answer is None
    return None if unknown else True


def _holds(condition: _Condition, offer: Offer) -> bool | None:
    if condition.mistake is not None:
        raise Malformed(condition.mistake)
    if condition.name == "brand":
        if offer.brand is None:
            return None
        return (offer.brand.lower() == condition.wanted.lower()) == (condition.sign == "=")
    if condition.name == "cuda":
        return _compare_cuda(offer, condition.sign, condition.numbers)
    if condition.name == "driver":
        return None if offer.driver is None else _compare(version(offer.driver), condition.sign, condition.numbers)
    return None if offer.arch is None else _compare(offer.arch, condition.sign, condition.numbers)


def _compare_cuda(offer: Offer, sign: str, want: Version) -> bool | None:
    """With a CUDA version that is only a lower bound, what any newer one could change is unknown."""
    if offer.cuda is None:
        return None
    have = version(offer.cuda)
    if offer.cuda_is_exact:
        return _compare(have, sign, want)
    if sign in (">", ">=", "!="):
        return True if _compare(have, ">=" if sign == ">=" else ">", want) else None
    return False if _compare(have, ">=" if sign == "<" else ">", want) else None


def _numbers(text: str) -> Version:
    return tuple(int(part) for part in text.split(".") if part)


def _compare(have: Version, sign: str, wanted: Version) -> bool:
    return _OPERATORS[sign](_stripped(have), _stripped(wanted))


def _stripped(parts: Version) -> Version:
    while parts and parts[-1] == 0:
        parts = parts[:-1]
    return parts

"""``--gpus`` read as docker reads it, with ``auto`` and ``none`` besides, and without docker's traps."""

from __future__ import annotations

import csv
import re

from gpuconsole.launch.spec import GpuWish, GpuWishKind

_DEVICE = re.compile(r"[0-9]{1,9}(:[0-9]{1,9})?|(GPU|MIG)-[0-9a-zA-Z/-]+", re.IGNORECASE)
_WORDS = {kind.value: kind for kind in (GpuWishKind.NONE, GpuWishKind.AUTO, GpuWishKind.ALL)}
_FORMS = "write a number, device=0,2, device=GPU-…, all, auto or none"


def parse_gpus(text: str) -> GpuWish:
    """The GPUs that ``text`` asks for; quotes as docker's own command line needs them are allowed.

    Raises:
        ValueError: It asks for nothing that can be given; the message says what to write.
    """
    bare = text.strip()
    if len(bare) > 1 and bare[0] == bare[-1] == "'":
        bare = bare[1:-1].strip()
    try:
        fields = [part.strip() for part in next(csv.reader([" ".join(bare.split())]), [])]
    except csv.Error as error:
        raise ValueError(f"cannot be read; {_FORMS}") from error
    if not any(fields):
        raise ValueError(f"empty; {_FORMS}")
    if fields[0].lower().startswith("device="):
        return _devices(fields)
    if len(fields) > 1:
        raise ValueError(_several(bare, fields))
    return _one(fields[0])


def _several(bare: str, fields: list[str]) -> str:
    if all(_DEVICE.fullmatch(part) for part in fields):
        return f"a bare list means something else to docker; write device={','.join(fields)}"
    known = next((part for part in fields if not part.lower().startswith(("count=", "device="))), bare)
    return f"{known!r} cannot be chosen; {_FORMS}"


def _one(word: str) -> GpuWish:
    value = word[6:].strip() if word.lower().startswith("count=") else word
    kind = _WORDS.get(value.lower())
    if kind is not None:
        return GpuWish(kind)
    if re.fullmatch(r"-\d+", value):
        raise ValueError(f"{value} is no number of GPUs; write all for every GPU")
    if re.fullmatch(r"[0-9]{1,9}", value):
        count = int(value)
        if count == 0:
            raise ValueError("0 would give no GPU; write device=0 for GPU 0, or none")
        return GpuWish(GpuWishKind.COUNT, count=count)
    if _DEVICE.fullmatch(value):
        raise ValueError(f"write device={value}")
    raise ValueError(f"{word!r} names no GPUs; {_FORMS}")


def _devices(fields: list[str]) -> GpuWish:
    """Of ``device=0,2``, in one quoted field or in several."""
    listed = fields[0].partition("=")[2].split(",") + fields[1:]
    devices: list[str] = []
    for part in (item.strip() for item in listed):
        if not part:
            raise ValueError("a device is missing; write device=0,2 or device=GPU-…")
        if not _DEVICE.fullmatch(part):
            raise ValueError(f"{part!r} is no index and no UUID; write device=0,2 or device=GPU-…")
        if part not in devices:
            devices.append(part)
    return GpuWish(GpuWishKind.DEVICES, devices=tuple(devices))

"""C22: the clock, which a container shares with its host, is kept right, and its time zone is known."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

from gpuconsole.probes.payload.outcome import OK, WARN, Context, Outcome

EARLIEST_YEAR = 2024
LATEST_YEAR = 2100
_TIME_ERROR = 5
_STA_UNSYNC = 0x40
_STATUS_AT = 40
"""Offset of ``status`` in ``struct timex`` of 64-bit Linux."""
_ZONES = ("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo")


def run(context: Context) -> Outcome:
    """Ask the kernel whether its clock is synchronised; setting nothing."""
    zone = os.environ.get("TZ", "")
    value: dict[str, Any] = {
        "synchronised": synchronised(),
        "year": time.gmtime().tm_year,
        "zone": zone or None,
        "zone_known": zone_known(zone),
    }
    outcome = judge(value)
    outcome.value = value
    return outcome


def synchronised() -> bool | None:
    """What the kernel says of its clock; None where it may not be asked."""
    if ctypes.sizeof(ctypes.c_long) != 8:
        return None
    answer = ctypes.create_string_buffer(512)  # all zero: no mode is set, so that nothing is changed
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(answer)
    except (OSError, AttributeError):
        return None
    if state < 0:
        return None
    status = ctypes.c_int.from_buffer(answer, _STATUS_AT).value
    return state != _TIME_ERROR and not status & _STA_UNSYNC


def zone_known(zone: str) -> bool:
    """The C library knows ``TZ``: it is a rule, or there is a file for it."""
    name = zone.lstrip(":")
    if not name or any(char.isdigit() for char in name) or name.upper() in ("UTC", "GMT"):
        return True
    if name.startswith("/"):
        return os.path.isfile(name)
    return any(os.path.isfile(os.path.join(folder, name)) for folder in _ZONES)


def judge(value: dict[str, Any]) -> Outcome:
    """The outcome for the clock."""
    if not EARLIEST_YEAR <= value["year"] <= LATEST_YEAR:
        why = "the clock says it is the year {}".format(value["year"])
        return Outcome(WARN, why, "Set the clock of the host: timedatectl set-ntp true.")
    if value["synchronised"] is False:
        why = "the clock of the host is not synchronised"
        return Outcome(WARN, why, "Turn it on at the host: timedatectl set-ntp true, or chronyd.")
    if not value["zone_known"]:
        why = "the time zone {!r} is not known here, so that times are UTC".format(value["zone"][:60])
        return Outcome(WARN, why, "Install tzdata in the image, or unset TZ.")
    if value["synchronised"] is None:
        return Outcome(OK, "the year is right; whether the clock is synchronised may not be asked here")
    return Outcome(OK, "the clock is synchronised")

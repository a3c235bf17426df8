"""Users by name: of a number, and of who runs gpuconsole, the same for what is labelled and what is asked about."""

from __future__ import annotations

import os
import pwd

_names: dict[int, str] = {}
"""Those found: asking for one may go over the network, and seldom is somebody renamed while a program runs."""


def user_name(uid: int) -> str:
    """Name of a user, or the number when it has none."""
    if uid not in _names:
        try:
            _names[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)
    return _names[uid]


def caller_name() -> str:
    """Login name of who runs gpuconsole; behind ``sudo`` the one who called it."""
    if os.geteuid() == 0 and (name := os.environ.get("SUDO_USER")):
        return name
    return user_name(os.getuid())


def caller_ids() -> tuple[int, int]:
    """User and group id of who runs gpuconsole; behind ``sudo`` of the one who called it, as their files are."""
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() == 0 and uid.isdecimal() and gid.isdecimal():
        return int(uid), int(gid)
    return os.getuid(), os.getgid()


def caller_groups(uid: int, gid: int) -> tuple[int, ...]:
    """All groups of the user that :func:`caller_ids` gives."""
    if uid == os.getuid():
        return tuple(os.getgroups())
    try:
        return tuple(os.getgrouplist(pwd.getpwuid(uid).pw_name, gid))
    except KeyError:
        return (gid,)

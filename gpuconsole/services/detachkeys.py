"""The keys that leave a container's terminal without ending what runs there."""

from __future__ import annotations

from gpuconsole.core.errors import UsageError

DEFAULT = "ctrl-],ctrl-q"
"""Not docker's ctrl-p,ctrl-q: the engine holds the first key back until it has seen the next, and ctrl+p, the line
before in every shell, would lag by one key."""

_CTRL = {f"ctrl-{chr(code + 96)}": code for code in range(1, 27)} | {
    "ctrl-@": 0,
    "ctrl-[": 27,
    "ctrl-\\": 28,
    "ctrl-]": 29,
    "ctrl-^": 30,
    "ctrl-_": 31,
}


def key_bytes(keys: str) -> bytes:
    """What a terminal sends for ``keys``, written as docker writes them: ``ctrl-],ctrl-q`` or ``ctrl-x,d``.

    Raises:
        UsageError: One of them is no key that docker knows.
    """
    typed = []
    for key in keys.split(","):
        code = _CTRL.get(key.lower())
        if code is None and len(key) == 1 and key.isascii() and key.isprintable():
            code = ord(key)
        if code is None:
            raise UsageError(f"{key!r} is not a key.", hint="Write keys like ctrl-] or a letter, with commas between.")
        typed.append(code)
    return bytes(typed)


def described(keys: str) -> str:
    """Keys for a person: ``ctrl+] ctrl+q``."""
    return " ".join(key.replace("ctrl-", "ctrl+") for key in keys.split(","))

"""Stand-ins for a bug report: the same ones for what the doctor found and for the recording that goes with it.

A recording may have been made with names or without, here or on another machine. All of it is gone through before
anything is replaced, so that a name is found also before the line that tells whose it is; and stand-ins that it brings
along stay what they are, so that nothing else gets them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpuconsole.services.anonymous import EVERYBODYS, HOST, ME, StandIns
from gpuconsole.services.secrets import is_secret_name, mask_value

_MADE = re.compile(
    r"(?<![^\W_])u(?P<user>\d{1,6})(?![^\W_])|(?P<uuid>[\da-f]{8})-0000-4000-8000-0{12}"
    r"|(?<![\w-])(?:path(?P<path>\d{1,6})|192\.0\.2\.(?P<address>\d{1,3})|2001:db8::(?P<address_6>[\da-f]{1,6})"
    r"|(?P<kind>container|network|volume)-(?P<thing>\d{1,6}))(?![\w-])"
)
"""Stand-ins as gpuconsole makes them."""
_MADE_PART = re.compile(r"path\d{1,6}(?:\.\w{1,5})?")
_LOGIN = re.compile(r"/home/([\w.@+,=%-]+)")
_WORDS = re.compile(r"[-_.\d]+")
_USUAL = frozenset(
    {"a", "b", "c", "bench", "check", "dev", "eval", "finetune", "ft", "gpu", "infer", "job", "jupyter", "lab", "llm"}
    | {"main", "node", "prep", "rank", "run", "serve", "server", "shell", "tensorboard", "test", "tune", "val", "work"}
    | {"worker", "bridge", "default", "host", "none"}
) | EVERYBODYS  # fmt: skip
"""Names of containers, and parts of them, that say nothing of who made them."""
_NO_SECRETS = frozenset({"", "key"})
"""The second names a fact of an image."""
_OF_IMAGES, _OF_CONTAINERS = ("pull", "build"), ("launch", "check", "bench")
"""Kinds of runs by what their subject is."""
_SHORTEST = 3
"""Letters of a name from which on it may tell something; shorter ones are in every text."""


class ReportNames(StandIns):
    """Stand-ins that are learned from all of a recording before the first is used.

    Args:
        me: Who runs this program.
        host: This machine's name.
        home: The home folder of who runs this program.
    """

    def __init__(self, *, me: str | None = None, host: str | None = None, home: str | None = None) -> None:
        super().__init__(me=me, host=host, home=home)
        self._learning = False
        self._without_names = False
        self._used: dict[str, int] = {}
        """Kind of stand-in → the highest number given."""
        self._met: set[str] = set()
        """Texts that were learned from."""
        self._ready: dict[str, str] = {}
        """Texts that were met → what becomes of them: most are met at every look."""

    # --- learning ---

    def learn_header(self, header: Mapping[str, Any]) -> None:
        """What a recording's first line tells: who recorded, where, and whether names were replaced then."""
        host, user = header.get("host"), header.get("user")
        self._without_names = host == HOST and user in (ME, None)
        if isinstance(host, str) and len(host) >= _SHORTEST and host != "localhost":
            self._words.setdefault(host, HOST)
        if isinstance(user, str):
            self._user(user)

    def learn(self, line: Mapping[str, Any]) -> None:
        """What a line of a recording tells of names.

        Raises:
            KeyError, TypeError, ValueError, AttributeError, RecursionError: It is not what such a line must be.
        """
        self._learning = True
        try:
            self.clean(line)
        finally:
            self._learning = False

    def _learn_text(self, text: str) -> None:
        if self._without_names:
            for made in _MADE.finditer(text):
                self._reserve(made)
        for login in _LOGIN.findall(text):
            self._user(login)

    def _reserve(self, made: re.Match[str]) -> None:
        """A stand-in of the recording: it stays, and nothing else is called so."""
        kind = made["kind"] or str(made.lastgroup)
        digits = made["thing"] or made[kind]
        number = int(digits, 16 if kind in ("uuid", "address_6") else 10)
        if kind == "user":
            self._users.setdefault(made[0], made[0])
        elif kind in ("container", "network", "volume"):
            self._words.setdefault(made[0], made[0])
        elif kind == "uuid":
            self._numbers.setdefault(kind, {})[made[0].lower()] = number
        kind = "address" if kind == "address_6" else kind
        self._used[kind] = max(self._used.get(kind, 0), number)

    def _learn_thing(self, kind: str, name: object) -> None:
        """The name of a container, network or volume, unless it is everybody's."""
        if (
            not isinstance(name, str)
            or len(name) < _SHORTEST
            or "/" in name
            or name in self._words
            or name in self._users
        ):
            return
        if any(word and word not in _USUAL for word in _WORDS.split(name.lower())):
            self._words[name] = f"{kind}-{self._next(kind)}"

    # --- cleaning ---

    def clean(self, data: Any, key: str = "") -> Any:
        """JSON data as it may be given away; ``key`` is the name it stands under."""
        kind = type(data)
        if kind is str:
            if key not in _NO_SECRETS and is_secret_name(key):
                data = mask_value(key, data)
            return self._string(data, key)
        if kind is list:
            return self._list(data, key)
        if kind is dict:
            self._learn_things(data, key)
        elif key != "uid" or self._without_names:  # most of it is figures; such a uid is a stand-in already
            return data
        return super().clean(data, key)

    def _learn_things(self, data: Mapping[str, Any], key: str) -> None:
        if key == "unknown":  # why a value is missing, by its name
            return
        if key == "container":
            self._learn_thing("container", data.get("name"))
            if not str(data.get("id")).startswith(str(data.get("hostname"))):
                self._learn_thing("container", data.get("hostname"))
            for network in data.get("networks") or ():
                self._learn_thing("network", network)
        self._learn_thing("container", data.get("container_name"))
        kind = data.get("kind")
        if kind == "volume":
            self._learn_thing("volume", data.get("source"))
        elif kind in _OF_IMAGES and isinstance(data.get("subject"), str):
            self._learn_image(data["subject"])
        elif kind in _OF_CONTAINERS:
            self._learn_thing("container", data.get("subject"))

    def _list(self, data: list[Any], key: str) -> list[Any]:
        if key == "containers":  # of a sample
            for each in data:
                self._learn_thing("container", each.get("name") if isinstance(each, Mapping) else None)
        elif key == "given_to":
            for name in data:
                self._learn_thing("container", name)
        return super()._list(data, key)

    def text(self, text: str) -> str:
        """Free text, such as a line of output."""
        if self._learning:
            if text not in self._met:
                self._met.add(text)
                self._learn_text(text)
            return text
        ready = self._ready.get(text)
        if ready is None:
            ready = super().text(text)
            if len(text) < 1024:
                self._ready[text] = ready
        return ready

    # --- numbers that the recording's own stand-ins have are not given again ---

    def _next(self, kind: str) -> int:
        self._used[kind] = self._used.get(kind, 0) + 1
        return self._used[kind]

    def _number(self, kind: str, name: str) -> int:
        known = self._numbers.setdefault(kind, {})
        return known[name] if name in known else known.setdefault(name, self._next(kind))

    def _user(self, name: str) -> str:
        if not name or name[0].isdigit() or (name in ("root", "nobody") and name not in self._users):
            return name
        if name not in self._users:
            made = _MADE.fullmatch(name) if self._without_names else None
            if made is not None:
                self._reserve(made)
                return name
            self._users[name] = f"u{self._next('user')}"
            self._ready.clear()
        return self._users[name]

    def _part(self, part: str) -> str:
        return part if self._without_names and _MADE_PART.fullmatch(part) else super()._part(part)

    def _address(self, address: str) -> str:
        return address if address.startswith("192.0.2.") else super()._address(address)

    def _address_6(self, text: str) -> str:
        return text if text.startswith("2001:db8::") else super()._address_6(text)

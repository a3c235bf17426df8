"""What names a machine and its people replaced by stand-ins of the same form, in data that is given away.

The same name gets the same stand-in everywhere. Rather a word too many goes than one too few: of a path stays what the
system itself or habit names; of a variable's value what is known to be a version or a setting.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping
from typing import Any

from gpuconsole.core.users import caller_name
from gpuconsole.services.secrets import mask_arguments, mask_text, mask_value

HOST = "gpu-box"
ME = "me"
HOME = "/home/me"
_ME_UID = 1000
_HIDDEN = "…"
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_PATH = re.compile(r"(?:(?<=unix://)|(?<![\w.~/-]))(?:~|/[\w.@+,=%-]+)(?:/[\w.@+,=%-]+)*")
_ADDRESS = re.compile(r"(?:(?<=://)|(?<=@)|\b(?=[\d.]+:\d))\d{1,3}(?:\.\d{1,3}){3}")
_ADDRESS_6 = re.compile(r"(?<![\w:.])(?=[\da-fA-F:.]*:[\da-fA-F:.]*:)[\da-fA-F:][\da-fA-F:.]+(?:%\w+)?(?![\w:])")
_ENDPOINT = re.compile(r"[a-z]+://(?:(?P<user>[^\s/:@]+)[^\s/@]*@)?(?P<host>[A-Za-z0-9-]*[A-Za-z][\w.-]*)")
_ENGINE = "engine-box"
_SYSTEM = frozenset(
    {"usr", "opt", "bin", "sbin", "lib", "lib64", "etc", "dev", "proc", "sys", "run", "var", "boot", "nvidia"}
)
_USUAL = frozenset(
    {"app", "cache", "checkpoints", "code", "config", "data", "dataset", "datasets", "home", "logs", "main.py", "me"}
    | {"media", "mnt", "model", "models", "out", "output", "outputs", "project", "results", "root", "runs", "scratch"}
    | {"src", "srv", "tests", "tmp", "train.py", "workdir", "workspace"}
)
_TELLING = re.compile(
    r"^(?:CUDA|CUDNN|NCCL|NV_|NVIDIA_|PYTORCH|TORCH|PYTHON|OMP_|MKL_|LD_LIBRARY_PATH$|PATH$|LANG$|LC_|TERM$|TZ$)"
)
_LABELS = re.compile(r"^(?:gpuconsole\.|com\.nvidia\.|org\.opencontainers\.image\.(?:version|ref\.name)$)")
_KNOWN_OWNERS = frozenset(
    {"library", "pytorch", "nvidia", "tensorflow", "huggingface", "jupyter", "rocm", "vllm", "bitnami", "continuumio"}
)
"""Owners of images on public registries that everybody uses."""
_KNOWN_IMAGES = frozenset(
    {"alpine", "busybox", "debian", "fedora", "hello-world", "node", "postgres", "python", "redis", "ubuntu"}
    | {"base", "cuda", "devel", "jax", "latest", "notebook", "runtime", "tensorflow", "torch", "train", "training"}
    | {"triton", "tritonserver"}
    | _KNOWN_OWNERS
)
"""Parts of names of images that say nothing of who made them."""
EVERYBODYS = _KNOWN_IMAGES | _USUAL
"""Words in names that say nothing of who gave them."""
_PUBLIC = frozenset({"docker.io", "nvcr.io", "ghcr.io", "quay.io", "gcr.io", "public.ecr.aws", "localhost"})
_FORMS = frozenset({"type", "format", "schema"})
_FORM = re.compile(r"[a-z][a-z./0-9-]*")
"""What stands under these names says what the data are: never a name, also where somebody is called so."""
_CHOSEN = frozenset({"status", "kind", "of", "state", "found_by", "source", "word", "effect", "channel", "level"})
_WORDS = frozenset(
    {"ok", "lost", "error", "device-request", "cdi", "environment", "device-node", "check", "launch", "pull", "build"}
    | {"bench", "process", "hidden", "ended", "undivided", "unattributed", "reserve", "system", "untold", "free"}
    | {"compute", "graphics", "mps", "gpu", "instance", "created", "running", "paused", "restarting", "removing"}
    | {"exited", "dead", "unknown", "warn", "failed", "cancelled", "claim", "env", "label", "tag", "history", "runs"}
    | {"runs_with", "will_not_run", "note", "limits", "prevents", "stdout", "stderr", "skip", "fail", "bind", "volume"}
)
"""What gpuconsole itself says under those names: a container is ``running``, also where a user is called so."""
_LOCAL_ADDRESSES = ("127.", "0.0.0.0")  # noqa: S104  # compared with, never listened on


class StandIns:
    """Stand-ins for what was met so far.

    Args:
        me: Who runs this program.
        host: This machine's name.
        home: The home folder of who runs this program.
    """

    def __init__(self, *, me: str | None = None, host: str | None = None, home: str | None = None) -> None:
        self._home = (home or os.path.expanduser("~")).rstrip("/")
        self._users: dict[str, str] = {me or caller_name(): ME, ME: ME}
        self._words: dict[str, str] = {}
        full = host or socket.gethostname()
        for name in {full, full.partition(".")[0]} - {"localhost", ""}:
            self._words[name] = HOST
        kernel = os.uname().release
        self._words[kernel] = ".".join(kernel.split(".")[:2])
        self._uids: dict[int, int] = {os.getuid(): _ME_UID}
        self._numbers: dict[str, dict[str, int]] = {}
        self._found_by: tuple[tuple[int, int], re.Pattern[str]] = ((0, 0), re.compile(""))
        """How many names it was made of, and what finds them."""

    def clean(self, data: Any, key: str = "") -> Any:
        """JSON data as it may be given away; ``key`` is the name it stands under."""
        if isinstance(data, Mapping):
            if key == "labels":
                data = {name: value for name, value in data.items() if _LABELS.match(name)}
            return {name: self.clean(value, name) for name, value in data.items()}
        if isinstance(data, list):
            return self._list(data, key)
        if isinstance(data, str):
            return self._string(data, key)
        if key == "uid" and isinstance(data, int):
            return self._uids.setdefault(data, data if data == 0 else _ME_UID + len(self._uids))
        return data

    def _list(self, data: list[Any], key: str) -> list[Any]:
        if key == "environment":
            return [[name, self._variable(name, value)] for name, value in data]
        if key == "extra_hosts":
            return []
        if key in ("command", "entrypoint"):
            data = list(mask_arguments(data))
        return [self.clean(item, key) for item in data]

    def _variable(self, name: str, value: str | None) -> str | None:
        if not value:
            return value
        return self.text(mask_value(name, value)) if _TELLING.match(name) else _HIDDEN

    def _string(self, text: str, key: str) -> str:
        if (key in _FORMS and _FORM.fullmatch(text)) or (key in _CHOSEN and text in _WORDS):
            return text
        if key in ("user", "gpuconsole.user"):
            return self._user(text)
        if key in ("image", "tags", "digests", "gpuconsole.image"):
            self._learn_image(text)
        elif key == "endpoint":
            self._learn_endpoint(text)
        if key == "document":
            return self._document(text, indent=2)
        if key == "gpuconsole.spec":
            return self._document(text, indent=None)
        return self.text(text)

    def _document(self, text: str, *, indent: int | None) -> str:
        try:
            data = json.loads(text)
        except ValueError:
            return self.text(text)
        return json.dumps(self.clean(data), indent=indent, ensure_ascii=False)

    def text(self, text: str) -> str:
        """Free text, such as a line of output."""
        text = _UUID.sub(
            lambda found: f"{self._number('uuid', found[0].lower()):08x}-0000-4000-8000-000000000000", text
        )
        text = _PATH.sub(lambda found: self._path(found[0]), mask_text(text))
        text = _ADDRESS_6.sub(lambda found: self._address_6(found[0]), text)
        text = _ADDRESS.sub(lambda found: self._address(found[0]), text)
        # All at once: what stands in for one name is never taken for another.
        return self._pattern().sub(lambda found: self._words[found[0]] if found[1] else self._users[found[0]], text)

    def _pattern(self) -> re.Pattern[str]:
        """Finds the names that are known by now."""
        known = (len(self._words), len(self._users))
        if known != self._found_by[0]:
            words = "|".join(re.escape(name) for name in _longest_first(self._words))
            # A name of the system as well, and of nobody.
            users = "|".join(re.escape(name) for name in _longest_first(self._users) if name != "root")
            pattern = rf"((?<![\w-])(?:{words})(?![\w-]))|(?<![^\W_])(?:{users})(?![^\W_])"
            self._found_by = known, re.compile(pattern)
        return self._found_by[1]

    def _number(self, kind: str, name: str) -> int:
        known = self._numbers.setdefault(kind, {})
        return known.setdefault(name, len(known) + 1)

    def _user(self, name: str) -> str:
        """A login name; a container's own user may be ``1000:1000``."""
        if not name or name[0].isdigit():
            return name
        if name not in self._users and name in ("root", "nobody"):
            return name
        return self._users.setdefault(name, f"u{len(self._users) - 1}")

    def _path(self, path: str) -> str:
        if path == self._home or path.startswith(f"{self._home}/"):
            return HOME + self._parts(path[len(self._home) :])
        first, _, rest = path.lstrip("/").partition("/")
        if first in _SYSTEM or path == "~":
            return path
        if first == "home":
            login, slash, rest = rest.partition("/")
            return f"/home/{self._user(login)}" + self._parts(slash + rest) if login else path
        return self._parts(path)

    def _parts(self, path: str) -> str:
        return "/".join(self._part(part) for part in path.split("/"))

    def _part(self, part: str) -> str:
        if not part or part == "~" or part in _USUAL:
            return part
        stem, dot, suffix = part.rpartition(".")
        kept = f".{suffix}" if dot and stem and suffix.isalnum() and len(suffix) <= 5 else ""
        return f"path{self._number('path', part)}{kept}"

    def _address(self, address: str) -> str:
        if address.startswith(_LOCAL_ADDRESSES):
            return address
        return f"192.0.2.{self._number('address', address) % 250 + 1}"

    def _address_6(self, text: str) -> str:
        """What may be one of the newer addresses; what only looks so, such as a time of day, stays."""
        from ipaddress import IPv6Address

        try:
            address = IPv6Address(text)
        except ValueError:
            return text
        if address.is_loopback or address.is_unspecified:
            return text
        return f"2001:db8::{self._number('address', str(address)):x}"

    def _learn_endpoint(self, address: str) -> None:
        """The machine of an engine elsewhere, and who logs in there."""
        if (found := _ENDPOINT.match(address)) is None:
            return
        if found["user"]:
            self._user(found["user"])
        if found["host"] not in ("localhost", "docker", "podman"):
            self._words.setdefault(found["host"], _ENGINE)

    def _learn_image(self, reference: str) -> None:
        """The registry of an image and the parts of its name, unless they are everybody's; its tag stays."""
        if " " in reference or reference.startswith("sha256:"):  # told for people, of a name that is elsewhere; an id
            return
        name = reference.partition("@")[0]
        if ":" in name.rpartition("/")[2]:
            name = name.rpartition(":")[0]
        first, slash, rest = name.partition("/")
        public = True
        if slash and ("." in first or ":" in first or first == "localhost"):
            name, host = rest, first.partition(":")[0]
            public = host in _PUBLIC - {"localhost"}
            if not public and host != "localhost" and not host.startswith("127."):
                self._words.setdefault(host, "registry.example")
        parts = name.split("/")
        if public and len(parts) > 1 and parts[0] in _KNOWN_OWNERS:
            return
        for part in parts:
            if len(part) > 2 and part not in EVERYBODYS and part not in self._users:
                self._words.setdefault(part, self._part(part))


class Masked(StandIns):
    """Names, folders and addresses stay as they are; secrets and values of variables go all the same."""

    def text(self, text: str) -> str:
        """Free text, such as a line of output."""
        return mask_text(text)

    def clean(self, data: Any, key: str = "") -> Any:
        """JSON data with its secrets masked."""
        return data if key == "uid" else super().clean(data, key)

    def _user(self, name: str) -> str:
        return name

    def _learn_image(self, reference: str) -> None:
        """It stays."""

    def _learn_endpoint(self, address: str) -> None:
        """It stays."""


def _longest_first(names: Mapping[str, str]) -> list[str]:
    """A name that is the beginning of another must leave that one whole."""
    return sorted(names, key=lambda name: -len(name))

"""The payload as one zip archive in memory, the same bytes every time."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

_PACKAGE = "gpuconsole.probes.payload"
_DATE = (1980, 1, 1, 0, 0, 0)
_MAIN = """from gpuconsole.probes.payload.main import main

if __name__ == "__main__":
    raise SystemExit(main())
"""


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive and the hash it is verified by inside."""

    data: bytes
    sha256: str


def build() -> Archive:
    """Build it from the installed package: from a checkout, a wheel, or a zip of either.

    The package keeps its own name in it, so that its absolute imports hold; the packages above it are empty there.
    Entries are stored without compression, since a Python without zlib can still import them.
    """
    parents = _PACKAGE.split(".")[:-1]
    entries = {"__main__.py": _MAIN.encode()}
    for depth in range(1, len(parents) + 1):
        entries["/".join([*parents[:depth], "__init__.py"])] = b""
    entries.update(_sources(files(_PACKAGE), _PACKAGE.replace(".", "/")))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name in sorted(entries):
            info = zipfile.ZipInfo(name, date_time=_DATE)
            info.external_attr = 0o644 << 16
            info.create_system = 3
            file.writestr(info, entries[name])
    data = buffer.getvalue()
    return Archive(data=data, sha256=hashlib.sha256(data).hexdigest())


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            if item.name != "__pycache__":
                yield from _sources(item, f"{path}/{item.name}")
        elif item.name.endswith(".py"):
            yield f"{path}/{item.name}", item.read_bytes()


def boot_text() -> str:
    """The text that ``python -c`` is given to take the archive in."""
    return (files(_PACKAGE) / "boot.py").read_text(encoding="utf-8")

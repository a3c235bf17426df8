"""Big images without the wait: a stopped engine's layers, kept in the cache and linked into a new engine's data.

Layers are never written in place, so hard links to them are safe; what engines do rewrite is copied.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from tests.rig.places import CACHE, RIGS, locked

_LAYERS = ("overlay2",)
_COPIED = ("image", "buildkit")
_CONTAINERD = "containerd"


def _folders(*, containerd_store: bool) -> tuple[str, ...]:
    return (*_COPIED, _CONTAINERD) if containerd_store else (*_COPIED, *_LAYERS)


def possible() -> bool:
    """Tell whether cache and rigs are on one file system, as hard links want it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    return os.stat(CACHE).st_dev == os.stat(RIGS).st_dev


def _copy(source: Path, target: Path, *, link: bool) -> None:
    subprocess.run(["cp", "-al" if link else "-a", str(source), str(target)], check=True)


def _copy_all(source: Path, target: Path, *, containerd_store: bool) -> None:
    for name in _folders(containerd_store=containerd_store):
        shutil.rmtree(target / name, ignore_errors=True)
        if not (source / name).exists():
            continue
        _copy(source / name, target / name, link=name not in _COPIED)
        for database in (target / name).rglob("*.db"):  # bolt writes into the file itself
            fresh = database.with_suffix(".fresh")
            shutil.copy2(database, fresh)
            fresh.replace(database)


class Template:
    """The data of a stopped engine of one kind that has one image."""

    def __init__(self, kind: str, key: str, *, containerd_store: bool) -> None:
        """Name it; the key changes with the image."""
        self._folder = CACHE / "data" / kind / key
        self._lock = CACHE / f"data-{kind}.lock"
        self._containerd_store = containerd_store

    @property
    def exists(self) -> bool:
        """Tell whether it has been made."""
        return self._folder.exists()

    def locked(self) -> AbstractContextManager[None]:
        """Give the lock under which it is made."""
        return locked(self._lock)

    def keep(self, data_root: Path) -> None:
        """Make it from a stopped engine's data, in place of older ones."""
        fresh = self._folder.with_suffix(".new")
        shutil.rmtree(self._folder.parent, ignore_errors=True)
        fresh.mkdir(parents=True)
        _copy_all(data_root, fresh, containerd_store=self._containerd_store)
        fresh.rename(self._folder)

    def lay(self, data_root: Path) -> None:
        """Put it in place of a stopped engine's images."""
        with locked(self._lock):
            _copy_all(self._folder, data_root, containerd_store=self._containerd_store)

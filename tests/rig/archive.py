"""Image archives as `docker save` writes them, made without an engine, so that every byte of an image is ours."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

_MOMENT = 1_700_000_000  # fixed, so that the same content has the same id everywhere
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What an image says about itself, as the OCI configuration has it."""

    env: tuple[str, ...] = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",)
    command: tuple[str, ...] | None = ("sh",)
    entrypoint: tuple[str, ...] | None = None
    working_directory: str = ""
    user: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()

    def document(self, layer_digests: Sequence[str]) -> dict[str, Any]:
        """Give the image configuration document."""
        config: dict[str, Any] = {"Env": list(self.env), "WorkingDir": self.working_directory, "User": self.user}
        if self.command is not None:
            config["Cmd"] = list(self.command)
        if self.entrypoint is not None:
            config["Entrypoint"] = list(self.entrypoint)
        if self.labels:
            config["Labels"] = dict(self.labels)
        if self.ports:
            config["ExposedPorts"] = {port: {} for port in self.ports}
        if self.volumes:
            config["Volumes"] = {volume: {} for volume in self.volumes}
        created = "2023-11-14T22:13:20Z"
        return {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "created": created,
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in layer_digests]},
            "history": [{"created": created, "created_by": f"layer {n}"} for n in range(len(layer_digests))],
        }


class Layer:
    """A layer being written: files with fixed times and root as owner."""

    def __init__(self, file: IO[bytes]) -> None:
        """Write to an open file."""
        self._tar = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def _info(self, name: str, *, mode: int, kind: bytes) -> tarfile.TarInfo:
        info = tarfile.TarInfo(name.lstrip("/"))
        info.type = kind
        info.mode = mode
        info.mtime = _MOMENT
        return info

    def folder(self, name: str, *, mode: int = 0o755) -> None:
        """Add a folder."""
        self._tar.addfile(self._info(name, mode=mode, kind=tarfile.DIRTYPE))

    def text(self, name: str, content: str, *, mode: int = 0o644) -> None:
        """Add a file with this text."""
        self.data(name, content.encode(), mode=mode)

    def data(self, name: str, content: bytes, *, mode: int = 0o644) -> None:
        """Add a file with these bytes."""
        info = self._info(name, mode=mode, kind=tarfile.REGTYPE)
        info.size = len(content)
        self._tar.addfile(info, io.BytesIO(content))

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        info = self._info(name, mode=0o777, kind=tarfile.SYMTYPE)
        info.linkname = target
        self._tar.addfile(info)

    def copy(self, source: Path, name: str, *, mode: int | None = None) -> None:
        """Add a file of this machine with its time (compiled Python rests on it), links followed."""
        status = source.stat()
        info = self._info(name, mode=(status.st_mode & 0o755) if mode is None else mode, kind=tarfile.REGTYPE)
        info.size = status.st_size
        info.mtime = int(status.st_mtime)
        with source.open("rb") as file:
            self._tar.addfile(info, file)

    def finish(self) -> None:
        """Write the end of the layer."""
        self._tar.close()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_image(path: Path, reference: str, layers: Sequence[Path], config: ImageConfig) -> None:
    """Put layers and configuration together; the finished archive appears at its path in one step."""
    digests = [_digest(layer) for layer in layers]
    document = json.dumps(config.document(digests)).encode()
    name = f"{hashlib.sha256(document).hexdigest()}.json"
    names = [f"{digest}/layer.tar" for digest in digests]
    manifest = json.dumps([{"Config": name, "RepoTags": [reference], "Layers": names}]).encode()
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as out:
        whole = Layer(out)
        for layer, inner in zip(layers, names, strict=True):
            whole.copy(layer, inner, mode=0o644)
        whole.data(name, document)
        whole.data("manifest.json", manifest)
        whole.finish()
    fresh.replace(path)


def free_bytes(path: Path) -> int:
    """Give the free space where a path is."""
    return shutil.disk_usage(path).free

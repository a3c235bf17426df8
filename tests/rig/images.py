"""The rig's images: small ones with busybox, each made for one trouble, and PyTorch's."""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.rig import pytorch
from tests.rig.archive import ImageConfig, Layer, write_image
from tests.rig.places import CACHE, PROJECT, locked

Writer = Callable[[Path, Path], list[Path]]
"""Writes an image's layers into a folder, given the root with busybox, and gives their paths in order."""

_APPLETS = (
    "sh ash ls cat sleep id env kill ps tar test true false echo printf mkdir rm cp mv ln chmod chown touch stat head "
    "tail grep sed awk find wc sort uniq cut tr dd df du date uname hostname whoami mktemp readlink dirname basename "
    "nc wget httpd seq yes timeout tee top free mount ip dmesg which md5sum sha256sum gzip gunzip nproc xargs od"
)
_PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
_GROUP = "root:x:0:\nnogroup:x:65534:\n"
_HOSTILE = "[red]bold[/red] \x1b[31mescape\x1b[0m\nsecond line\t\u202eright-to-left \x07bell"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an image is made and named."""

    reference: str
    config: ImageConfig
    write: Writer
    version: str = ""
    """What else the archive depends on, beyond the rig's own source."""


def _base(layer: Layer, busybox: Path) -> None:
    for folder in ("bin", "etc", "proc", "sys", "dev", "root", "usr", "usr/bin", "var", "workspace"):
        layer.folder(folder)
    layer.folder("tmp", mode=0o1777)
    layer.text("etc/passwd", _PASSWD)
    layer.text("etc/group", _GROUP)
    layer.copy(busybox, "bin/busybox", mode=0o755)


def _busybox(root: Path) -> Path:
    return next(path for path in (root / "bin/busybox", root / "usr/bin/busybox") if path.exists())


def _write_small(folder: Path, root: Path, *, more: Callable[[Layer], None] | None = None) -> list[Path]:
    path = folder / "small.tar"
    with path.open("wb") as out:
        layer = Layer(out)
        _base(layer, _busybox(root))
        for applet in _APPLETS.split():
            layer.link(f"bin/{applet}", "busybox")
        if more:
            more(layer)
        layer.finish()
    return [path]


def _write_entrypoint(folder: Path, root: Path) -> list[Path]:
    script = "#!/bin/sh\n# Whatever it is asked to run, it waits instead.\nexec sleep 1000000\n"
    return _write_small(folder, root, more=lambda layer: layer.text("entrypoint.sh", script, mode=0o755))


def _write_bare(folder: Path, root: Path) -> list[Path]:
    path = folder / "bare.tar"
    with path.open("wb") as out:
        layer = Layer(out)
        layer.folder("app")
        layer.copy(_busybox(root), "app/sleep", mode=0o755)  # busybox is what it is called
        layer.finish()
    return [path]


def _write_layers(folder: Path, root: Path) -> list[Path]:
    """Write the small image and six layers that no registry or engine can compress."""
    paths = _write_small(folder, root)
    for number in range(6):
        path = folder / f"layer{number}.tar"
        with path.open("wb") as out:
            layer = Layer(out)
            layer.data(f"data{number}", random.Random(number).randbytes((number + 1) * 2**20))
            layer.finish()
        paths.append(path)
    return paths


_PLAIN = ImageConfig()
_PYTHON = replace(
    _PLAIN,
    env=(*_PLAIN.env, "PIP_NO_COMPILE=1"),  # what is built on it is thrown away: no seconds for bytecode
    labels={"org.opencontainers.image.ref.name": "debian", "org.opencontainers.image.version": "12"},
)
_CUDA_ENV = (
    *_PLAIN.env,
    "NVIDIA_VISIBLE_DEVICES=all",
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    "NVIDIA_REQUIRE_CUDA=cuda>=12.8",
    "CUDA_VERSION=12.8.1",
    "PYTORCH_VERSION=2.9.0",
)
RECIPES = {
    "small": Recipe("gpuconsole-test/small:1", _PLAIN, _write_small),
    "bare": Recipe(
        "gpuconsole-test/bare:1", replace(_PLAIN, command=("1000000",), entrypoint=("/app/sleep",)), _write_bare
    ),
    "entrypoint": Recipe(
        "gpuconsole-test/entrypoint:1", replace(_PLAIN, entrypoint=("/entrypoint.sh",)), _write_entrypoint
    ),
    "hostile": Recipe(
        "gpuconsole-test/hostile:1",
        replace(
            _PLAIN,
            env=(*_PLAIN.env, f"HOSTILE={_HOSTILE}", "NO_VALUE=", "API_TOKEN=not-for-the-screen"),
            labels={"hostile": _HOSTILE, "[link=x]": "markup in a name", "org.opencontainers.image.title": _HOSTILE},
            ports=("8888/tcp", "53/udp"),
            volumes=("/data",),
            user="65534",
        ),
        _write_small,
    ),
    "cuda-env": Recipe("gpuconsole-test/cuda-env:1", replace(_PLAIN, env=_CUDA_ENV), _write_small),
    "layers": Recipe("gpuconsole-test/layers:1", _PLAIN, _write_layers),
    "python": Recipe("gpuconsole-test/python:1", _PYTHON, pytorch.write_python_layers, pytorch.fingerprint()),
    "pytorch": Recipe("gpuconsole-test/pytorch:cpu", pytorch.CONFIG, pytorch.write_layers, pytorch.fingerprint()),
}
"""What `Engine.load` knows. `bare` has no shell, `entrypoint` swallows commands, `cuda-env` only claims CUDA,
`python` has Python without torch, to build on."""

BIG = ("pytorch",)
"""Images that take an engine ten seconds to load."""


def _source_digest() -> str:
    digest = hashlib.sha256()
    for name in ("archive.py", "images.py", "pytorch.py"):
        digest.update((PROJECT / "tests/rig" / name).read_bytes())
    return digest.hexdigest()


def archive(name: str, root: Path) -> Path:
    """Give an image's archive, made the first time (safe between processes)."""
    recipe = RECIPES[name]
    key = hashlib.sha256(f"{_source_digest()} {root} {recipe.version}".encode()).hexdigest()[:16]
    path = CACHE / "images" / name / f"{key}.tar"
    if path.exists():
        return path
    with locked(CACHE / f"image-{name}.lock"):
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="image-") as folder:
            write_image(path, recipe.reference, recipe.write(Path(folder), root), recipe.config)
        for old in path.parent.glob("*.tar"):
            if old != path:
                old.unlink()
    return path

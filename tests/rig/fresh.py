"""Images that only a registry has: of random layers no engine ever had, laid there without any engine."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import secrets
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from functools import cache
from typing import Any

from tests.rig import images
from tests.rig.archive import ImageConfig, Layer
from tests.rig.debian import unpacked
from tests.rig.kinds import COMMON
from tests.rig.places import RigError
from tests.rig.registry import Registry

_KINDS = "application/vnd.docker."
_MANIFEST, _CONFIG = f"{_KINDS}distribution.manifest.v2+json", f"{_KINDS}container.image.v1+json"
_LAYER = f"{_KINDS}image.rootfs.diff.tar.gzip"


def fresh_image(registry: Registry, *, name: str | None = None, megabytes: Sequence[float] = (2, 4, 6)) -> str:
    """Lay a new image into a registry without a password and give its reference.

    Engines keep the content of images that were removed for a while, so that nothing of an image that was in one can be
    pulled again with certainty. This one has the `small` image's files, and above them layers of random bytes.

    Args:
        registry: where.
        name: `repository:tag`, one that leads to another image too; by default one that is new each time, since what
            containerd's store does not list stays after a test.
        megabytes: the sizes of its random layers, of which engines tell the progress. Without any it shares no layer
            with `small`: what is pulled above a layer that was loaded is at times not listed by containerd's store.
    """
    repository, _, tag = (name or f"gpuconsole-test/fresh-{secrets.token_hex(4)}:1.0").rpartition(":")
    base = _small() if megabytes else _small_anew()
    layers = [base, *(_noise(number, round(size * 1_000_000)) for number, size in enumerate(megabytes))]
    config = json.dumps(ImageConfig().document([hashlib.sha256(layer).hexdigest() for layer in layers])).encode()
    packed = [gzip.compress(layer, 1, mtime=0) for layer in layers]
    for blob in (config, *packed):
        _lay(registry, repository, blob)
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _described(_CONFIG, config),
        "layers": [_described(_LAYER, blob) for blob in packed],
    }
    headers = {"Content-Type": _MANIFEST}
    _ask(registry, "PUT", f"/v2/{repository}/manifests/{tag}", json.dumps(manifest).encode(), headers)
    return f"{registry.address}/{repository}:{tag}"


@cache
def _small() -> bytes:
    """Give the layer of the `small` image, byte for byte as engines load it."""
    with tarfile.open(images.archive("small", unpacked(COMMON))) as archive:
        (name,) = (name for name in archive.getnames() if name.endswith("/layer.tar"))
        layer = archive.extractfile(name)
        assert layer
        return layer.read()


def _small_anew() -> bytes:
    """Give that layer with one more file, of random bytes."""
    out = io.BytesIO(_small())
    with tarfile.open(fileobj=out, mode="a") as archive:
        noise = os.urandom(1000)
        info = tarfile.TarInfo("noise")
        info.size = len(noise)
        archive.addfile(info, io.BytesIO(noise))
    return out.getvalue()


def _noise(number: int, size: int) -> bytes:
    out = io.BytesIO()
    layer = Layer(out)
    layer.data(f"data{number}", os.urandom(size))
    layer.finish()
    return out.getvalue()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _described(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "size": len(blob), "digest": _digest(blob)}


def _lay(registry: Registry, repository: str, blob: bytes) -> None:
    """Upload one blob in one piece."""
    where = _ask(registry, "POST", f"/v2/{repository}/blobs/uploads/", b"", {})["Location"]
    where += f"{'&' if '?' in where else '?'}digest={urllib.parse.quote(_digest(blob))}"
    _ask(registry, "PUT", where, blob, {"Content-Type": "application/octet-stream"})


def _ask(registry: Registry, method: str, target: str, body: bytes, headers: dict[str, str]) -> Any:
    url = urllib.parse.urljoin(f"http://{registry.address}", target)
    asked = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.headers
    except urllib.error.URLError as error:
        raise RigError(f"{method} {url}: {error}") from error

"""A package index on loopback: small wheels of ours, and the pip that is installed here, served as PyPI serves them."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from urllib.parse import quote, unquote

TORCH = """\
__version__ = {version!r}
class version:
    cuda = {cuda!r}
"""


def wheel(
    name: str, version: str, files: Mapping[str, bytes], *, requires: Sequence[str] = (), scripts: Sequence[str] = ()
) -> tuple[str, bytes]:
    """A wheel's file name and content.

    Args:
        name: Of the package.
        version: Its version, with a local part if any.
        files: Path in site-packages → content.
        requires: What it needs.
        scripts: Programs it brings, ``name = module:function``.
    """
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
    entries = "[console_scripts]\n" + "".join(f"{line}\n" for line in scripts)
    whole = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: rig\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **({f"{info}/entry_points.txt": entries.encode()} if scripts else {}),
    }
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in whole.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, data in {**whole, f"{info}/RECORD": f"{record}{info}/RECORD,,\n".encode()}.items():
            archive.writestr(path, data)
    return f"{name}-{version}-py3-none-any.whl", out.getvalue()


def _digest(data: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def installed_pip(version: str) -> tuple[str, bytes]:
    """The pip installed here, as a wheel that says it is of ``version``: a Dockerfile asks for one version alone."""
    files = {
        str(file): Path(str(file.locate())).read_bytes()
        for file in metadata.files("pip") or ()
        if file.parts[0] == "pip" and "__pycache__" not in file.parts
    }
    return wheel("pip", version, files, scripts=("pip = pip._internal.cli.main:main",))


class PackageIndex:
    """Serves wheels at ``url`` until it is closed.

    Args:
        wheels: File name and content of each.
    """

    def __init__(self, wheels: Sequence[tuple[str, bytes]]) -> None:
        self.files = dict(wheels)
        self.asked: list[str] = []
        """The paths that were asked for."""
        self.hold = threading.Event()
        """Clear it to let downloads wait; set at first."""
        self.hold.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="package-index", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """What ``--index-url`` is told."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/simple"

    def page(self, project: str) -> bytes | None:
        """The links of a project; None when there is none."""
        names = [name for name in self.files if name.partition("-")[0].replace("_", "-").lower() == project]
        links = "".join(f'<a href="/files/{quote(name)}">{name}</a>\n' for name in names)
        return f"<!DOCTYPE html><html><body>{links}</body></html>".encode() if names else None

    def close(self) -> None:
        """Serve no more."""
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _handler(index: PackageIndex) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path)
            index.asked.append(path)
            kind, _, name = path.strip("/").partition("/")
            body = index.page(name.strip("/")) if kind == "simple" else index.files.get(name)
            if kind == "files":
                index.hold.wait(60)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "text/html" if kind == "simple" else "application/octet-stream")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            try:
                self.wfile.write(body or b"")
            except OSError:  # who asked is gone
                return

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler


def torch_wheels(torch: str, vision: str, audio: str, *, cuda: str, more: int = 0) -> list[tuple[str, bytes]]:
    """Packages that are called torch, torchvision and torchaudio and hold next to nothing.

    Args:
        torch: Its version, as are the next two; without the CUDA build.
        vision: Of torchvision.
        audio: Of torchaudio.
        cuda: ``12.8``, which torch says it is built for.
        more: Bytes that no line compresses, to make a download of it.
    """
    build = f"cu{cuda.replace('.', '')}"
    text = TORCH.format(version=f"{torch}+{build}", cuda=cuda).encode()
    filling = hashlib.shake_256(b"filling").digest(more) if more else b""
    return [
        wheel("torch", f"{torch}+{build}", {"torch/__init__.py": text, "torch/filling": filling}),
        wheel("torchvision", f"{vision}+{build}", {"torchvision/__init__.py": b""}, requires=[f"torch=={torch}"]),
        wheel("torchaudio", f"{audio}+{build}", {"torchaudio/__init__.py": b""}, requires=[f"torch=={torch}"]),
    ]

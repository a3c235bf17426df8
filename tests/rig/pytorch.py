"""A PyTorch image without any registry: this environment's Python and torch (CPU), with the libraries they need."""

from __future__ import annotations

import importlib.util
import os
import platform
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from tests.rig.archive import ImageConfig, Layer
from tests.rig.debian import library_path
from tests.rig.places import RigError, RigUnavailable

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
STDLIB = f"usr/local/lib/{PYTHON}"
SITE = f"{STDLIB}/site-packages"
_INSTALLED = {"site-packages", "dist-packages"}
_LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", *_INSTALLED}
_LEFT_OUT_OF_PACKAGES = {"tests", "include", "share"}
_TOOLS = (
    "bash sh ls cat sleep id env kill ps tar rm cp mv mkdir rmdir ln chmod chown head tail wc grep sed awk find true "
    "false echo date uname whoami tee sort uniq cut tr df du dd touch stat readlink dirname basename mktemp nproc "
    "hostname seq timeout gzip which setsid test expr printf sync stty tty nohup nice"
)
_PASSWD = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
_TORCHRUN = "#!/usr/local/bin/python3\nfrom torch.distributed.run import main\nmain()\n"


def _torch_version() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "none"


def _need_cpu_build() -> None:
    """Refuse where the image could not be made: no torch, or one that brings CUDA's gigabytes."""
    files = (
        [file for file in metadata.files("torch") or () if str(file) == "torch/version.py"]
        if _torch_version() != "none"
        else []
    )
    if not files:
        raise RigUnavailable("the PyTorch image is made of the torch installed here, and there is none")
    if not re.search(r"^cuda\b.*= None$", Path(str(files[0].locate())).read_text(), re.MULTILINE):
        raise RigUnavailable("the PyTorch image needs torch's CPU build, and a CUDA build is installed here")


CONFIG = ImageConfig(
    env=(
        "PATH=/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "NVIDIA_VISIBLE_DEVICES=all",
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        "LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
        f"PYTORCH_VERSION={_torch_version().partition('+')[0]}",
    ),
    command=("/bin/bash",),
    working_directory="/workspace",
    labels={"org.opencontainers.image.ref.name": "debian", "org.opencontainers.image.version": "rig"},
)
"""As the official images have it, but for CUDA_VERSION: this one has no CUDA."""


def packages() -> tuple[str, ...]:
    """Give torch and what it needs, as far as it is installed here; numpy too when it is."""
    found: list[str] = []
    waiting = ["torch", "numpy"]
    while waiting:
        name = waiting.pop(0)
        if name in found or name == "setuptools":
            continue
        try:
            requirements = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found.append(name)
        needed = [text for text in requirements if "extra ==" not in text and "platform" not in text]
        waiting += [match[0] for text in needed if (match := re.match(r"[A-Za-z0-9._-]+", text))]
    return tuple(found)


def fingerprint() -> str:
    """Give what the image depends on: the interpreter, the packages' versions and the machine's C library."""
    versions = [f"{name}={metadata.version(name)}" for name in packages()]
    return " ".join([sys.version, sys.base_prefix, platform.machine(), *platform.libc_ver(), *versions])


def _libraries(files: Iterable[Path], root: Path) -> dict[str, Path]:
    """Give the shared libraries of the machine that the files load: name → path."""
    found: dict[str, Path] = {}
    environment = {**os.environ, **library_path(root)}
    batch = [str(path) for path in files]
    for start in range(0, len(batch), 100):
        argv = ["ldd", *batch[start : start + 100]]
        listed = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listed.stdout, re.MULTILINE):
            found.setdefault(name, Path(path))
    return found


def _loader() -> str:
    """Give the path of the dynamic loader, which is written into every program."""
    listed = subprocess.run(["ldd", "/bin/ls"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"^\s*(/\S*ld-\S+)", listed, re.MULTILINE)
    if not match:
        raise RigUnavailable("this machine's programs name no dynamic loader; the rig cannot copy them")
    return match[1]


def _is_elf(path: Path) -> bool:
    if path.suffix not in ("", ".so") and ".so" not in path.name:
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _compiled(layer: Layer, source: Path, name: str, scratch: Path) -> None:
    """Add the bytecode of a source file: the installed one, else one made now."""
    cached = Path(importlib.util.cache_from_source(str(source)))
    inner = f"{os.path.dirname(name)}/__pycache__/{cached.name}"
    if cached.exists():
        layer.copy(cached, inner)
        return
    try:
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(source), cfile=str(scratch), doraise=True, invalidation_mode=mode)
    except (py_compile.PyCompileError, SyntaxError, ValueError):
        return  # templates and files for other versions
    layer.copy(scratch, inner, mode=0o644)


def _add(layer: Layer, source: Path, name: str, scratch: Path) -> None:
    layer.copy(source, name)
    if source.suffix == ".py":
        _compiled(layer, source, name, scratch)


def _standard_library() -> Iterator[tuple[Path, str]]:
    top = Path(sysconfig.get_path("stdlib"))
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(n for n in folders if n not in _LEFT_OUT | {"__pycache__"} and not n.startswith("config-"))
        for file in sorted(files):
            path = Path(folder) / file
            if path.exists():
                yield path, f"{STDLIB}/{path.relative_to(top)}"


def _package_files(name: str) -> Iterator[tuple[Path, str]]:
    for file in metadata.files(name) or ():
        parts = set(file.parts[:-1])
        if ".." in parts or "__pycache__" in parts or parts & _LEFT_OUT_OF_PACKAGES or file.suffix in (".pyi", ".a"):
            continue
        path = Path(str(file.locate()))
        if path.is_file():
            yield path, f"{SITE}/{file}"


def _write_packages(path: Path, names: Iterable[str], scratch: Path) -> list[Path]:
    """Write a layer with installed packages and give the binaries in it."""
    binaries = []
    with path.open("wb") as out:
        layer = Layer(out)
        for name in names:
            for source, inner in _package_files(name):
                _add(layer, source, inner, scratch)
                if _is_elf(source):
                    binaries.append(source)
        layer.finish()
    return binaries


def _skeleton(layer: Layer) -> None:
    for folder in ("etc", "proc", "sys", "dev", "root", "run", "usr", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64"):
        layer.folder(folder)
    for folder in ("usr/local", "usr/local/bin", "var", "var/tmp", "home", "opt", "workspace"):
        layer.folder(folder)
    layer.folder("tmp", mode=0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        layer.link(name, f"usr/{name}")
    layer.text("etc/passwd", _PASSWD)
    layer.text("etc/group", "root:x:0:\nnogroup:x:65534:\n")
    layer.text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    layer.text("etc/os-release", 'PRETTY_NAME="gpuconsole test image"\nID=gpuconsole-test\n')


def _write_system(path: Path, binaries: list[Path], scratch: Path, root: Path) -> None:
    """Write the layer below: tools, Python, and every library that it or the packages load."""
    interpreter = Path(sys.executable).resolve()
    where = f"/usr/bin:/bin:{root}/usr/bin:{root}/bin"
    tools = {name: Path(found) for name in _TOOLS.split() if (found := shutil.which(name, path=where))}
    for name in ("bash", "sh", "sleep", "cat"):
        if name not in tools:
            raise RigError(f"{name} is not on this machine; the image needs it")
    standard = list(_standard_library())
    loaded = [*binaries, interpreter, *(tool.resolve() for tool in tools.values())]
    loaded += [source for source, _ in standard if _is_elf(source)]
    inside = {source.name for source in binaries}
    with path.open("wb") as out:
        layer = Layer(out)
        _skeleton(layer)
        for name, tool in tools.items():
            if _is_elf(tool.resolve()) or tool.read_bytes().startswith((b"#!/bin/sh", b"#! /bin/sh")):
                layer.copy(tool, f"usr/bin/{name}", mode=0o755)
        libraries = {name: library for name, library in _libraries(loaded, root).items() if name not in inside}
        home = libraries["libc.so.6"].parent  # the loader looks there without being told
        for name, library in sorted(libraries.items()):
            layer.copy(library, f"usr/lib/{home.name}/{name}" if home.name != "lib64" else f"usr/lib64/{name}")
        loader = _loader()
        layer.copy(Path(loader), f"usr{loader.removeprefix('/usr')}", mode=0o755)
        layer.copy(interpreter, f"usr/local/bin/{PYTHON}", mode=0o755)
        for name in ("python3", "python"):
            layer.link(f"usr/local/bin/{name}", PYTHON)
        layer.text("usr/local/bin/torchrun", _TORCHRUN, mode=0o755)
        if Path("/etc/debian_version").exists() and sys.base_prefix == "/usr":
            layer.link(f"{STDLIB}/dist-packages", "site-packages")  # Debian's own Python looks there
        for source, inner in standard:
            _add(layer, source, inner, scratch)
        layer.finish()


def write_layers(folder: Path, root: Path) -> list[Path]:
    """Write the image's layers: system, what torch needs, torch. Tools this machine lacks come from the root."""
    _need_cpu_build()
    scratch = folder / "compiled.pyc"
    names = packages()
    system, needed, torch = (folder / f"{name}.tar" for name in ("system", "needed", "torch"))
    binaries = _write_packages(torch, ["torch"], scratch)
    binaries += _write_packages(needed, [name for name in names if name != "torch"], scratch)
    _write_system(system, binaries, scratch, root)
    return [system, needed, torch]


def write_python_layers(folder: Path, root: Path) -> list[Path]:
    """Write the layers of an image with Python alone, that can make virtual environments: a base to build on."""
    home = Path(sysconfig.get_path("stdlib")) / "ensurepip"
    wheels = list((home / "_bundled").glob("*.whl"))
    if not wheels:
        raise RigUnavailable("this environment's Python brings no pip to make virtual environments with")
    system, maker = folder / "system.tar", folder / "ensurepip.tar"
    _write_system(system, [], folder / "compiled.pyc", root)
    with maker.open("wb") as out:
        layer = Layer(out)
        for source in (*sorted(home.glob("*.py")), *sorted(wheels)):
            layer.copy(source, f"{STDLIB}/ensurepip/{source.relative_to(home)}")
        layer.finish()
    return [system, maker]

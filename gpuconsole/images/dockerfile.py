"""The Dockerfile of an image with PyTorch: pure text, which needs no files beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote

from gpuconsole.images.reference import parse
from gpuconsole.images.versions import minor, version

USER_ID = 1000
"""Whom the image's programs run as: the first user of most machines, so that what they write in a mount is theirs."""
USER = "torch"
HOME = f"/home/{USER}"
WORKSPACE = "/workspace"
_VENV = "/opt/venv"
_TORCH_INDEX = "https://download.pytorch.org/whl/{build}"
"""PyTorch's own package index, a folder for each CUDA build."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What a container has when its image says nothing."""
_FIRST_NUMPY_2 = (2, 3)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What goes into an image."""

    base: str
    """The image it is laid on, with its digest where one is known."""
    torch: str
    """``2.9.1``."""
    vision: str
    audio: str
    cuda: str
    """``12.8``."""
    tools: Mapping[str, str]
    """Package → version of pip, setuptools, jupyterlab and tensorboard."""
    ours: bool = True
    """The base is one of the table's, so it has Ubuntu's package manager and no Python."""
    architecture: str = "amd64"
    python: str | None = None
    """Minor version; None when it is the base's, which nobody asked."""
    system: str | None = None
    """``ubuntu 24.04``."""
    cudnn: str | None = None
    nccl: str | None = None
    index_url: str | None = None
    """Where packages come from; None for pip's own."""
    torch_index_url: str | None = None
    """Where torch comes from; None for PyTorch's own index."""
    made_by: str = field(default="gpuconsole", compare=False)

    @property
    def build(self) -> str:
        """How PyTorch calls the CUDA build: ``cu128``."""
        return f"cu{self.cuda.replace('.', '')}"

    @property
    def name(self) -> str:
        """``2.9.1-cu128``."""
        return f"{self.torch}-{self.build}"


def dockerfile(recipe: Recipe) -> str:
    """The Dockerfile of ``recipe``; ``docker build - < FILE`` makes the same image of it."""
    steps = (
        f"# PyTorch {recipe.torch} for CUDA {recipe.cuda}, JupyterLab and TensorBoard; written by {recipe.made_by}.",
        f"# By hand: docker build -t pytorch-cuda:{recipe.name} - < Dockerfile",
        f"FROM {recipe.base}",
        "USER 0:0",
        'SHELL ["/bin/sh", "-c"]',
        "",
        *_system(recipe),
        "",
        *_user(),
        "",
        *_tools(recipe),
        "",
        *_torch(recipe),
        "",
        *_labels(recipe),
        "",
        f"WORKDIR {WORKSPACE}",
        f"USER {USER_ID}:{USER_ID}",
        "ENTRYPOINT []",
        'CMD ["/bin/bash"]',
    )
    return "\n".join(steps) + "\n"


def _system(recipe: Recipe) -> tuple[str, ...]:
    packages = "ca-certificates gcc g++ git libc6-dev python3 python3-dev python3-venv"
    install = (
        "export DEBIAN_FRONTEND=noninteractive; rm -f /etc/apt/sources.list.d/cuda*; apt-get update; \\\n"
        f"    apt-get install -y --no-install-recommends {packages}; \\\n    rm -rf /var/lib/apt/lists/*"
    )
    why = (
        "# Python, and the C compiler and headers that torch.compile needs. NVIDIA's own package source goes: torch\n"
        "# brings its CUDA libraries along, and nothing here is to be replaced by newer ones."
    )
    if recipe.ours:
        return why, f"RUN set -eu; {install}"
    lacks = "gpuconsole: the base has neither python3 nor apt-get to install it"
    return (
        why,
        f"RUN set -eu; if command -v apt-get >/dev/null; then {install}; fi; \\",
        f"    command -v python3 >/dev/null || {{ echo '{lacks}' >&2; exit 1; }}",
    )


def _user() -> tuple[str, ...]:
    entry = f"{USER}:x:{USER_ID}:{USER_ID}::{HOME}:/bin/bash"
    return (
        "# A user that is not root. Home and workspace take whatever user a container is started as.",
        "RUN set -eu; if grep -q '^ubuntu:' /etc/passwd && command -v userdel >/dev/null; "
        "then userdel --remove ubuntu; fi; \\",
        f"    grep -q '^{USER}:' /etc/group || echo '{USER}:x:{USER_ID}:' >> /etc/group; \\",
        f"    grep -q '^{USER}:' /etc/passwd || echo '{entry}' >> /etc/passwd; \\",
        f"    mkdir -p {HOME} {WORKSPACE}; chown {USER_ID}:{USER_ID} {HOME} {WORKSPACE}; chmod 1777 {HOME} {WORKSPACE}",
        "# With USER, torch.compile finds a name for its cache also where the user id has none.",
        f"ENV HOME={HOME} USER={USER} PATH={_VENV}/bin:${{PATH:-{_PATH}}}",
    )


def _tools(recipe: Recipe) -> tuple[str, ...]:
    index = f" --index-url {quote(recipe.index_url)}" if recipe.index_url else ""
    tools = recipe.tools
    packages = [f"{name}=={tools[name]}" for name in ("setuptools", "jupyterlab", "tensorboard")]
    return (
        "# Everybody may write here, so that 'pip install' works for any user. JupyterLab and TensorBoard come before",
        "# torch: what is most to download and changes most often is the last step.",
        f"RUN set -eu; umask 0; python3 -m venv {_VENV}; \\",
        f"    pip install --no-cache-dir --disable-pip-version-check{index} pip=={tools['pip']}; \\",
        f"    pip install --no-cache-dir --progress-bar raw{index} {' '.join([*packages, *_numpy(recipe)])}",
    )


def _numpy(recipe: Recipe) -> tuple[str, ...]:
    """Releases before 2.3 were compiled for NumPy 1 and fail with a newer one."""
    return () if version(recipe.torch)[:2] >= _FIRST_NUMPY_2 else ("'numpy<2'",)


def pins(recipe: Recipe) -> tuple[str, ...]:
    """Torch and its two companions, each held to its version and to one CUDA build."""
    build = f"+{recipe.build}"
    # The companions' packages for other processors carry the build in their name for some releases only.
    other = build if recipe.architecture == "amd64" else ""
    return f"torch=={recipe.torch}{build}", f"torchvision=={recipe.vision}{other}", f"torchaudio=={recipe.audio}{other}"


def _torch(recipe: Recipe) -> tuple[str, ...]:
    index = quote(recipe.torch_index_url or _TORCH_INDEX.format(build=recipe.build))
    held = " ".join(pins(recipe))
    packages = " ".join([held, *_numpy(recipe)])
    proof = (
        f"import torch; v = torch.__version__, torch.version.cuda; print('torch', *v); "
        f"assert v == ('{recipe.torch}+{recipe.build}', '{recipe.cuda}'), v"
    )
    return (
        "# The constraints keep a later 'pip install' from replacing torch; an empty PIP_CONSTRAINT lifts them.",
        "RUN set -eu; umask 0; \\",
        f"    pip install --no-cache-dir --progress-bar raw --index-url {index} {packages}; \\",
        f"    printf '%s\\n' {held} > {_VENV}/constraints.txt; \\",
        f'    python -c "{proof}"',
        f"ENV PIP_CONSTRAINT={_VENV}/constraints.txt",
    )


def _labels(recipe: Recipe) -> tuple[str, ...]:
    reference = parse(recipe.base) if not recipe.base.startswith("sha256:") else None
    labels = {
        "org.opencontainers.image.title": f"PyTorch {recipe.torch} for CUDA {recipe.cuda}",
        "org.opencontainers.image.version": recipe.name,
        "org.opencontainers.image.ref.name": "pytorch-cuda",  # else the base's own stays, and would say Ubuntu
        "org.opencontainers.image.base.name": recipe.base.partition("@")[0],
        "org.opencontainers.image.base.digest": reference.digest if reference else None,
        "gpuconsole.torch": f"{recipe.torch}+{recipe.build}",
        "gpuconsole.torchvision": recipe.vision,
        "gpuconsole.torchaudio": recipe.audio,
        "gpuconsole.cuda": recipe.cuda,
        "gpuconsole.cudnn": recipe.cudnn,
        "gpuconsole.nccl": recipe.nccl,
        "gpuconsole.python": None if recipe.python is None else minor(recipe.python),
        "gpuconsole.system": recipe.system,
        "gpuconsole.jupyterlab": recipe.tools["jupyterlab"],
        "gpuconsole.tensorboard": recipe.tools["tensorboard"],
    }
    rows = [f"{name}={json.dumps(value)}" for name, value in labels.items() if value]
    return ("LABEL " + " \\\n      ".join(rows),)

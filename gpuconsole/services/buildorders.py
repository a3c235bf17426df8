"""What somebody wants built, made a recipe: what is left open is chosen for this machine, what never was is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole import __version__
from gpuconsole.core.errors import UsageError
from gpuconsole.core.text import plain_line
from gpuconsole.images.catalog import shipped_catalog
from gpuconsole.images.compatibility import shipped_compatibility
from gpuconsole.images.dockerfile import Recipe
from gpuconsole.images.judge import judge
from gpuconsole.images.reference import is_pytorch, parse
from gpuconsole.images.torchbuilds import Base, Release, TorchBuilds, shipped_builds
from gpuconsole.images.traits import ImageTraits
from gpuconsole.images.verdict import HostTraits, Verdict, Word
from gpuconsole.images.versions import minor, version
from gpuconsole.launch.spec import PullPolicy

_URL = re.compile(r"^https?://[^\s'\"\\@/?#]+(?:[/?#][^\s'\"\\]*)?\Z")
_LOGIN = re.compile(r"^https?://[^/?#]*@")
_ORDER = tuple(Word)


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """What somebody wants built; what is None is chosen for this machine."""

    torch: str | None = None
    """``2.9.1``, or ``2.9`` for its newest."""
    cuda: str | None = None
    """``12.8``."""
    python: str | None = None
    """``3.12``; only where the base is ours."""
    base: str | None = None
    """The image to build on, in place of ``nvidia/cuda``."""
    tag: str | None = None
    """The new image's name."""
    index_url: str | None = None
    """Where all Python packages come from, in place of PyPI and PyTorch's own index."""
    torch_index_url: str | None = None
    """Where torch comes from, in place of PyTorch's own index."""
    network: str | None = None
    """The network that the build's steps have, as ``docker build --network`` has it."""
    pull: PullPolicy = PullPolicy.MISSING
    """When the base is pulled."""
    fresh: bool = False
    """Carry out every step, also those that an earlier build has done."""
    force: bool = False
    """Also where the engine's disk seems too small."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What an order comes to; its base is not looked up yet."""

    recipe: Recipe
    name: str
    """The new image's name."""
    verdict: Verdict
    """Whether it will run on the machine it was chosen for."""


def choose(order: BuildOrder, host: HostTraits, *, architecture: str = "amd64") -> Chosen:
    """The recipe of ``order``.

    Args:
        order: What is wanted.
        host: The machine the image is for; what is left open is chosen so that it runs there.
        architecture: The processor of the engine's machine, ``amd64`` or ``arm64``.

    Raises:
        UsageError: There never was such a build, or the order contradicts itself.
    """
    builds = shipped_builds()
    platform = f"linux/{architecture}"
    for url in (order.index_url, order.torch_index_url):
        _refuse_url(url)
    name = None if order.tag is None else _tag(order.tag)
    release, cuda = _build_of(builds, order, host, platform)
    base = _base(builds, order, cuda)
    recipe = Recipe(
        base=base.reference,
        torch=release.torch,
        vision=release.vision,
        audio=release.audio,
        cuda=cuda,
        tools=builds.tools,
        ours=order.base is None,
        architecture=architecture,
        python=base.python or None,
        system=base.system or None,
        cudnn=_cudnn(release.torch, cuda),
        nccl=release.nccl if cuda == release.default else None,
        index_url=order.index_url,
        torch_index_url=order.torch_index_url or order.index_url,
        made_by=f"gpuconsole {__version__}",
    )
    return Chosen(recipe, name or f"pytorch-cuda:{recipe.name}", _verdict(release.torch, cuda, host, platform))


def _build_of(builds: TorchBuilds, order: BuildOrder, host: HostTraits, platform: str) -> tuple[Release, str]:
    """Release and CUDA, as far as they are said; the rest so that it runs."""
    if order.cuda is not None:
        release = builds.release(order.torch)
        if order.torch is None:
            release = builds.newest_for(_plain_cuda(order.cuda)) or release
        return release, builds.cuda(release, order.cuda, platform)
    if order.torch is not None:
        releases: Sequence[Release] = (builds.release(order.torch),)
    else:
        releases = tuple(reversed(builds.releases))
    for release in releases:
        cuda, verdict = _best(builds, release, host, platform)
        if verdict is not None and (verdict.word is not Word.WILL_NOT_RUN or len(releases) == 1):
            return release, cuda
    release = releases[0]  # nothing runs here, or nothing is built for this processor: the newest, or the refusal
    return release, builds.cuda(release, release.default, platform)


def _best(builds: TorchBuilds, release: Release, host: HostTraits, platform: str) -> tuple[str, Verdict | None]:
    """The CUDA that suits the machine best: of equals the one that PyPI has, else the newest."""
    found = [(cuda, _verdict(release.torch, cuda, host, platform)) for cuda in builds.cudas_for(release, platform)]
    if not found:
        return release.default, None
    best = min(found, key=lambda each: (_ORDER.index(each[1].word), each[0] != release.default, _backwards(each[0])))
    return best


def _backwards(text: str) -> tuple[int, ...]:
    return tuple(-part for part in version(text))


def _plain_cuda(text: str) -> str:
    digits = text.removeprefix("cu")
    return minor(text) if "." in text else f"{digits[:-1]}.{digits[-1:]}"


def _verdict(torch: str, cuda: str, host: HostTraits, platform: str) -> Verdict:
    """Whether a build on ``nvidia/cuda`` will run: with that base's demands on the driver, and its libcuda."""
    known = shipped_compatibility()
    kernels = known.kernels(torch, cuda, platform)
    demanded = known.demanded.get(minor(cuda), ())
    image = ImageTraits(
        name=f"torch {torch} for CUDA {cuda}",
        platforms=(platform,),
        torch=torch,
        cuda=cuda,
        kernels={platform: kernels} if kernels else {},
        demands=tuple((text,) for text in demanded) or None,
        libcuda=True,
    )
    return judge(image, host, known)


def _base(builds: TorchBuilds, order: BuildOrder, cuda: str) -> Base:
    if order.base is None:
        return builds.base(cuda, order.python)
    if order.python is not None:
        raise UsageError(
            "--python chooses among gpuconsole's own bases, and --base names another.",
            hint="Leave one of the two out: the image has the Python of its base.",
        )
    try:
        return Base(str(parse(order.base)), cuda, "", "")
    except ValueError as error:
        raise UsageError(f"--base: {error}.", hint="Write it like nvidia/cuda:12.8.1-base-ubuntu24.04.") from error


def _tag(text: str) -> str:
    try:
        reference = parse(text)
    except ValueError as error:
        raise UsageError(f"--tag: {error}.", hint="Write it like pytorch-cuda:v2.9.") from error
    if reference.digest is not None:
        raise UsageError(
            "--tag names the new image, whose digest nobody knows yet.", hint="Write it like pytorch-cuda:v2.9."
        )
    return str(reference)


def _refuse_url(url: str | None) -> None:
    if url is None or _URL.match(url):
        return
    if _LOGIN.match(url):
        raise UsageError(
            "The package index holds a login, which everybody could read in the image's history.",
            hint="Name an index that asks for none, such as a mirror on this network.",
        )
    raise UsageError(
        f"{plain_line(url)!r} is no address of a package index.", hint="Write it like https://mirror.example/simple."
    )


def _cudnn(torch: str, cuda: str) -> str | None:
    """The cuDNN of PyTorch's own image of the same build: both install the same packages."""
    found = {
        image.cudnn
        for image in shipped_catalog().images
        if is_pytorch(image.parsed) and image.torch == torch and minor(image.cuda or "") == cuda and image.cudnn
    }
    return found.pop() if len(found) == 1 else None

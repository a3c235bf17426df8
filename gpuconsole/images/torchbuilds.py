"""Which builds of PyTorch there are, what goes with each, and what they are laid on: ``builds.toml`` as objects."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpuconsole.core.errors import UsageError
from gpuconsole.core.text import plain_line, shorten
from gpuconsole.images.compatibility import shipped_compatibility
from gpuconsole.images.versions import minor, version

_NAME = 24
"""What is shown of a version that somebody wrote."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of PyTorch."""

    torch: str
    """``2.9.1``."""
    vision: str
    """The torchvision made for it."""
    audio: str
    """The torchaudio made for it."""
    cudas: tuple[str, ...]
    """CUDA versions it is built for, the oldest first; those its release matrix does not name are among them."""
    default: str
    """The CUDA of the build that PyPI has."""
    python: tuple[str, str]
    """The oldest and the newest Python it is built for."""
    announced: tuple[str, ...] = ()
    """Those of ``cudas`` that the release matrix names."""
    nccl: str | None = None
    """NCCL of the default build; None when not known."""


@dataclass(frozen=True, slots=True)
class Base:
    """An image without torch that one with torch is laid on."""

    reference: str
    cuda: str
    python: str
    system: str
    """``ubuntu 24.04``."""


@dataclass(frozen=True, slots=True)
class TorchBuilds:
    """All of them."""

    releases: tuple[Release, ...]
    """The oldest first."""
    bases: tuple[Base, ...]
    tools: Mapping[str, str]
    """Package → version of what goes in beside torch."""

    def release(self, wanted: str | None) -> Release:
        """The release of that version, or the newest of ``2.9``; the newest of all when none is asked for.

        Raises:
            UsageError: There is none; the hint names those that are nearest.
        """
        if wanted is None:
            return self.releases[-1]
        parts = version(wanted.removeprefix("v"))
        found = [each for each in self.releases if parts and version(each.torch)[: len(parts)] == parts]
        if not found or len(parts) > 3 or not wanted.removeprefix("v").replace(".", "").isdigit():
            minors = list(dict.fromkeys(minor(each.torch) for each in self.releases))
            same = [each.torch for each in self.releases if len(parts) > 2 and version(each.torch)[:2] == parts[:2]]
            listed = f"{_listed(same)} of {minor(wanted)}" if same else f"{minors[0]} to {minors[-1]}"
            raise UsageError(
                f"There is no PyTorch {_shown(wanted)} to build with, as far as gpuconsole knows.",
                hint=f"It knows {listed}; an image of another release can be pulled: gpuconsole catalog --all",
            )
        return found[-1]

    def newest_for(self, cuda: str) -> Release | None:
        """The newest release that is built for ``cuda``, by its release matrix where that names one."""
        found = [each for each in self.releases if minor(cuda) in each.cudas]
        return max(found, key=lambda each: (minor(cuda) in each.announced, version(each.torch)), default=None)

    def cudas_for(self, release: Release, platform: str) -> tuple[str, ...]:
        """The CUDA versions of ``release`` for a platform, ``linux/arm64``."""
        if platform == "linux/amd64":
            return release.cudas
        known = shipped_compatibility()
        return tuple(cuda for cuda in release.cudas if known.kernels(release.torch, cuda, platform) is not None)

    def cuda(self, release: Release, wanted: str, platform: str) -> str:
        """``wanted`` as the table writes it, when PyTorch built ``release`` for it.

        Raises:
            UsageError: It did not; the hint names what there is.
        """
        there = self.cudas_for(release, platform)
        asked = minor(wanted.removeprefix("cu")) if "." in wanted else _dotted(wanted.removeprefix("cu"))
        if asked in there:
            return asked
        elsewhere = self.newest_for(asked)
        other = f"; CUDA {asked} goes with --torch {elsewhere.torch} at the newest" if elsewhere else ""
        on = "" if platform == "linux/amd64" else f" on {platform}"
        if not there:
            raise UsageError(
                f"PyTorch {release.torch} was not built with CUDA for {platform}, as far as gpuconsole knows.",
                hint="NVIDIA's images have it: gpuconsole catalog --all",
            )
        raise UsageError(
            f"There is no PyTorch {release.torch} for CUDA {_shown(wanted)}{on}.",
            hint=f"There are builds for CUDA {_listed(there)}{other}.",
        )

    def base(self, cuda: str, python: str | None) -> Base:
        """The base of a CUDA; with a certain Python where that is asked for.

        Raises:
            UsageError: None of them has that Python.
        """
        found = [each for each in self.bases if each.cuda == cuda]
        if python is None:
            return found[0]
        fitting = [each for each in found if each.python == minor(python)]
        if not fitting:
            have = _listed([each.python for each in found])
            raise UsageError(
                f"For CUDA {cuda} there is no base with Python {_shown(python)}.",
                hint=f"There are bases with Python {have}; any other can be named: --base IMAGE",
            )
        return fitting[0]


def _dotted(digits: str) -> str:
    """``128`` as ``12.8``."""
    return f"{digits[:-1]}.{digits[-1]}" if digits.isdigit() and len(digits) > 1 else digits


def _shown(text: str) -> str:
    return shorten(plain_line(text), _NAME)


def _listed(words: Sequence[str]) -> str:
    """``12.6, 12.8 and 13.0``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


@cache
def shipped_builds() -> TorchBuilds:
    """The table shipped with gpuconsole."""
    with (Path(__file__).parent / "builds.toml").open("rb") as file:
        table = tomllib.load(file)
    releases = [
        Release(
            torch=row["version"],
            vision=row["vision"],
            audio=row["audio"],
            cudas=tuple(sorted((*row["cuda"], *row.get("also", ())), key=version)),
            announced=tuple(row["cuda"]),
            default=row["default"],
            python=(row["python"][0], row["python"][1]),
            nccl=row.get("nccl"),
        )
        for row in table["torch"]
    ]
    bases = tuple(Base(row["reference"], row["cuda"], row["python"], row["system"]) for row in table["bases"])
    return TorchBuilds(tuple(sorted(releases, key=lambda each: version(each.torch))), bases, dict(table["tools"]))

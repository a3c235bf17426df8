"""Which driver runs which CUDA, and which GPUs PyTorch's builds have code for: ``compatibility.toml`` as objects."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gpuconsole.images.versions import at_least, capability, major, minor, version


@dataclass(frozen=True, slots=True)
class Toolkit:
    """A CUDA toolkit and the drivers it asks for."""

    cuda: str
    """``12.8``."""
    driver: str
    """The driver it came with: from it on, it runs natively."""
    floor: str
    """The oldest driver that runs it, by minor-version compatibility."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """What a build of torch has code for."""

    cubins: tuple[tuple[int, int], ...]
    """Compute capabilities with machine code of their own."""
    ptx: tuple[int, int] | None = None
    """The capability of the code that the driver can compile for newer GPUs."""

    def serves(self, capability: tuple[int, int]) -> bool:
        """Whether machine code runs on a GPU of ``capability``: same major, same or newer minor."""
        return any(major == capability[0] and minor <= capability[1] for major, minor in self.cubins)

    def compiles_for(self, capability: tuple[int, int]) -> bool:
        """Whether the driver can make machine code for a GPU of ``capability`` when a program starts."""
        return self.ptx is not None and self.ptx <= capability


@dataclass(frozen=True, slots=True)
class Compatibility:
    """The facts that judge an image."""

    toolkits: Mapping[str, Toolkit]
    builds: Mapping[tuple[str, str, str], Kernels]
    """(torch minor, CUDA minor, platform) → what PyTorch's own build of it has code for."""
    forward: Mapping[str, tuple[int, ...]]
    """CUDA minor → driver branches that may use its libcuda; ``""`` for all others."""
    demanded: Mapping[str, tuple[str, ...]]
    """CUDA minor → what ``NVIDIA_REQUIRE_CUDA`` of its base image says; several when it was changed once."""
    first_drivers: Mapping[int, str] = field(default_factory=dict)
    """Major of a compute capability → the oldest driver that knows such GPUs at all; not every generation is there."""

    def toolkit(self, cuda: str) -> Toolkit | None:
        """The toolkit of a CUDA version, patch level or not; its own driver is ``""`` when only the floor is known."""
        exact = self.toolkits.get(minor(cuda))
        if exact is not None:
            return exact
        floors = {each.floor for each in self.toolkits.values() if major(each.cuda) == major(cuda)}
        return Toolkit(cuda=minor(cuda), driver="", floor=floors.pop()) if len(floors) == 1 else None

    def cuda_of(self, driver: str) -> tuple[str, bool] | None:
        """The CUDA a driver offers, and whether that is exact: of a driver newer than all known ones it is a bound."""
        found: tuple[str, bool] | None = None
        newer = False
        for each in sorted(self.toolkits.values(), key=lambda each: version(each.cuda)):
            newer = not at_least(driver, each.driver)
            if not newer:
                found = each.cuda, True
        return (found[0], newer) if found else None

    def kernels(self, torch: str, cuda: str, platform: str) -> Kernels | None:
        """What PyTorch's own build of torch for this CUDA has code for; None when no such build is known."""
        return self.builds.get((minor(torch), minor(cuda), platform))

    def forward_branches(self, cuda: str) -> frozenset[int]:
        """Driver branches whose data-centre GPUs may use the libcuda of this CUDA."""
        return frozenset(self.forward.get("", ())) | frozenset(self.forward.get(minor(cuda), ()))


@cache
def shipped_compatibility() -> Compatibility:
    """The facts shipped with gpuconsole."""
    with (Path(__file__).parent / "compatibility.toml").open("rb") as file:
        table = tomllib.load(file)
    return Compatibility(
        toolkits={
            row["version"]: Toolkit(cuda=row["version"], driver=row["driver"], floor=row["floor"])
            for row in table["cuda"]
        },
        builds={(row["torch"], row["cuda"], row["platform"]): _kernels(row) for row in table["builds"]},
        forward={row["cuda"]: tuple(row["branches"]) for row in table["forward"]},
        demanded=_demanded(table),
        first_drivers={major: row["driver"] for row in table["generations"] for major in row["majors"]},
    )


def _kernels(row: Mapping[str, Any]) -> Kernels:
    ptx = row.get("ptx")
    return Kernels(cubins=tuple(capability(text) for text in row["sm"]), ptx=None if ptx is None else capability(ptx))


def _demanded(table: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """The rows written out as NVIDIA writes them in the variable."""
    found: dict[str, list[str]] = {}
    for row in table["demand"]:
        terms = [f"cuda>={row['cuda']}"]
        terms += [_term("tesla", branch) for branch in row.get("tesla", ())]
        terms += [_term(brand, branch) for branch in row["branches"] for brand in table["brands"][row["brands"]]]
        found.setdefault(row["cuda"], []).append(" ".join(terms))
    return {cuda: tuple(texts) for cuda, texts in found.items()}


def _term(brand: str, branch: int) -> str:
    return f"brand={brand},driver>={branch},driver<{branch + 1}"

"""The GPUs to choose from: what is free, who holds them, and which ones a wish would get now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import gib
from gpuconsole.gpu.names import short_name
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.launch.claims import Claims, claims_of
from gpuconsole.launch.gpus import choose_gpus
from gpuconsole.launch.spec import GpuWish, GpuWishKind
from gpuconsole.launch.units import GpuUnit, Withheld, units_of, withheld_of
from gpuconsole.launch.wish import parse_gpus
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.gpu import state_cell
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.services.containers import ContainerView


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One GPU, or one MIG instance, to choose."""

    index: str
    """As ``device=`` names it; empty for one that cannot be chosen."""
    picked: bool
    cells: tuple[Cell, ...]


def claims(host: HostView | None, containers: Iterable[ContainerView] | None) -> Claims:
    """Which GPUs the containers that run were given."""
    if host is None:
        return {}
    return claims_of((view.container for view in containers or ()), host.snapshot.gpus)


def picked(host: HostView | None, wish: str, claims: Claims | None = None) -> frozenset[str]:
    """Indices of the GPUs that ``wish`` would get now; none when it is wrong or cannot be had."""
    if host is None:
        return frozenset()
    try:
        asked = parse_gpus(wish) if wish.strip() else GpuWish(GpuWishKind.AUTO)
        return frozenset(unit.index for unit in choose_gpus(asked, host.snapshot, claims).units)
    except (ValueError, ConsoleError):
        return frozenset()


def uuids(host: HostView | None) -> dict[str, str]:
    """UUID of everything that can be chosen, by its index."""
    return {} if host is None else {unit.index: unit.uuid for unit in units_of(host.snapshot)}


def gpu_rows(host: HostView | None, wish: str, glyphs: Glyphs, claims: Claims | None = None) -> tuple[GpuRow, ...]:
    """The GPUs in their order, then those that cannot be given; empty when there are none to show."""
    if host is None:
        return ()
    chosen = picked(host, wish, claims)
    views = {view.gpu.index: view for view in host.gpus}
    units, others = units_of(host.snapshot, claims), withheld_of(host.snapshot)
    names = max((len(_name(unit)) for unit in (*units, *(one.unit for one in others))), default=0)
    states = max((len(state_cell(view, glyphs).text) for view in host.gpus), default=0)
    widths = (names, states)
    rows = [_row(unit, views.get(unit.gpu.index), unit.index in chosen, glyphs, widths) for unit in units]
    withheld = [_withheld(one, views.get(one.unit.gpu.index), glyphs, widths) for one in others]
    return (*rows, *withheld)


def no_gpus(host: HostView | None) -> str:
    """What stands in place of the rows."""
    if host is None:
        return "Looking for GPUs"
    return host.snapshot.problem or "This machine has no GPU: it is launched without one."


def toggled(chosen: Iterable[str], index: str) -> str:
    """The wish after ``index`` was ticked or unticked: exactly these GPUs."""
    after = set(chosen) ^ {index}
    if not after:
        return "none"
    return f"device={','.join(sorted(after, key=_place))}"


def _place(index: str) -> tuple[int, ...]:
    return tuple(int(part) for part in index.split(":") if part.isdigit())


def _row(unit: GpuUnit, view: GpuView | None, is_picked: bool, glyphs: Glyphs, widths: tuple[int, int]) -> GpuRow:
    names, states = widths
    state = state_cell(view, glyphs) if view else Cell("")
    cells = (
        Cell("[X] " if is_picked else "[ ] ", "accent" if is_picked else "dim"),
        Cell(f"{unit.index:>3} {_name(unit):<{names}} ", "strong" if is_picked else ""),
        Cell(f"{_free(unit):<22} "),
        Cell(f"{state.text:<{states}} ", state.tone),
        Cell(_holders(unit, view), "dim"),
    )
    return GpuRow(unit.index, is_picked, cells)


def _withheld(one: Withheld, view: GpuView | None, glyphs: Glyphs, widths: tuple[int, int]) -> GpuRow:
    names, states = widths
    state = state_cell(view, glyphs) if view else Cell("")
    words = f"    {one.unit.index:>3} {_name(one.unit):<{names}} {'cannot be given':<22} "
    return GpuRow(
        "", False, (Cell(words, "dim"), Cell(f"{state.text:<{states}} ", state.tone), Cell(one.reason, "dim"))
    )


def _name(unit: GpuUnit) -> str:
    return ((unit.mig.name or "MIG") if unit.mig else short_name(unit.gpu.name))[:14]


def _free(unit: GpuUnit) -> str:
    if unit.gpu.unified_memory:
        return "unified memory"
    if unit.used_bytes is None or unit.total_bytes is None:
        return "memory unknown"
    return f"{gib(max(0, unit.total_bytes - unit.used_bytes)):>5} of {gib(unit.total_bytes)} GiB free"


def _holders(unit: GpuUnit, view: GpuView | None) -> str:
    """Who has it: by its processes, and the containers it was given to that have none on it now."""
    held = () if view is None else view.holders
    mine = [each for each in held if unit.mig is None or each.mig_uuid == unit.mig.uuid]
    names = dict.fromkeys(
        each.container_name or (each.container_id or "")[:12] or f"{each.user or 'pid'}:{each.pid}" for each in mine
    )
    idle = [f"{one} (idle)" for one in unit.claimants if one.name not in names]
    return ", ".join((*names, *idle))

"""The GPUs and their holders as text for people."""

from __future__ import annotations

from gpuconsole.cli.glyphs import Glyphs, styled
from gpuconsole.cli.status_holders import holders_text, memory_remarks
from gpuconsole.cli.status_line import COLOURS, alarms, word
from gpuconsole.cli.tables import Column, table, wrapped
from gpuconsole.core.records import dataclass
from gpuconsole.core.text import gib
from gpuconsole.gpu.model import Gpu, GpuStatus, Mig
from gpuconsole.gpu.names import short_name
from gpuconsole.host.accounting import use_of
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.host.state import ahead_of, memory_state

_BAR_CELLS = 10
_DEFAULT_WIDTH = 80

_GPU_COLUMNS = (
    Column("GPU", flexible=True), Column("UTIL", "right"), Column("MEMORY GiB"), Column("TEMP", "right"),
    Column("POWER", "right"), Column("STATE"),
)  # fmt: skip

_THROTTLES = {
    "application-clocks": "clocks set by hand",
    "sw-power-cap": "at the power limit",
    "hw-slowdown": "slowed down by the hardware (heat or power)",
    "sync-boost": "in step with other GPUs",
    "sw-thermal": "too hot",
    "hw-thermal": "too hot (hardware protection)",
    "hw-power-brake": "braked by the power supply",
    "display-clock": "display clock",
    "board-limit": "at the board's limit",
    "reliability": "at the voltage limit",
}
_LOST_HINT = (
    "Save what runs on the other GPUs, look for Xid lines in the kernel log (sudo dmesg | grep -i xid), then restart "
    "the machine."
)


def overview_text(view: HostView, glyphs: Glyphs, *, averaged: bool = False) -> str:
    """Everything ``status`` tells a person.

    Args:
        view: The GPUs and their holders.
        glyphs: What the terminal can show.
        averaged: The CPU use of the holders is that since each of them began.
    """
    snapshot = view.snapshot
    parts = [_wrapped(f"driver {snapshot.driver_version or '–'} · CUDA {snapshot.cuda_version or '–'}", glyphs)]
    if view.gpus:
        parts += ["", _gpus(view, glyphs)]
    holders = holders_text(view, glyphs, averaged=averaged)
    if holders:
        parts += ["", holders]
    remarks = [
        *_problem(view),
        *(line for gpu in view.gpus for line in (*_ahead(gpu), *_remarks(gpu.gpu), *memory_remarks(gpu))),
    ]
    remarks += view.notes
    if remarks:
        parts += ["", *(_wrapped(remark, glyphs) for remark in remarks)]
    return _coloured(glyphs.text("\n".join(parts)), view, glyphs)


def _gpus(view: HostView, glyphs: Glyphs) -> str:
    pools: list[GpuView | Mig] = []
    for entry in view.gpus:
        pools += [entry, *entry.gpu.migs]
    memories = {id(pool): _Memory.of(pool) for pool in pools}
    cells = max(len(memory.figures) for memory in memories.values())
    rows = []
    for entry in view.gpus:
        rows.append(_gpu_row(entry, memories[id(entry)].text(glyphs, cells)))
        rows.extend(_mig_row(mig, memories[id(mig)].text(glyphs, cells)) for mig in entry.gpu.migs)
    return table(_GPU_COLUMNS, rows, width=glyphs.width)


@dataclass(frozen=True, slots=True)
class _Memory:
    """How much of a memory is in use, in bytes."""

    used: int | None
    total: int | None

    @classmethod
    def of(cls, pool: GpuView | Mig) -> _Memory:
        """Of a GPU, or of an instance; of the machine itself, where its GPU has none of its own."""
        if isinstance(pool, Mig):
            return cls(pool.memory_used_bytes, pool.memory_total_bytes)
        return cls(*use_of(pool))

    @property
    def figures(self) -> str:
        """``131.2/139.8``."""
        return "–" if self.used is None and self.total is None else f"{gib(self.used)}/{gib(self.total)}"

    def text(self, glyphs: Glyphs, cells: int) -> str:
        """Bar and figures, these right-aligned in ``cells``."""
        share = self.used / self.total if self.used is not None and self.total else None
        return f"{glyphs.bar(share, _BAR_CELLS)} {self.figures:>{cells}}"


def _gpu_row(entry: GpuView, memory: str) -> list[str]:
    gpu = entry.gpu
    return [
        f"{gpu.index} {short_name(gpu.name)}",
        _with_unit(gpu.utilization_pct, "%"),
        memory,
        _with_unit(gpu.temperature_c, "°C"),
        _power(gpu),
        word(entry),
    ]


def _ahead(entry: GpuView) -> list[str]:
    said = ahead_of(entry)
    return [f"GPU {entry.gpu.index}: {said.why}."] if said is not None and alarms(said.state) else []


def _mig_row(mig: Mig, memory: str) -> list[str]:
    profile = (mig.name or "MIG").rpartition("MIG ")[2]
    number = "" if mig.gpu_instance is None else f" #{mig.gpu_instance}"
    return [f"  └ {profile}{number}", "–", memory, "", "", ""]


def _with_unit(value: int | None, unit: str) -> str:
    return "–" if value is None else f"{value} {unit}"


def _power(gpu: Gpu) -> str:
    if gpu.power_w is None:
        return "–"
    return f"{gpu.power_w:.0f} W" if gpu.power_limit_w is None else f"{gpu.power_w:.0f}/{gpu.power_limit_w:.0f} W"


def _problem(view: HostView) -> list[str]:
    snapshot = view.snapshot
    if snapshot.problem is None:
        return []
    return [f"{snapshot.problem} → {snapshot.hint}" if snapshot.hint else snapshot.problem]


def _remarks(gpu: Gpu) -> list[str]:
    """What a person should know of a GPU beyond the table, a line each."""
    lines = []
    if gpu.problem is not None:
        hint = f" → {_LOST_HINT}" if gpu.status is GpuStatus.LOST else ""
        lines.append(f"{gpu.problem}{hint}")
    if gpu.throttle_reasons:
        reasons = ", ".join(_THROTTLES.get(slug, slug) for slug in gpu.throttle_reasons)
        lines.append(f"Clocks held down: {reasons}.")
    lines.extend(_memory_health(gpu))
    lines.extend(_unreadable_instances(gpu))
    lines.extend(gpu.notes)
    return [f"GPU {gpu.index}: {line}" for line in lines]


def _memory_health(gpu: Gpu) -> list[str]:
    lines = []
    if gpu.ecc.volatile_uncorrected:
        lines.append(f"{gpu.ecc.volatile_uncorrected} uncorrectable memory errors since the driver was loaded.")
    if gpu.ecc.remap_failed:
        lines.append("A failing memory row could not be replaced: stop using the GPU and claim warranty.")
    elif gpu.ecc.remap_pending:
        lines.append("A failing memory row is replaced at the next reset or restart.")
    return lines


def _unreadable_instances(gpu: Gpu) -> list[str]:
    """What cannot be told of MIG instances, those with the same reason together."""
    nameless = [mig.unknown.get("uuid", "no reason given") for mig in gpu.migs if mig.uuid is None]
    unlisted = [mig.unknown.get("processes", "no reason given") for mig in gpu.migs if mig.processes is None]
    return [
        *(f"{_instances(nameless.count(why))} without UUID, not for containers: {why}."
          for why in dict.fromkeys(nameless)),
        *(f"{_instances(unlisted.count(why))} whose processes cannot be listed: {why}."
          for why in dict.fromkeys(unlisted)),
    ]  # fmt: skip


def _instances(count: int) -> str:
    return "1 MIG instance" if count == 1 else f"{count} MIG instances"


def _wrapped(line: str, glyphs: Glyphs) -> str:
    return "\n".join(wrapped(line, glyphs.width, rest="  ", whole_words=True)) if glyphs.width else line


def _coloured(text: str, view: HostView, glyphs: Glyphs) -> str:
    """Titles bold and each GPU's state, which ends its line, in its colour."""
    if not glyphs.colour:
        return text
    entries = iter(view.gpus)
    lines = []
    entry = next(entries, None)
    for line in text.split("\n"):
        if line.startswith("GPU ") and line.split(maxsplit=2)[1] in ("UTIL", "CONTAINER"):
            line = styled(line, bold=True)
        elif entry is not None and line.endswith(f" {word(entry)}"):
            state = word(entry)
            line = line.removesuffix(state) + styled(state, COLOURS.get(memory_state(entry)))
            entry = next(entries, None)
        lines.append(line)
    return "\n".join(lines)

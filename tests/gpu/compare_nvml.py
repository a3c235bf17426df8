"""Hold the binding of our own against nvidia-ml-py on this machine's driver: every call, every structure, the snapshot.

    PYTHONPATH=. python3 tests/gpu/compare_nvml.py           the comparison
    PYTHONPATH=. python3 tests/gpu/compare_nvml.py --times   and how long a first snapshot takes through either

Needs nvidia-ml-py and a driver, real or simulated. It reads only. A line for each call says on how many subjects (the
driver, GPUs, MIG instances) and arguments both gave the same, wrong arguments and their errors among them; what moves
is asked until both say the same. Exit codes: 0 no difference, 1 there are some, 3 no driver or no nvidia-ml-py here.
"""

from __future__ import annotations

import ctypes
import dataclasses
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

try:
    import pynvml
except ImportError as error:
    print(f"compare_nvml: {error}: install nvidia-ml-py first.", file=sys.stderr)
    raise SystemExit(3) from error

from gpuconsole.gpu.nvml import direct
from gpuconsole.gpu.nvml.direct import FUNCTIONS, Direct, NvmlError
from gpuconsole.gpu.nvml.gateway import Gateway
from gpuconsole.gpu.nvml.reader import Reader

TRIES = 40
"""How often both are asked one after the other what may move in between."""
STRUCTURES = (
    (direct.Memory, pynvml.c_nvmlMemory_t),
    (direct.MemoryV2, pynvml.c_nvmlMemory_v2_t),
    (direct.Utilization, pynvml.c_nvmlUtilization_t),
    (direct.PciInfo, pynvml.nvmlPciInfo_t),
    (direct.ProcessInfo, pynvml.c_nvmlProcessInfo_v2_t),
    (direct.ProcessInfo, pynvml.c_nvmlProcessInfo_v3_t),
    (direct.Value, pynvml.c_nvmlValue_t),
    (direct.FieldValue, pynvml.c_nvmlFieldValue_t),
)
ARGUMENTS: dict[str, Sequence[tuple[Any, ...]]] = {
    "nvmlDeviceGetMaxClockInfo": [(0,), (1,), (2,), (3,), (99,)],
    "nvmlDeviceGetClockInfo": [(0,), (1,), (2,), (3,), (99,)],
    "nvmlDeviceGetTemperature": [(0,), (7,)],
    "nvmlDeviceGetTotalEccErrors": [(0, 0), (0, 1), (1, 0), (1, 1), (9, 0)],
    "nvmlDeviceGetRetiredPages": [(0,), (1,), (9,)],
    "nvmlDeviceGetMigDeviceHandleByIndex": [(place,) for place in range(8)],
    "nvmlDeviceGetFieldValues": [([230],), ([230, 82, 1],), ([9999],)],
    "nvmlDeviceGetMemoryInfo": [(), (pynvml.nvmlMemory_v2,), (0x1000001,)],
}
"""What follows the handle."""


class Comparison:
    """Prints a line for each thing compared, and counts those that differ."""

    def __init__(self) -> None:
        self.compared = 0
        self.different = 0

    def line(self, name: str, found: Sequence[str], *, of: int, remark: str = "") -> None:
        """``found`` differences among ``of`` answers."""
        self.compared += of
        self.different += len(found)
        said = f"{of} the same" if not found else f"{len(found)} of {of} DIFFER"
        print(f"{name:<52} {said}{remark}")
        for each in found:
            print(f"    {each}")


def structures(report: Comparison) -> None:
    """Sizes, and where every field lies."""
    for ours, theirs in STRUCTURES:
        found = [] if ctypes.sizeof(ours) == ctypes.sizeof(theirs) else ["its size"]
        # One of theirs that is private here, because the caller reads it through a property, lies in the same order.
        names = [name for name, *_ in theirs._fields_]
        for position, (name, *_) in enumerate(ours._fields_):
            other = name if name in names else names[position]
            mine, its = getattr(ours, name), getattr(theirs, other)
            if (mine.offset, mine.size) != (its.offset, its.size):
                found.append(f"{name}: {mine.offset}+{mine.size} here, {its.offset}+{its.size} there")
        report.line(f"{theirs.__name__} ({ctypes.sizeof(ours)} bytes)", found, of=len(ours._fields_) + 1)
    versions = [] if Direct.nvmlMemory_v2 == pynvml.nvmlMemory_v2 else [f"{Direct.nvmlMemory_v2:#x}"]
    report.line("nvmlMemory_v2", versions, of=1)


def plain(value: Any) -> Any:
    """An answer of either binding in one form."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, ctypes.c_void_p | pynvml.c_nvmlDevice_t):
        return ctypes.cast(value, ctypes.c_void_p).value
    if hasattr(value, "usedGpuMemory"):
        return (value.pid, value.usedGpuMemory, value.gpuInstanceId, value.computeInstanceId)
    if isinstance(value, direct.FieldValue | pynvml.c_nvmlFieldValue_t):
        return (value.fieldId, value.nvmlReturn, value.valueType, value.value.uiVal, value.value.ullVal)
    if isinstance(value, ctypes.Structure):
        return tuple(plain(getattr(value, name)) for name, *_ in value._fields_)
    return [plain(each) for each in value] if isinstance(value, list | tuple | ctypes.Array) else value


def ours(nvml: Direct, name: str, *arguments: Any) -> Any:
    """What our binding says: a value or a code."""
    try:
        return plain(getattr(nvml, name)(*arguments))
    except NvmlError as error:
        return f"code {error.value}"


def theirs(name: str, *arguments: Any) -> Any:
    """What nvidia-ml-py says: a value or a code."""
    function = getattr(pynvml, name)
    try:
        return plain(getattr(function, "__wrapped__", function)(*arguments))
    except pynvml.NVMLError as error:
        return f"code {error.value}"


def handles(nvml: Direct) -> list[Any]:
    """Of every GPU and every MIG instance."""
    found = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    for parent in tuple(found):
        for place in range(8):
            try:
                found.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, place))
            except NvmlError:
                continue
    return found


def subjects_of(name: str, known: Sequence[Any]) -> list[tuple[Any, ...]]:
    """What a call is asked about."""
    if name.startswith("nvmlSystem") or name == "nvmlDeviceGetCount":
        return [()]
    if name == "nvmlDeviceGetHandleByIndex":
        return [(index,) for index in (0, 1, 99)]
    return [(handle,) for handle in known]


def calls(report: Comparison, nvml: Direct) -> None:
    """Every call on everything there is."""
    known = handles(nvml)
    for name in FUNCTIONS:
        if name in ("nvmlInitWithFlags", "nvmlShutdown"):
            continue
        found, asked, values, moved = [], 0, 0, 0
        for subject in subjects_of(name, known):
            for more in ARGUMENTS.get(name, [()]):
                for attempt in range(TRIES):
                    here, there = ours(nvml, name, *subject, *more), theirs(name, *subject, *more)
                    if here == there:
                        break
                    time.sleep(0.001 * attempt)
                asked += 1
                values += not str(here).startswith("code")
                moved += bool(attempt)
                if here != there:
                    found.append(f"{more}: {here!r} here, {there!r} there")
        remark = f" ({values} values, {asked - values} errors" + (f"; {moved} asked again)" if moved else ")")
        report.line(name, found, of=asked, remark=remark)


def parts_of(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value of a snapshot, by where it stands."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from parts_of(getattr(value, field.name), f"{path}.{field.name}" if path else field.name)
    elif isinstance(value, tuple):
        yield f"{path}.length", len(value)
        for position, each in enumerate(value):
            yield from parts_of(each, f"{path}[{position}]")
    else:
        yield path, dict(value) if isinstance(value, Mapping) else value


def snapshots(report: Comparison) -> None:
    """The whole snapshot by both readers; the second look too, which keeps what seldom changes."""
    asked: set[str] = set()
    plain_ask = Gateway.ask

    def ask(self: Gateway, function: str, *arguments: object) -> Any:
        asked.add(function)
        return plain_ask(self, function, *arguments)

    Gateway.ask = ask  # type: ignore[method-assign]
    readers = Reader(direct=True), Reader()
    compared: set[str] = set()
    differing: dict[str, str] = {}
    for attempt in range(TRIES):
        both = [dict(parts_of(reader.read(details=not attempt))) for reader in readers]
        paths = {path for path in both[0].keys() | both[1].keys() if not path.endswith(("taken_at", "age_s"))}
        wrong = {path: f"{path}: {both[0].get(path)!r} here, {both[1].get(path)!r} there" for path in paths}
        wrong = {path: said for path, said in wrong.items() if both[0].get(path) != both[1].get(path)}
        # Something that differs at one look and not at another moves; it counts when it never was the same.
        differing = {path: said for path, said in wrong.items() if not attempt or path in differing}
        compared |= paths
        if attempt and not differing:
            break
        time.sleep(0.001 * attempt)
    for reader in readers:
        reader.close()
    Gateway.ask = plain_ask  # type: ignore[method-assign]
    report.line("the snapshot", sorted(differing.values()), of=len(compared), remark=f" ({attempt + 1} looks)")
    report.line("what a snapshot asks is bound", sorted(asked - set(FUNCTIONS)), of=len(asked))


def how_long() -> None:
    """A first snapshot in a process of its own, by both."""
    for name, choice in (("our binding", True), ("nvidia-ml-py", False)):
        code = (
            "import time; began = time.perf_counter(); from gpuconsole.gpu.nvml.reader import Reader;"
            f"Reader(direct={choice}).read(); print(round((time.perf_counter() - began) * 1000, 1))"
        )
        taken = [subprocess.check_output([sys.executable, "-c", code], text=True).strip() for _ in range(5)]
        print(f"a first snapshot through {name:<13} ms: {', '.join(taken)}")


def main() -> int:
    """Compare all, and return the exit code."""
    nvml, report = Direct(), Comparison()
    structures(report)
    if report.different:  # a wrong one may end the process when it is asked for
        return 1
    before = [name for name in FUNCTIONS if name.startswith("nvmlDeviceGetCount")]
    found = [name for name in before if ours(nvml, name) != theirs(name)]
    report.line("before the start", found, of=len(before))
    started = ours(nvml, "nvmlInitWithFlags", 0)
    if started != theirs("nvmlInitWithFlags", 0):
        report.line("nvmlInitWithFlags", [str(started)], of=1)
        return 1
    if started is not None:
        print(f"compare_nvml: the driver does not start here: {started}.", file=sys.stderr)
        return 3 if not report.different else 1
    print(f"driver {theirs('nvmlSystemGetDriverVersion')}, {theirs('nvmlDeviceGetCount')} GPUs")
    calls(report, nvml)
    for _ in range(2):
        if (stopped := ours(nvml, "nvmlShutdown")) is not None:
            report.line("nvmlShutdown", [str(stopped)], of=1)
    found = [] if ours(nvml, "nvmlDeviceGetCount") == theirs("nvmlDeviceGetCount") == "code 1" else ["another code"]
    report.line("after the end", found, of=1)
    snapshots(report)
    if "--times" in sys.argv[1:]:
        how_long()
    print(f"{report.compared} compared, {report.different} differ")
    return 1 if report.different else 0


if __name__ == "__main__":
    raise SystemExit(main())

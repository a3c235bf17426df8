"""Record what a real NVIDIA driver answers to every NVML call that matters here.

    python3 tests/gpu/record_nvml.py -o h200.json          both states: idle, and with a load of our own
    python3 tests/gpu/record_nvml.py --only idle -o -      what there is, without starting anything

Needs nvidia-ml-py, and torch for the load. Nothing of a GPU's settings is changed. Serial numbers, UUIDs,
board numbers and process ids are replaced by stable stand-ins of the same form. The simulator in
tests/rig/nvml is held against the recording. Exit codes: 0 recorded, 2 wrong use, 3 no NVML here.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

try:
    import pynvml

    from tests.rig.nvml import dialogue, lists
    from tests.rig.nvml.ask import Library
    from tests.rig.nvml.calls import OF_DEVICE, SYSTEM
except ImportError as error:
    print(f"record_nvml: {error}: install nvidia-ml-py first.", file=sys.stderr)
    raise SystemExit(3) from error

LOAD = """
import sys, torch
held = torch.empty(int(float(sys.argv[1]) * 2**30), dtype=torch.uint8, device="cuda")
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
print("ready", flush=True)
while sys.argv[2] == "work":
    for _ in range(20):
        a = (a @ a).clamp(-1, 1)
    torch.cuda.synchronize()
sys.stdin.read()
"""
"""Holds the given GiB; with `work` it multiplies matrices until it is killed."""

UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


class StandIns:
    """Replaces what names this one machine by stand-ins of the same form."""

    def __init__(self, pids: dict[int, str]) -> None:
        self._pids = pids
        self._uuids: dict[str, str] = {}

    def of(self, value: Any, name: str = "") -> Any:
        """The same data without names of the machine."""
        if isinstance(value, dict):
            return {key: self.of(item, str(key)) for key, item in value.items()}
        if name == "clusterUuid":
            return [0] * len(value) if not any(value) else list(range(1, len(value) + 1))
        if isinstance(value, list):
            return [self.of(item) for item in value]
        if name == "pid":
            return self._pids.setdefault(value, f"P?{len(self._pids)}")
        return self._text(value, name) if isinstance(value, str) else value

    def _text(self, value: str, name: str) -> str:
        if name in ("serial", "part_number"):
            return re.sub(r"\d", "1", value)
        return UUID.sub(lambda found: self._uuid(found.group().lower()), value)

    def _uuid(self, found: str) -> str:
        if set(found) <= {"0", "-"}:
            return found
        return self._uuids.setdefault(found, f"{len(self._uuids) + 1:08x}-0000-4000-8000-000000000000")


def state_of(library: Library, *, timed: bool) -> dict[str, Any]:
    """All answers there are now; the library must be initialised and have a GPU 0."""
    code, device = library.device(0)
    if code != 0:
        raise SystemExit(f"record_nvml: GPU 0 gives NVML code {code}.")
    identity = pynvml.nvmlPciInfo_t()
    library.call("nvmlDeviceGetPciInfo_v3", device, ctypes.byref(identity))
    uuid = ctypes.create_string_buffer(96)
    library.call("nvmlDeviceGetUUID", device, uuid, ctypes.c_uint(96))
    answers: dict[str, Any] = {
        "system": library.ask_all(SYSTEM, timed=timed),
        "device": library.ask_all(OF_DEVICE, device, timed=timed),
        "handles": dialogue.handles(library, device, uuid.value.decode(), identity.busId),
        "processes": lists.processes(library, device),
        "process details": {str(mode): lists.detail_list(library, device, mode) for mode in range(5)},
        "process utilization": lists.utilization(library, device),
        "field values": lists.field_values(library, device),
        "samples": lists.samples(library, device),
        "clocks": lists.clock_lists(library, device),
        "retired pages": lists.retired_pages(library, device),
        "affinity": dialogue.affinity(library, device),
        "mig": dialogue.mig_handles(library, device),
        "accounting": lists.accounting(library, device),
        "events": dialogue.events(library, device),
        "null handle in a forked child": dialogue.in_forked_child(library),
    }
    answers["device"]["nvmlDeviceGetBoardId"] |= {"value": 256}
    return answers


def costs(library: Library) -> dict[str, float]:
    """Microseconds of the multi-step questions and of the timed single ones, each a median."""
    _, device = library.device(0)
    pynvml.nvmlInit()
    rest: dict[str, Callable[[], Any]] = {
        "nvmlDeviceGetHandleByIndex_v2": lambda: library.device(0),
        "nvmlDeviceGetComputeRunningProcesses_v3 (size and list)": pynvml_processes,
        "nvmlDeviceGetFieldValues (all)": lambda: lists.field_values(library, device),
        "nvmlDeviceGetProcessUtilization": lambda: lists.utilization(library, device),
    }
    for name, question in rest.items():
        start = time.perf_counter()
        with suppress(pynvml.NVMLError):
            for _ in range(5):
                question()
        library.microseconds[name] = round((time.perf_counter() - start) / 5 * 1e6, 1)
    pynvml.nvmlShutdown()
    return dict(library.microseconds)


def pynvml_processes() -> list[Any]:
    """The compute processes as nvidia-ml-py gives them."""
    return list(pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0)))


def forms() -> dict[str, str]:
    """The Python types nvidia-ml-py makes of the answers: what a program meets."""
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    asked: dict[str, Callable[[], Any]] = {
        "nvmlSystemGetDriverVersion": pynvml.nvmlSystemGetDriverVersion,
        "nvmlSystemGetCudaDriverVersion_v2": pynvml.nvmlSystemGetCudaDriverVersion_v2,
        "nvmlDeviceGetName": lambda: pynvml.nvmlDeviceGetName(handle),
        "nvmlDeviceGetUUID": lambda: pynvml.nvmlDeviceGetUUID(handle),
        "nvmlDeviceGetPciInfo.busId": lambda: pynvml.nvmlDeviceGetPciInfo(handle).busId,
        "nvmlDeviceGetGspFirmwareVersion": lambda: pynvml.nvmlDeviceGetGspFirmwareVersion(handle),
        "nvmlDeviceIsMigDeviceHandle": lambda: pynvml.nvmlDeviceIsMigDeviceHandle(handle),
        "nvmlDeviceGetMemoryInfo.used": lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).used,
        "nvmlDeviceGetEccMode": lambda: pynvml.nvmlDeviceGetEccMode(handle),
        "nvmlDeviceGetMigMode": lambda: pynvml.nvmlDeviceGetMigMode(handle),
        "nvmlDeviceGetUtilizationRates.gpu": lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
    }
    found: dict[str, str] = {}
    for name, question in asked.items():
        try:
            found[name] = type(question()).__name__
        except pynvml.NVMLError as error:
            found[name] = f"NVML code {error.value}"
    pynvml.nvmlShutdown()
    return found


def exported(library: Library) -> dict[str, list[str]]:
    """Which functions of nvidia-ml-py the library has not, and which it has beyond them."""
    known = set(re.findall(r"FunctionPointer\(\"(nvml\w+)\"\)", Path(pynvml.__file__).read_text(encoding="utf-8")))
    path = _loaded_path()
    named = re.findall(rb"\0(nvml[A-Z]\w+)(?=\0)", path.read_bytes()) if path else []
    there = {name.decode() for name in named}
    return {
        "missing": sorted(name for name in known if not library.has(name)),
        "beyond": sorted(name for name in there - known if library.has(name)),
    }


def _loaded_path() -> Path | None:
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if "libnvidia-ml.so" in line:
            return Path(line.split(maxsplit=5)[5])
    return None


@contextmanager
def load_of(gib: float, kind: str) -> Iterator[int]:
    """A child that holds GPU memory (and works, if kind is `work`); gives its pid once it is ready."""
    command = [sys.executable, "-c", LOAD, str(gib), kind]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        if child.stdout.readline().strip() != "ready":
            raise SystemExit("record_nvml: the load could not start; is torch with CUDA installed?")
        yield child.pid
    finally:
        child.kill()
        child.wait()


def record(library: Library, only: str | None, story: dict[str, Any]) -> dict[str, Any]:
    """The whole recording, as JSON data; `story` is what was said around the first init."""
    recorded: dict[str, Any] = {"states": {}}
    pids: dict[int, str] = {}
    if only != "busy":
        recorded["states"]["idle"] = StandIns(pids).of(state_of(library, timed=True))
        recorded["microseconds"] = costs(library)
    if only is None:
        with load_of(3, "work") as worker, load_of(1, "hold") as holder:
            pids |= {worker: "P1", holder: "P2"}
            time.sleep(6)
            recorded["states"]["busy"] = StandIns(pids).of(state_of(library, timed=True))
            recorded["microseconds busy"] = costs(library)
            recorded["process name"] = dialogue.process_name(library, worker)
        recorded["after the load"] = [after_exit(library, pids) for _ in range(3)]
    elif only == "busy":
        recorded["states"]["busy"] = StandIns(pids).of(state_of(library, timed=True))
        recorded["microseconds busy"] = costs(library)
    library.call("nvmlShutdown")
    words = dialogue.error_texts(library)
    head = {"nvidia_ml_py": _binding_version(), "before and after init": story, "error texts": words}
    return {**head, "python types": forms(), "functions": exported(library), **recorded}


def after_exit(library: Library, pids: dict[int, str]) -> Any:
    """The process list and the memory half a second after the load was killed, or after the last time."""
    time.sleep(0.5)
    _, device = library.device(0)
    listed = lists.processes(library, device)["nvmlDeviceGetComputeRunningProcesses_v3"]
    memory = pynvml.c_nvmlMemory_v2_t(version=0x2000028)
    library.call("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(memory))
    return StandIns(pids).of({"size": listed["size"], "used": memory.used})


def _binding_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("nvidia-ml-py")
    except PackageNotFoundError:
        return "unknown"


def pretty(value: Any, indent: str = "") -> str:
    """JSON with one line for whatever fits on one."""
    short = json.dumps(value)
    if not isinstance(value, dict | list) or len(indent) + len(short) <= 118:
        return short
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {pretty(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + pretty(item, inner) for item in value) + f"\n{indent}]"


def main(arguments: list[str] | None = None) -> int:
    """Record and write; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", default="-", help="where the JSON goes (- is standard output)")
    parser.add_argument("--only", choices=("idle", "busy"), help="record what there is, as this state, with no load")
    chosen = parser.parse_args(arguments)
    try:
        library = Library(ctypes.CDLL("libnvidia-ml.so.1"))
    except OSError:
        print(
            "record_nvml: no libnvidia-ml.so.1 can be loaded here, so there is no NVIDIA driver to record.",
            file=sys.stderr,
        )
        return 3
    story = dialogue.before_and_after(library)
    code = library.call("nvmlInit_v2")
    if code != 0:
        print(f"record_nvml: NVML does not start here (code {code}).", file=sys.stderr)
        return 3
    text = pretty(record(library, chosen.only, story)) + "\n"
    if chosen.output == "-":
        sys.stdout.write(text)
    else:
        Path(chosen.output).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Record runs that fill a GPU, some until it is full, as the plan lists them.

    python3 tests/gpu/record_oom.py -o FOLDER --plan tests/forecast/plan.toml [--only 'leak*'] [--budget-s 520]
    python3 tests/gpu/record_oom.py -o FOLDER --plan … --pretend 1    the same without a GPU

Needs a GPU, torch and nvidia-ml-py, Python 3.11; nothing else. Each run of the plan becomes FOLDER/run-NNN.jsonl.gz, in
format 1 of the recordings: samples four times a second, and events in which the workload tells what it does (a
forecaster never reads these). Runs go in the plan's order, one a GPU at a time and all GPUs at once, while the budget
lasts; runs whose file is there already are left out, so that a second call goes on where the first ended (or --from N).
No setting of a GPU is changed; workloads are children of this process and are ended with it. Exit codes: 0 recorded
what fitted, 1 a run could not start, 3 no GPU here.
"""

from __future__ import annotations

import argparse
import fnmatch
import gzip
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

WORK = Path(__file__).with_name("record_oom_work.py")
GIB = 2**30
Line = dict[str, Any]
INTERVAL_S = 0.25
BEFORE_S, AFTER_S = 1.0, 0.8
"""Seconds sampled before the workloads begin, and after the last has ended."""
SURVIVORS_S = 2.5
"""Seconds that other workloads on the GPU go on after the first was out of memory."""


class Nvml:
    """Readings of one GPU."""

    def __init__(self, index: int) -> None:
        import pynvml

        self.n = pynvml
        self.index = index
        self.handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        self.visible = pynvml.nvmlDeviceGetUUID(self.handle)

    def header(self) -> dict[str, Any]:
        """The GPU as the first line describes it; without what names this machine."""
        total = self.n.nvmlDeviceGetMemoryInfo(self.handle).total
        return {"index": 0, "uuid": None, "name": self.n.nvmlDeviceGetName(self.handle), "memory_total_bytes": total}

    def read(self, _children: list[Child]) -> dict[str, Any]:
        """One GPU of a sample; None for what could not be read."""
        n, h = self.n, self.handle
        memory = self.ask(lambda: n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2)) or self.ask(
            lambda: n.nvmlDeviceGetMemoryInfo(h)
        )
        use = self.ask(lambda: n.nvmlDeviceGetUtilizationRates(h))
        power = self.ask(lambda: n.nvmlDeviceGetPowerUsage(h))
        listed = self.ask(lambda: n.nvmlDeviceGetComputeRunningProcesses(h))
        return {
            "index": 0,
            "memory_used_bytes": getattr(memory, "used", None),
            "memory_free_bytes": getattr(memory, "free", None),
            "memory_reserved_bytes": getattr(memory, "reserved", None),
            "gpu_util_pct": getattr(use, "gpu", None),
            "memory_util_pct": getattr(use, "memory", None),
            "power_w": None if power is None else round(power / 1000, 1),
            "temperature_c": self.ask(lambda: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)),
            "sm_clock_mhz": self.ask(lambda: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)),
            "clock_event_reasons": self.ask(lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(h)),
            "processes": None
            if listed is None
            else [{"pid": each.pid, "memory_bytes": each.usedGpuMemory} for each in listed],
        }

    def ask(self, question: Any) -> Any:
        """The answer, None for an error."""
        try:
            return question()
        except self.n.NVMLError:
            return None


class Pretended:
    """Readings of a GPU there is none of: what the children say they hold."""

    def __init__(self, index: int) -> None:
        self.index, self.visible = index, str(index)

    def header(self) -> dict[str, Any]:
        """As Nvml's."""
        return {"index": 0, "uuid": None, "name": "Pretended", "memory_total_bytes": 140 * GIB}

    def read(self, children: list[Child]) -> dict[str, Any]:
        """As Nvml's."""
        held = [(each.pid, each.pretended()) for each in children]
        used = sum(each for _, each in held)
        return {
            "index": 0, "memory_used_bytes": used, "memory_free_bytes": 140 * GIB - used,
            "gpu_util_pct": 90 if used else 0,
            "processes": [{"pid": pid, "memory_bytes": size} for pid, size in held if size],
        }  # fmt: skip


class Child:
    """A workload: started early, since importing torch takes seconds, and told later what to do."""

    def __init__(self, gpu: Nvml | Pretended, run: dict[str, Any], program: list[dict[str, Any]], folder: Path) -> None:
        self.program = program
        self.file = folder / f"held-{id(self)}"
        env = os.environ | {"CUDA_VISIBLE_DEVICES": gpu.visible, "PYTHONUNBUFFERED": "1"}
        if run.get("alloc"):
            env["PYTORCH_CUDA_ALLOC_CONF"] = run["alloc"]
        where = "cuda" if isinstance(gpu, Nvml) else str(self.file)
        if where != "cuda":
            self.file.write_text("0")
        self.process = subprocess.Popen(
            [sys.executable, str(WORK), where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        self.pid = self.process.pid
        self.events: list[dict[str, Any]] = []
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()

    def listen(self) -> None:
        """Keep its events."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(json.JSONDecodeError):
                event = json.loads(line)
                if event.get("event") == "ready":
                    self.ready.set()
                else:
                    self.events.append({**event, "pid": self.pid})
        code = self.process.wait()
        self.events.append({"event": "exit", "at": time.monotonic(), "pid": self.pid, "code": code})
        self.ready.set()
        if self.file.exists():
            self.file.write_text("0")

    def go(self, task: dict[str, Any]) -> None:
        """Let it begin."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({**task, "program": self.program}) + "\n")
            self.process.stdin.flush()

    def pretended(self) -> int:
        """Bytes it says it holds."""
        with suppress(OSError, ValueError):
            return int(self.file.read_text())
        return 0

    def rss(self) -> int | None:
        """Resident host memory in bytes."""
        with suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return None

    def end(self) -> None:
        """Whatever it does."""
        self.process.kill()
        self.reader.join(10)


def host(children: list[Child]) -> dict[str, Any]:
    """Memory of the machine, and of the workloads in it."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    memory = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    shm = os.statvfs("/dev/shm")
    return {
        "memory_used_bytes": memory["MemTotal"] - memory["MemAvailable"],
        "memory_total_bytes": memory["MemTotal"],
        "shm_used_bytes": (shm.f_blocks - shm.f_bfree) * shm.f_frsize,
        "shm_total_bytes": shm.f_blocks * shm.f_frsize,
        "processes": [{"pid": each.pid, "rss_bytes": each.rss()} for each in children],
    }


def record(
    run: dict[str, Any], children: list[Child], gpu: Nvml | Pretended, driver: str | None
) -> list[dict[str, Any]]:
    """Let the children work and give the lines of the recording."""
    for child in children:
        child.ready.wait(120)
    began = time.monotonic()
    lines: list[dict[str, Any]] = []
    head = {"type": "header", "format": "gpuconsole-recording", "version": 1, "interval_s": INTERVAL_S}
    lines.append({**head, "driver": driver, "gpus": [gpu.header()]})
    truth = {each: run[each] for each in ("class", "half", "seed", "ends") if each in run}
    lines.append({"type": "event", "t": 0.0, "event": "plan", **truth, "alloc": run.get("alloc")})
    limit = began + 1.7 * run["seconds"] + 15
    started, over = False, None
    while over is None or time.monotonic() < over:
        t = round(time.monotonic() - began, 3)
        reading = gpu.read(children)
        if run.get("processes") == "hidden":
            reading["processes"] = None
        lines.append({"type": "sample", "t": t, "gpus": [reading], "host": host(children)})
        if not started and t >= BEFORE_S:
            started = True
            for number, child in enumerate(children):
                child.go({"seed": run["seed"] * 10 + number, "delay": run.get("delays", [0.0, 0.0])[number]})
        if time.monotonic() > limit:
            for child in children:
                child.end()
        died = [e["at"] for each in children for e in list(each.events) if e["event"] == "cuda_oom"]
        if len(children) > 1 and died and time.monotonic() > min(died) + SURVIVORS_S:
            for child in children:
                child.end()
        if over is None and not any(child.reader.is_alive() for child in children):
            over = time.monotonic() + AFTER_S
        time.sleep(max(0.0, INTERVAL_S - (time.monotonic() - began) % INTERVAL_S))
    events = [event for child in children for event in child.events]
    lines += [{"type": "event", "t": round(event.pop("at") - began, 3), **event} for event in events]
    return [lines[0], *sorted(lines[1:], key=lambda line: line["t"])]


class Lane(threading.Thread):
    """The runs of one GPU."""

    def __init__(self, gpu: Nvml | Pretended, runs: queue.Queue[dict[str, Any]], end: float, out: Path) -> None:
        super().__init__()
        self.gpu, self.runs, self.ends_at, self.out = gpu, runs, end, out
        self.driver: str | None = None
        self.failed = 0
        self.folder = Path()

    def next(self) -> tuple[dict[str, Any], list[Child]] | None:
        """The next run that fits, its children started."""
        while True:
            try:
                run = self.runs.get_nowait()
            except queue.Empty:
                return None
            return run, [Child(self.gpu, run, program, self.folder) for program in run["children"]]

    def run(self) -> None:
        """Record until the plan or the budget is at its end."""
        with tempfile.TemporaryDirectory(prefix="record-oom-") as folder:
            self.folder = Path(folder)
            self.record_all()

    def record_all(self) -> None:
        """One run after the other."""
        coming = self.next()
        while coming is not None:
            run, children = coming
            if time.monotonic() + run["seconds"] + 4 > self.ends_at:
                print(f"{run['name']} does not fit any more; go on with --from {int(run['name'][4:])}", flush=True)
                for child in children:
                    child.end()
                return
            coming = self.next()
            try:
                self.write(run, record(run, children, self.gpu, self.driver))
            finally:
                for child in children:
                    child.end()

    def write(self, run: dict[str, Any], lines: list[dict[str, Any]]) -> None:
        """Its file, and a line on how it went."""
        with gzip.open(self.out / f"{run['name']}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        ends = [line["event"] for line in lines if line.get("event") in ("cuda_oom", "done", "exit")]
        used = max(line["gpus"][0]["memory_used_bytes"] or 0 for line in lines if line["type"] == "sample")
        self.failed += "cuda_oom" not in ends and "done" not in ends
        as_planned = ("cuda_oom" in ends) == (run["ends"] == "oom")
        print(
            f"{run['name']} {run['class']:<18} {run['half']:<5} {lines[-1]['t']:6.1f} s  peak {used / GIB:6.1f} GiB  "
            f"{','.join(ends)}{'' if as_planned else '   NOT AS PLANNED'}", flush=True,
        )  # fmt: skip


def main() -> int:
    """Record the plan."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", dest="out", type=Path, required=True)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--only", default="*", help="pattern of classes")
    parser.add_argument("--half", choices=("tune", "judge"), help="only runs of this half")
    parser.add_argument("--gpu", type=int, metavar="N", help="on this GPU alone")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="N", help="begin with the plan's Nth run")
    parser.add_argument("--budget-s", type=float, default=520)
    parser.add_argument("--pretend", type=int, metavar="GPUS", help="workloads that only say what they would hold")
    options = parser.parse_args()
    end = time.monotonic() + options.budget_s
    options.out.mkdir(parents=True, exist_ok=True)
    runs: queue.Queue[dict[str, Any]] = queue.Queue()
    for number, run in enumerate(tomllib.loads(options.plan.read_text())["run"], 1):
        run["name"] = f"run-{number:03d}"
        recorded = (options.out / f"{run['name']}.jsonl.gz").exists()
        half = options.half in (None, run["half"])
        if number >= options.first and half and fnmatch.fnmatch(run["class"], options.only) and not recorded:
            runs.put(run)
    driver = None
    if options.pretend:
        gpus: list[Nvml | Pretended] = [Pretended(index) for index in range(options.pretend)]
    else:
        try:
            import pynvml

            pynvml.nvmlInit()
            driver = pynvml.nvmlSystemGetDriverVersion()
            there = range(pynvml.nvmlDeviceGetCount())
            gpus = [Nvml(index) for index in there if options.gpu in (None, index)]
        except Exception as error:
            print(f"record_oom: NVML does not answer: {error}", file=sys.stderr)
            return 3
    lanes = [Lane(gpu, runs, end, options.out) for gpu in gpus]
    for lane in lanes:
        lane.driver = driver
        lane.start()
    for lane in lanes:
        lane.join()
    files = len(list(options.out.glob("run-*.jsonl.gz")))
    print(f"{files} recordings in all, {sum(lane.failed for lane in lanes)} failed")
    return 1 if any(lane.failed for lane in lanes) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Record containers that fill their RAM or their /dev/shm: real containers under real limits, no GPU needed.

    python -m tests.rig run 26.1 pytorch -- python -m tests.forecast.record_ram -o FOLDER

Each run of RUNS becomes FOLDER/ram-NNN.jsonl.gz in format 1 of the recordings, with ``containers`` in every sample.
The workloads are PyTorch data loaders whose workers keep what they read, tensors left in shared memory, and their calm
twins.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuconsole.host.usage import UsageReader

IMAGE = "gpuconsole-test/pytorch:cpu"
MIB = 2**20
INTERVAL_S = 0.25

PROGRAM = """
import json, sys, time, os, torch
from torch.utils.data import DataLoader, Dataset
plan = json.loads(sys.argv[1])
MIB = 2**20
def tell(event, **more): print(json.dumps({"event": event, "at": time.monotonic(), **more}), flush=True)
class Samples(Dataset):
    kept = []
    def __len__(self): return 10**9
    def __getitem__(self, index):
        time.sleep(plan["every"])
        data = bytearray(os.urandom(4096)) * (plan["step"] * MIB // 4096)
        done = plan.get("stop_after")
        if plan["keep"] and (done is None or len(self.kept) < done): self.kept.append(data)
        return torch.zeros(8)
tell("start", pid=os.getpid())
tell("phase", name="load", pid=os.getpid())
base = []
for _ in range(plan["base"] // 50):
    base.append(bytearray(os.urandom(4096)) * (50 * MIB // 4096)); time.sleep(0.05)
tell("phase", name="hold", pid=os.getpid())
time.sleep(plan["rest"])
tell("phase", name=plan["name"], pid=os.getpid())
end = time.monotonic() + plan["s"]
try:
    if plan["name"] == "shm":
        shared = []
        while time.monotonic() < end:
            if plan["keep"] or len(shared) < plan["hold"]:
                shared.append(torch.ones(plan["step"] * MIB // 4).share_memory_())
            elif shared: shared.pop(0); shared.append(torch.ones(plan["step"] * MIB // 4).share_memory_())
            time.sleep(plan["every"])
    elif plan["name"] == "cache":
        while time.monotonic() < end:
            held = []
            for _ in range(plan["pieces"]):
                held.append(bytearray(os.urandom(4096)) * (plan["step"] * MIB // 4096)); time.sleep(plan["every"])
            del held
    elif plan["name"] == "pages":
        n = 0
        while time.monotonic() < end:
            with open("/tmp/data-%d" % n, "wb") as file: file.write(os.urandom(MIB) * plan["step"])
            n += 1; time.sleep(plan["every"])
    else:
        for _ in DataLoader(Samples(), batch_size=1, num_workers=plan["workers"]):
            if time.monotonic() > end: break
except BaseException as error:
    tell("error", detail=str(error)[:300], pid=os.getpid()); time.sleep(0.3); os._exit(1)
tell("done", pid=os.getpid())
os._exit(0)
"""


@dataclass(frozen=True)
class Run:
    """One container."""

    kind: str
    seed: int
    ends: str
    memory: int
    """MiB."""
    shm: int
    """MiB."""
    plan: dict[str, Any]

    @property
    def half(self) -> str:
        """By the seed, as for the GPU runs; those of later rounds, from 15 on, judge, where index.toml says nothing."""
        return "tune" if self.seed % 2 and self.seed < 15 else "judge"


def _leak(**more: Any) -> dict[str, Any]:
    return {
        "name": "workers",
        "keep": True,
        "base": 300,
        "rest": 4,
        "workers": 2,
        "step": 8,
        "every": 0.3,
        "s": 60,
    } | more


RUNS = [
    Run("ram-leak", 1, "oom", 1600, 64, _leak()),
    Run("ram-leak", 2, "oom", 1500, 64, _leak(base=400, step=12, every=0.55)),
    Run("ram-leak-stops", 3, "well", 1600, 64, _leak(stop_after=22, s=22)),
    Run("ram-leak-stops", 4, "well", 1500, 64, _leak(base=400, step=12, every=0.5, stop_after=12, s=24)),
    Run("shm-fills", 5, "oom", 2000, 512, _leak(name="shm", step=12, every=0.6)),
    Run("shm-fills", 6, "oom", 2000, 400, _leak(name="shm", step=6, every=0.4, base=500)),
    Run("shm-steady", 7, "well", 2000, 512, _leak(name="shm", step=20, every=0.3, keep=False, hold=6, s=20)),
    Run("shm-steady", 8, "well", 2000, 256, _leak(name="shm", step=10, every=0.25, keep=False, hold=14, s=20)),
    Run("ram-cycles", 9, "well", 1500, 64, _leak(name="cache", step=40, every=0.15, pieces=14, s=22)),
    Run("ram-cycles", 10, "well", 1400, 64, _leak(name="cache", step=25, every=0.1, pieces=26, s=22)),
    Run("ram-pages", 11, "well", 900, 64, _leak(name="pages", step=40, every=0.4, s=20)),
    Run("ram-pages", 12, "well", 1000, 64, _leak(name="pages", step=60, every=0.5, s=20)),
    Run("ram-steady", 13, "well", 1200, 64, _leak(keep=False, s=16)),
    Run("ram-steady", 14, "well", 1000, 64, _leak(keep=False, base=450, s=16)),
    Run("ram-leak", 15, "oom", 1400, 64, _leak(base=350, step=6, every=0.25, rest=3)),
    Run("ram-leak", 16, "oom", 1800, 64, _leak(base=200, step=18, every=0.6, workers=2)),
    Run("ram-leak", 17, "oom", 1200, 64, _leak(base=300, step=20, every=0.9, workers=1, rest=6)),
    Run("shm-fills", 18, "oom", 2000, 300, _leak(name="shm", step=5, every=0.5, base=250)),
    Run("shm-fills", 19, "oom", 2000, 640, _leak(name="shm", step=25, every=1.0, base=250, rest=6)),
    Run("ram-leak-stops", 20, "well", 1500, 64, _leak(base=250, step=10, every=0.4, stop_after=20, s=20)),
    Run("ram-leak-stops", 21, "well", 1300, 64, _leak(base=300, step=15, every=0.6, stop_after=9, s=20)),
    Run("shm-steady", 22, "well", 2000, 400, _leak(name="shm", step=15, every=0.4, keep=False, hold=8, s=18)),
    Run("ram-cycles", 23, "well", 1600, 64, _leak(name="cache", step=30, every=0.12, pieces=18, s=20)),
    Run("ram-pages", 24, "well", 800, 64, _leak(name="pages", step=50, every=0.5, s=18)),
    Run("ram-steady", 25, "well", 900, 64, _leak(keep=False, base=350, s=16)),
    Run("ram-leak", 26, "oom", 1300, 64, _leak(base=250, step=9, every=0.45, rest=5)),
    Run("ram-leak", 27, "oom", 1700, 64, _leak(base=450, step=14, every=0.5, rest=3)),
    Run("shm-fills", 28, "oom", 2000, 350, _leak(name="shm", step=8, every=0.7, base=300, rest=5)),
    Run("shm-fills", 29, "oom", 2000, 450, _leak(name="shm", step=15, every=0.8, base=200)),
    Run("ram-leak-stops", 30, "well", 1400, 64, _leak(base=300, step=12, every=0.5, stop_after=14, s=20)),
    Run("ram-cycles", 31, "well", 1500, 64, _leak(name="cache", step=35, every=0.14, pieces=12, s=20)),
    Run("ram-pages", 32, "well", 850, 64, _leak(name="pages", step=45, every=0.45, s=16)),
    Run("shm-steady", 33, "well", 2000, 500, _leak(name="shm", step=20, every=0.5, keep=False, hold=7, s=16)),
    Run("ram-loads", 34, "well", 1500, 64, _leak(base=0, rest=3, step=12, every=0.4, stop_after=29, s=32)),
    Run("ram-loads", 35, "well", 1600, 64, _leak(base=0, rest=2, step=20, every=0.9, stop_after=28, s=36)),
    Run("ram-loads", 36, "well", 1400, 64, _leak(base=0, rest=5, step=10, every=0.25, stop_after=44, s=30)),
]
"""Odd seeds tune, even ones judge; see ``half``."""


def docker(*arguments: str) -> str:
    """What one docker command prints."""
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def record(run: Run, file: Path) -> str:
    """Record one container; how it ended, in a line."""
    command = ["--memory", f"{run.memory}m", "--memory-swap", f"{run.memory}m", "--shm-size", f"{run.shm}m"]
    container = docker("run", "-d", *command, IMAGE, "python3", "-c", PROGRAM, json.dumps(run.plan))
    events: list[dict[str, Any]] = []
    try:
        pid = int(docker("inspect", "-f", "{{.State.Pid}}", container))
        logs = subprocess.Popen(["docker", "logs", "-f", container], stdout=subprocess.PIPE, text=True)
        reader = threading.Thread(target=_listen, args=(logs, events), daemon=True)
        began = time.monotonic()
        reader.start()
        lines = _sample(container, pid, run, reader, began)
        state = json.loads(docker("inspect", "-f", "{{json .State}}", container))
    finally:
        docker("rm", "-f", container)
    for event in events:
        lines.append({"type": "event", "t": round(event.pop("at") - began, 3), **event})
    ended = lines[-1]["t"] if not events else max(line["t"] for line in lines if line["type"] == "sample")
    text = " ".join(event.get("detail", "") for event in events)
    if run.kind.startswith("shm") and state["ExitCode"] != 0:
        failed = next((line["t"] for line in lines if line.get("event") == "error"), ended)
        lines.append({"type": "event", "t": failed, "event": "bus_error", "detail": text[:200]})
    elif state["OOMKilled"] or "killed by signal: Killed" in text or state["ExitCode"] == 137:
        failed = next((line["t"] for line in lines if line.get("event") == "error"), ended)
        lines.append({"type": "event", "t": failed, "event": "oom_kill", "detail": text[:200]})
    lines.append({"type": "event", "t": ended, "event": "exit", "code": state["ExitCode"]})
    head = {"type": "header", "format": "gpuconsole-recording", "version": 1, "interval_s": INTERVAL_S, "driver": None}
    truth = {"type": "event", "t": 0.0, "event": "plan", "class": run.kind, "half": run.half, "seed": run.seed}
    with gzip.open(file, "wt", encoding="utf-8") as out:
        for line in ({**head, "gpus": []}, {**truth, "ends": run.ends}, *sorted(lines, key=lambda line: line["t"])):
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
    peak = max(each["memory_used_bytes"] or 0 for line in lines for each in line.get("containers", ()))
    return f"{file.name} {run.kind:<16} exit {state['ExitCode']}, peak {peak / MIB:.0f} MiB {text[:80]}"


def _listen(logs: subprocess.Popen[str], events: list[dict[str, Any]]) -> None:
    assert logs.stdout is not None
    events.extend(json.loads(line) for line in logs.stdout if line.startswith("{"))


def _sample(container: str, pid: int, run: Run, reader: threading.Thread, began: float) -> list[dict[str, Any]]:
    usage, lines = UsageReader(), []
    while reader.is_alive() and time.monotonic() < began + 120:
        now = time.monotonic()
        seen = usage.read({container: pid}).get(container)
        if seen and (seen.memory_bytes or 0) > 1.1 * run.memory * MIB:
            seen = None  # its process is still in the engine's own group
        try:
            shm = os.statvfs(f"/proc/{pid}/root/dev/shm")
            size, used = shm.f_blocks * shm.f_frsize, (shm.f_blocks - shm.f_bfree) * shm.f_frsize
        except OSError:
            size = used = None  # type: ignore[assignment]
        one = {
            "id": "c1", "name": "train", "memory_used_bytes": seen.memory_bytes if seen else None,
            "memory_limit_bytes": run.memory * MIB, "shm_used_bytes": used, "shm_total_bytes": size,
        }  # fmt: skip
        lines.append({"type": "sample", "t": round(now - began, 3), "gpus": [], "containers": [one] if seen else []})
        time.sleep(max(0.0, INTERVAL_S - (time.monotonic() - began) % INTERVAL_S))
    return lines


def main() -> int:
    """Record all runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", dest="folder", type=Path, required=True)
    parser.add_argument("--only", default="", help="kinds that begin so")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first seed")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for run in RUNS:
        if run.kind.startswith(chosen.only) and run.seed >= chosen.first:
            print(record(run, chosen.folder / f"ram-{run.seed:03d}.jsonl.gz"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

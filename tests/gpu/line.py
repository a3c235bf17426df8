"""The whole line on a real GPU: launch with a chosen GPU, check, see its memory in status and ps while it trains.

    python3 tests/gpu/line.py --image IMAGE -o FOLDER [-v /usr:/usr:ro …]

Needs a GPU, an engine with the GPU wired in, an image with CUDA PyTorch, and gpuconsole importable. Exits 0 when every
step held, 1 when one did not; FOLDER then holds what each command printed, without host, user or UUID of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAME = "gpuconsole-line"
TRAIN = """
import time, torch
device = torch.device("cuda")
print("sees", torch.cuda.device_count(), torch.cuda.get_device_name(0), flush=True)
held = torch.empty(8 * 2**30, dtype=torch.uint8, device=device).random_(0, 255)
model = torch.nn.Sequential(torch.nn.Linear(4096, 8192), torch.nn.GELU(), torch.nn.Linear(8192, 4096)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = torch.randn(2048, 4096, device=device)
for step in range(10**9):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
"""


class Line:
    """Runs the commands, keeps what they print, and counts what did not hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failures = 0
        self.fakes: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, keep: str, *arguments: str) -> str:
        """Run one gpuconsole command; its output is kept under ``keep``."""
        began = time.monotonic()
        answer = subprocess.run(
            [sys.executable, "-m", "gpuconsole", *arguments], capture_output=True, text=True, timeout=300, check=False
        )
        print(f"$ gpuconsole {' '.join(arguments)}   [{answer.returncode}, {time.monotonic() - began:.1f} s]")
        print(answer.stdout[-3000:] + answer.stderr[-1500:], flush=True)
        self.keep(keep, answer.stdout)
        self.holds(f"{arguments[0]} exits with 0", answer.returncode == 0)
        return answer.stdout

    def keep(self, name: str, text: str) -> None:
        """Write ``text`` without what names this machine."""
        for real, fake in self.fakes.items():
            text = re.sub(rf"(?<![\w-]){re.escape(real)}(?![\w-])", fake, text)
        text = re.sub(
            r"(GPU-|MIG-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            r"\g<1>00000000-0000-4000-8000-000000000000", text,
        )  # fmt: skip
        (self.folder / name).write_text(text)

    def holds(self, what: str, true: object) -> None:
        """Say whether something held."""
        print(f"{'ok  ' if true else 'FAIL'} {what}", flush=True)
        self.failures += not true


def main() -> int:
    """Walk the line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", required=True)
    parser.add_argument("--gpu", type=int, default=0, help="index of the GPU to choose")
    parser.add_argument("-v", dest="volumes", action="append", default=[])
    parser.add_argument("-o", dest="folder", type=Path, required=True)
    parser.add_argument("--network", help="as launch has it; host where the engine has no bridge")
    options = parser.parse_args()
    line = Line(options.folder)
    line.fakes = {socket.gethostname(): "gpu-box", os.environ.get("USER", "root"): "me", os.uname().release: "6.18"}

    idle = json.loads(line.run("status-idle.json", "status", "--json"))
    gpu = next(each for each in idle["gpus"] if each["index"] == options.gpu)
    line.run("status-idle.txt", "status")
    line.run("doctor.txt", "doctor")
    project = Path(tempfile.mkdtemp(prefix="gpuconsole-line-"))
    (project / "train.py").write_text(TRAIN)
    mounts = [part for volume in [*options.volumes, f"{project}:/workspace"] for part in ("-v", volume)]
    network = ["--network", options.network] if options.network else []
    wish = ["--gpus", f"device={gpu['uuid']}", "--pull", "never", "-w", "/workspace"]
    asked = [options.image, "--name", NAME, *wish, *network, *mounts]
    line.fakes[str(project)] = "/home/me/project"
    line.run("dry-run.txt", "launch", *asked, "--dry-run", "--", "python3", "train.py")
    line.run("launch.json", "launch", *asked, "--json", "--", "python3", "train.py")
    try:
        walk(line, gpu)
    finally:
        line.run("logs.txt", "logs", "--tail", "20", NAME)
        line.run("stop.txt", "stop", "-t", "2", NAME)
        line.run("ps-stopped.txt", "ps")
        line.run("rm.txt", "rm", "--yes", NAME)
    time.sleep(2)
    after = json.loads(line.run("status-after.json", "status", "--json"))
    left = next(each for each in after["gpus"] if each["index"] == options.gpu)
    line.holds("the memory is free again", left["memory_used_bytes"] < gpu["memory_used_bytes"] + 2**30)
    print(f"{line.failures} failed")
    return 1 if line.failures else 0


def walk(line: Line, gpu: dict[str, object]) -> None:
    """The steps while it trains."""
    for _ in range(60):
        time.sleep(1)
        if "step 200" in subprocess.run(
            [sys.executable, "-m", "gpuconsole", "logs", NAME], capture_output=True, text=True, check=False
        ).stdout:  # fmt: skip
            break
    status = json.loads(line.run("status.json", "status", "--json"))
    seen = next(each for each in status["gpus"] if each["uuid"] == gpu["uuid"])
    listed = json.loads(line.run("ps.json", "ps", "--json"))
    container = next(each for each in listed["containers"] if each["name"] == NAME)
    line.run("status.txt", "status")
    line.run("ps.txt", "ps")
    line.run("inspect.txt", "inspect", NAME)
    line.holds("status: more than 8 GiB are in use", seen["memory_used_bytes"] > 8 * 2**30)
    holders = [each for each in seen["holders"] if each["container_id"] == container["id"]]
    line.holds("status: the container holds it", holders)
    line.holds("ps: its GPU memory", (container["gpu_memory_bytes"] or 0) > 8 * 2**30)
    line.holds("ps: its GPU is the chosen one", [each["uuid"] for each in container["gpus"]] == [gpu["uuid"]])
    line.holds("status: it is busy", (seen["utilization_pct"] or 0) > 20)
    report = json.loads(line.run("check.json", "check", NAME, "--json"))
    line.run("check.txt", "check", NAME)
    by_id = {each["id"]: each for each in report["checks"]}
    for check in ("torch", "cuda-available", "devices", "kernel", "numerics", "shm", "workspace"):
        line.holds(f"check.{check} is ok", by_id[f"check.{check}"]["status"] == "ok")
    line.holds("check sees exactly one GPU", len(report["environment"]["gpus"]) == 1)
    with_image = json.loads(line.run("images.json", "images", "--json"))
    line.holds("images lists something", with_image["images"])


if __name__ == "__main__":
    sys.exit(main())

"""A leaking container on a real GPU: is it announced in the console, in tmux and in `status` before it dies?

    python3 tests/gpu/announce.py IMAGE -o FILE [--gpu 0] [--step-gib 4] [--every 2.5] [--packed-s 45]

First a container fills nine tenths of the card on purpose and computes for a while: nobody may say anything. Then one
rests on a sixth of the card, leaks step by step, and dies of it. Somebody sits in one window of a private tmux, the
console is open in another; `status --json` and `status --tmux` are asked again and again. FILE holds when each place
spoke, what it said, and what was said after the death; UUIDs and the machine's name are replaced.

Needs a free NVIDIA GPU, an engine that can give it to a container, an image with CUDA PyTorch, tmux, Python 3.11 with
what gpuconsole needs. Containers are removed at the end. Exit codes: 0 announced everywhere before the death,
explained after, silent before the leak; 1 not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.tui.person import inert  # noqa: E402
from tests.tui.witness import (  # noqa: E402
    Seen,
    Witness,
    announced,
    announced_in_console,
    announced_in_status,
    announced_in_tmux,
)

_WORK = """
import time, torch
GIB = 2**30
total = torch.cuda.mem_get_info()[1]
x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20): x @ x
        torch.cuda.synchronize()
def take(size): return torch.empty(int(size), dtype=torch.uint8, device="cuda")
"""
_PACKED = _WORK + "\nheld = take(0.9 * total)\nwhile True: compute(1)\n"
_LEAK = (
    _WORK
    + """
held = [take(total / 6)]
compute({rest})
while True:
    held.append(take({step} * GIB))
    compute({every})
"""
)
_PLACES: dict[str, Callable[[Seen], bool]] = {
    "console": announced_in_console,
    "status": announced_in_status,
    "tmux": announced_in_tmux,
}


def shown(title: str, seen: Seen) -> str:
    """A look, to be read."""
    used = "–" if seen.used_gib is None else f"{seen.used_gib:.1f} GiB"
    return f"--- {title}: {seen.at:.1f} s, {used}\nstatus: {seen.line}\ntmux: {seen.message}\n{seen.console.rstrip()}\n"


def docker(*arguments: str) -> str:
    """What the engine's CLI prints."""
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False).stdout.strip()


def launch(image: str, name: str, program: str, folder: Path, gpu: int) -> None:
    """Launch a container as a user does; raises SystemExit when that fails."""
    (folder / f"{name}.py").write_text(program)
    command = [sys.executable, "-m", "gpuconsole", "launch", image, "--name", name, "--gpus", f"device={gpu}",
               "-v", f"{folder}:/workspace", "-w", "/workspace", "--", "python3", "-u", f"{name}.py"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"announce: {name} was not launched:\n{done.stderr}")


def main() -> int:
    """Launch, watch, and tell how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("image")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--step-gib", type=float, default=4.0)
    parser.add_argument("--every", type=float, default=2.5, help="seconds from one step to the next")
    parser.add_argument("--rest-s", type=float, default=15.0, help="seconds before the leak begins")
    parser.add_argument("--packed-s", type=float, default=45.0, help="seconds for the packed server; 0 leaves it out")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gpuconsole-announce-"))
    path = os.environ.get("PYTHONPATH", "")
    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "LANG": "C.UTF-8",
           "PYTHONPATH": f"{ROOT}:{path}" if path else str(ROOT)}  # fmt: skip
    os.environ.update(env)
    said: list[str] = []
    witness = Witness((shutil.which("tmux") or "tmux", "-S", str(folder / "tmux")), env, folder, gpu=asked.gpu)
    try:
        good = True
        if asked.packed_s:
            good = packed(asked, witness, folder, said)
        good = leaks(asked, witness, folder, said) and good
    finally:
        witness.close()
        docker("rm", "-f", "packed", "leak")
        asked.output.write_text(inert("\n".join(said)))
        shutil.rmtree(folder, ignore_errors=True)
    print(inert("\n".join(line for line in said if not line.startswith("---"))))
    return 0 if good else 1


def packed(asked: argparse.Namespace, witness: Witness, folder: Path, said: list[str]) -> bool:
    """A server that fills the card; whether everybody was silent."""
    launch(asked.image, "packed", _PACKED, folder, asked.gpu)
    end = time.monotonic() + asked.packed_s
    while time.monotonic() < end:
        seen = witness.look()
        if announced(seen):
            said += ["packed: an alarm, and it is none", shown("packed, announced", seen)]
            return False
    said += [f"packed: silent for {asked.packed_s:.0f} s, called {seen.state} in the end", shown("packed", seen)]
    docker("rm", "-f", "packed")
    return seen.state == "packed"


def leaks(asked: argparse.Namespace, witness: Witness, folder: Path, said: list[str]) -> bool:
    """A leak until death; whether every place told of it before, and why after."""
    program = _LEAK.replace("{rest}", str(asked.rest_s)).replace("{step}", str(asked.step_gib))
    witness.seen.clear()
    launch(asked.image, "leak", program.replace("{every}", str(asked.every)), folder, asked.gpu)
    began = time.monotonic() - witness.began
    while docker("inspect", "-f", "{{.State.Running}}", "leak") == "true":
        witness.look()
    died = time.monotonic() - witness.began
    said.append(f"leak: {asked.step_gib} GiB every {asked.every} s, dead {died - began:.1f} s after its launch")
    good = True
    for name, place in _PLACES.items():
        first = witness.first(place)
        told = first is not None and first.at < died
        good = good and told
        if first is None or not told:
            said.append(f"{name}: said nothing before the death")
            continue
        ahead, eta = died - first.at, "" if first.eta_s is None else f", which it put at {first.eta_s:.0f} s"
        said += [f"{name}: {ahead:.1f} s before the death{eta}", shown(name, first)]
    try:
        after = witness.until(lambda seen: "leak has ended" in seen.words, seconds=30)
    except AssertionError as error:
        said.append(f"after the death: not explained: {error}")
        return False
    runs = witness.run("runs", "leak")
    why = next((line.strip() for line in runs.splitlines() if "it asked for" in line or "out of memory" in line), "")
    said += [f"after the death: {why or 'no reason in its run'}", shown("after the death", after), runs]
    return good and bool(why)


if __name__ == "__main__":
    sys.exit(main())

"""One workload of record_oom.py: fills GPU memory as its program says, and tells what it does on standard output.

    python3 tests/gpu/record_oom_work.py cuda        a CUDA device through PyTorch's allocator
    python3 tests/gpu/record_oom_work.py FILE        nothing: what would be held is written into FILE

It imports what is slow, says ``ready``, and waits for one line: ``{"program": [{"do": "load", …}, …], "seed": N}``.
Every line it prints is an event ``{"event", "at": time.monotonic(), …}``. Matrix products stand for the computing
between allocations; ``train`` is a real transformer with its optimizer. Sizes are GiB, times seconds, shares those of
the card.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

GIB = 2**30
LAYERS = 8
Op = dict[str, Any]


class OutOfMemory(Exception):
    """The device is full; the text is the allocator's."""


class Cuda:
    """GPU memory through PyTorch's allocator."""

    def __init__(self) -> None:
        import torch

        self.torch = torch

    def start(self) -> None:
        """Make the context."""
        shape = {"device": "cuda", "dtype": self.torch.bfloat16}
        self.a, self.b = self.torch.randn(4096, 4096, **shape), self.torch.empty(4096, 4096, **shape)
        self.compute(0.1)  # with the memory that libraries take at their first use

    def take(self, size: int) -> Any:
        """Hold ``size`` bytes until the answer is dropped."""
        return self.torch.empty(max(size, 512), dtype=self.torch.uint8, device="cuda")

    def drop_cache(self) -> None:
        """Give what is cached back to the driver."""
        self.torch.cuda.empty_cache()

    def free_and_total(self) -> tuple[int, int]:
        """Bytes."""
        free, total = self.torch.cuda.mem_get_info()
        return int(free), int(total)

    def compute(self, seconds: float) -> None:
        """Keep the device busy."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(20):
                self.torch.mm(self.a, self.a, out=self.b)
                self.a, self.b = self.b.clamp_(-1, 1), self.a
            self.torch.cuda.synchronize()


class Held:
    """Bytes held in the pretended device."""

    def __init__(self, device: Pretended, size: int) -> None:
        self.device, self.size = device, size
        device.live += size
        device.write()

    def __del__(self) -> None:
        self.device.live -= self.size


class Pretended:
    """A device of 140 GiB with a cache that serves any request; several processes share it through their files."""

    total = 140 * GIB

    def __init__(self, file: Path) -> None:
        self.file = file
        self.live = self.reserved = 0

    def start(self) -> None:
        """A context takes half a GiB."""
        self.context = self.take(GIB // 2)

    def take(self, size: int) -> Held:
        """As Cuda's."""
        if self.live + size > self.reserved and size > self.free_and_total()[0] + self.reserved - self.live:
            raise OutOfMemory(f"CUDA out of memory. Tried to allocate {size / GIB:.2f} GiB.")
        return Held(self, size)

    def write(self) -> None:
        """Tell the recorder."""
        self.reserved = max(self.reserved, self.live)
        self.file.write_text(str(self.reserved))

    def drop_cache(self) -> None:
        """As Cuda's."""
        self.reserved = self.live
        self.write()

    def free_and_total(self) -> tuple[int, int]:
        """As Cuda's."""
        others = sum(int(each.read_text() or 0) for each in self.file.parent.glob("held-*") if each != self.file)
        return self.total - others - self.reserved, self.total

    def compute(self, seconds: float) -> None:
        """Time passes."""
        time.sleep(seconds)


class Workload:
    """Carries out one program."""

    def __init__(self, device: Cuda | Pretended, seed: int) -> None:
        self.device = device
        self.random = random.Random(seed)
        self.held: list[Any] = []

    def run(self, program: list[Op]) -> str:
        """``done``, or ``cuda_oom`` when the device was full."""
        try:
            for op in program:
                tell("phase", name=op.get("name", op["do"]))
                getattr(self, op["do"])(op)
        except (OutOfMemory, RuntimeError) as error:
            text = str(error)
            if not isinstance(error, OutOfMemory) and "out of memory" not in text and "ALLOC_FAILED" not in text:
                raise
            tell("cuda_oom", detail=text[:600])
            return "cuda_oom"
        tell("done")
        return "done"

    def used_share(self) -> float:
        """Of the whole card, by all."""
        free, total = self.device.free_and_total()
        return 1 - free / total

    def about(self, value: float, jitter: float) -> float:
        """``value``, off by up to ``jitter`` of it."""
        return value * (1 + self.random.uniform(-jitter, jitter))

    def load(self, op: Op) -> None:
        """Fill the card ``to`` a share (or take ``gib``) in ``shards``, each in a moment, ``pause`` seconds apart."""
        free, total = self.device.free_and_total()
        want = op["gib"] * GIB if "gib" in op else op["to"] * total - (total - free)
        shards = op.get("shards", 4)
        for _ in range(shards):
            for _ in range(4):
                self.held.append(self.device.take(int(want / shards / 4)))
                self.device.compute(0.02)
            self.rest(self.about(op.get("pause", 0.3), op.get("jitter", 0.2)), op)

    def hold(self, op: Op) -> None:
        """Work for ``s`` seconds."""
        self.rest(op["s"], op)

    def rest(self, seconds: float, op: Op) -> None:
        """Compute, or do nothing for an op with ``idle``."""
        if op.get("idle"):
            time.sleep(seconds)
        else:
            self.device.compute(seconds)

    def leak(self, op: Op) -> None:
        """Keep ``step`` GiB more every ``every`` seconds, ``until`` a share of the card is used, for ``s`` at most.

        ``grow`` multiplies the step each time; ``jitter`` makes steps and intervals uneven; ``pause`` is a rest of so
        many seconds after every ``after`` steps.
        """
        step, end = op["step"], time.monotonic() + op.get("s", 90)
        taken = 0
        while time.monotonic() < end:
            size = self.about(step, op.get("jitter", 0.0))
            if "until" in op and self.used_share() + size * GIB / self.device.free_and_total()[1] > op["until"]:
                return
            self.held.append(self.device.take(int(size * GIB)))
            step *= op.get("grow", 1.0)
            taken += 1
            self.rest(self.about(op["every"], op.get("jitter", 0.0)), op)
            if "pause" in op and taken % op["after"] == 0:
                self.rest(op["pause"], op)

    def cycle(self, op: Op) -> None:
        """For each of ``peaks`` GiB take pieces of ``piece`` every ``every`` seconds up to it, then let all go.

        ``leak`` GiB more stay behind after each; ``keep`` leaves the cache as it is.
        """
        for peak in op["peaks"]:
            tell("request")
            pieces: list[Any] = []
            size = op["piece"]
            while len(pieces) * size < peak:
                pieces.append(self.device.take(int(size * GIB)))
                self.rest(op["every"], op)
            self.rest(op.get("at_peak", 0.3), op)
            pieces.clear()
            if not op.get("keep"):
                self.device.drop_cache()
            if op.get("leak"):
                self.held.append(self.device.take(int(op["leak"] * GIB)))
            self.rest(op.get("between", 0.3), op)

    def peaks(self, op: Op) -> None:
        """Validation: every ``every`` seconds a short peak of the next of ``sizes`` GiB; the cache keeps it."""
        for size in op["sizes"]:
            self.rest(op["every"], op)
            tell("validation")
            parts = [self.device.take(int(size * GIB / LAYERS)) for _ in range(LAYERS)]
            self.rest(op.get("at_peak", 1.4), op)
            del parts
            if op.get("drop"):
                self.device.drop_cache()

    def fragments(self, op: Op) -> None:
        """For ``s`` seconds sizes of ``small`` to ``large`` GiB come and go; ``cap`` to ``cap_end`` live at once."""
        live: list[tuple[float, Any]] = []
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < op["s"]:
            cap = op["cap"] + (op.get("cap_end", op["cap"]) - op["cap"]) * passed / op["s"]
            size = self.random.uniform(op["small"], op["large"])
            while live and sum(each for each, _ in live) + size > cap:
                live.pop(self.random.randrange(len(live)))
            live.append((size, self.device.take(int(size * GIB))))
            self.rest(op.get("every", 0.1), op)

    def train(self, op: Op) -> None:
        """A real transformer whose sequence length grows by ``grow`` every ``every`` s, or is drawn (``room`` GiB)."""
        if isinstance(self.device, Pretended):
            self.leak({"step": 1.5, "every": 1.0, **op} | ({"until": 0.7} if "room" in op else {}))
            return
        self.really_train(self.device.torch, op)

    def really_train(self, torch: Any, op: Op) -> None:
        """What ``train`` does on CUDA."""
        with torch.device("cuda"):
            layer = torch.nn.TransformerEncoderLayer(2048, 16, 8192, dropout=0.0, batch_first=True, norm_first=True)
            model = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

        def step(length: int) -> None:
            x = torch.randn(op.get("batch", 8), length, 2048, device="cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(x).float().pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.synchronize()

        length = op.get("length", 384)
        longest = length
        for _ in range(3):
            step(length)
        if "room" in op:  # the peak is nearly in proportion to the length
            longest = int(length * op["room"] * GIB / torch.cuda.max_memory_allocated() * 0.85)
        end = time.monotonic() + op.get("s", 60)
        while time.monotonic() < end:
            until = time.monotonic() + op.get("every", 2.0)
            while time.monotonic() < min(until, end):
                step(self.random.randint(longest // 4, longest) if "room" in op else int(length))
            length *= op.get("grow", 1.0)


def tell(event: str, **more: Any) -> None:
    """One event on standard output."""
    print(json.dumps({"event": event, "at": time.monotonic(), **more}), flush=True)


def main() -> int:
    """Wait for the program, run it; 1 when the device was full."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it never outlives the recorder
    device = Cuda() if sys.argv[1] == "cuda" else Pretended(Path(sys.argv[1]))
    tell("ready")
    line = sys.stdin.readline()
    if not line.strip():
        return 0
    task = json.loads(line)
    time.sleep(task.get("delay", 0.0))
    device.start()
    tell("start", pid=os.getpid(), seed=task["seed"])
    ended = Workload(device, task["seed"]).run(task["program"])
    if ended == "done":
        return 0
    time.sleep(0.4)  # a training script writes its traceback
    os._exit(1)  # the driver lets the memory go


if __name__ == "__main__":
    sys.exit(main())

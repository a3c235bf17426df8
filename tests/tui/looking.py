"""A console that shows always the same: canned news, a clock that stands, services that do nothing."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gpuconsole.engine.endpoint import DEFAULT_SOCKET
from gpuconsole.engine.model import (
    Container,
    ContainerState,
    EngineInfo,
    GpuClaim,
    GpuPath,
    GpuRequestKind,
    Image,
    ImageStep,
    Mount,
    Port,
    PullProgress,
    Usage,
)
from gpuconsole.gpu.model import Ecc, Gpu, GpuProcess, GpuSnapshot, GpuStatus, PcieLink
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.images.catalog import Catalog, CatalogImage, Evidence
from gpuconsole.images.verdict import GpuTraits, HostTraits
from gpuconsole.services.buildorders import BuildOrder, Chosen, choose
from gpuconsole.services.catalog import view_catalog
from gpuconsole.services.containers import ContainerGpu, ContainerView
from gpuconsole.services.desk import Desk
from gpuconsole.services.drafts import Drafts
from gpuconsole.services.feed import EngineLink
from gpuconsole.services.fitting import traits_of
from gpuconsole.services.imageremoval import Kept, Need, Removal
from gpuconsole.services.images import view_images
from gpuconsole.services.logfollow import LogBatch, LogLine, LogState, LogStatus
from gpuconsole.services.pulling import PullState
from gpuconsole.services.runs import Run, RunKind, Runs, RunState
from gpuconsole.services.session import Session
from gpuconsole.services.shelf import Hold, Shelf
from gpuconsole.services.tunnels import Server
from gpuconsole.tui.app import ConsoleApp

NOW = 1_800_000_000.0
"""A moment in 2027, 08:00 UTC."""
GIB = 2**30
IDS = {name: f"{place:02x}" * 32 for place, name in enumerate(("llama-ft", "jupyter-mei", "prep", "old"), start=16)}


class StillDesk(Desk):
    """The real desk, which nobody starts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            Session(host=f"unix://{folder}/none.sock"), runs=Runs(kept=False), drafts=Drafts(path=folder / "runs.db")
        )

    def start(self, listener: object, interval_s: float) -> None:
        """Look at nothing."""

    @property
    def me(self) -> str:
        """Always the same."""
        return "ada"

    @property
    def host_name(self) -> str:
        """Always the same."""
        return "ws-07"

    def server(self, endpoint_url: str) -> Server:
        """Always the same."""
        return Server("ws-07", "ada")

    def owner(self, container: Container) -> str | None:
        """Whoever the name says."""
        return "mei" if "mei" in container.name else None

    def now(self) -> float:
        """It stands."""
        return NOW


def _gpu(index: int, **changes: Any) -> Gpu:
    given: dict[str, Any] = {
        "index": index, "uuid": f"GPU-{index}a1b2c3d-0000-4000-8000-00000000000{index % 10}", "name": "NVIDIA H200",
        "minor": index, "pci_bus_id": f"00000000:{index + 1:02x}:00.0", "compute_capability": (9, 0),
        "memory_total_bytes": 140 * GIB, "memory_used_bytes": 0, "memory_free_bytes": 140 * GIB,
        "memory_reserved_bytes": 600 * 2**20, "utilization_pct": 0, "memory_utilization_pct": 0, "temperature_c": 34,
        "power_w": 76.0, "power_limit_w": 700.0, "sm_clock_mhz": 345, "memory_clock_mhz": 3201,
        "max_sm_clock_mhz": 1980, "max_memory_clock_mhz": 3201, "throttle_reasons": (), "performance_state": 0,
        "pcie": PcieLink(5, 16, 5, 16), "ecc": Ecc(True, 0, 0, 0, 0, False, False), "mig_enabled": False,
        "compute_mode": "default", "persistence": True, "unknown": {"fan_pct": "this GPU has no fan of its own"},
    }  # fmt: skip
    return Gpu(**given | changes)


def _busy(index: int, used_gib: float, *, pct: int, **changes: Any) -> Gpu:
    used = int(used_gib * GIB)
    return _gpu(index, memory_used_bytes=used, memory_free_bytes=140 * GIB - used, utilization_pct=pct,
                temperature_c=67, power_w=612.0, sm_clock_mhz=1755, throttle_reasons=("sw-power-cap",),
                processes=(GpuProcess(4211, used),), **changes)  # fmt: skip


def _holder(gpu: Gpu, pid: int, name: str | None, user: str, command: str) -> Holder:
    return Holder(
        pid=pid, gpu_index=gpu.index, gpu_uuid=gpu.uuid, memory_bytes=gpu.memory_used_bytes, user=user, uid=1000,
        command=command, host_memory_bytes=38 * GIB, cpu_pct=412.0, started_at=NOW - 7300,
        container_id=IDS.get(name or ""), container_name=name,
    )  # fmt: skip


def host(count: int = 3) -> HostView:
    """GPUs: busy, idle but held, free; of more than three also one that is lost."""
    gpus = [_busy(0, 130.6, pct=98), _busy(1, 4.2, pct=0), _gpu(2)]
    gpus += [_busy(index, 7.5 * index, pct=6 * index) for index in range(3, count)]
    if count > 3:
        gpus[-1] = _gpu(count - 1, status=GpuStatus.LOST, problem="The GPU is lost; it needs a restart.",
                        memory_used_bytes=None, utilization_pct=None, temperature_c=None, power_w=None)  # fmt: skip
    holders = {
        0: (_holder(gpus[0], 4211, "llama-ft", "ada", "python train.py --config llama-8b.yaml --resume auto"),),
        1: (_holder(gpus[1], 5120, "jupyter-mei", "mei", "python -m ipykernel_launcher -f kernel.json"),),
    }
    views = tuple(GpuView(gpu, holders.get(gpu.index, ()), unattributed_bytes=0) for gpu in gpus[:count])
    return HostView(
        GpuSnapshot(NOW, gpus=tuple(gpus[:count]), driver_version="580.159.04", cuda_version="13.0"), gpus=views
    )


def _container(name: str, **changes: Any) -> Container:
    given: dict[str, Any] = {
        "id": IDS[name], "name": name, "image": "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
        "image_id": "sha256:" + "1" * 64, "state": ContainerState.RUNNING, "started_at": NOW - 7380,
        "command": ("python", "train.py", "--config", "llama-8b.yaml"), "working_dir": "/workspace",
        "environment": (("HF_TOKEN", "hf_0123456789"), ("EPOCHS", "3")), "tty": True,
    }  # fmt: skip
    return Container(**given | changes)


def containers() -> tuple[ContainerView, ...]:
    """Running, somebody else's, out of memory, ended long ago."""
    seen = host().gpus
    gpu = {index: ContainerGpu(index=index, uuid=seen[index].gpu.uuid, name="NVIDIA H200") for index in (0, 1)}
    first = _container(
        "llama-ft",
        ports=(Port(8888, host_ip="127.0.0.1", host_port=8888), Port(6006)),
        mounts=(Mount("bind", "/home/ada/llama", "/workspace"), Mount("bind", "/data", "/data", read_only=True)),
        gpu_claims=(GpuClaim(GpuRequestKind.CDI, devices=(seen[0].gpu.uuid or "",)),),
        memory_limit_bytes=64 * GIB,
        labels={"gpuconsole.user": "ada"},
    )
    ngc = {"image": "nvcr.io/nvidia/pytorch:25.10-py3", "image_id": "sha256:" + "2" * 64}
    ended = {"state": ContainerState.EXITED, "started_at": NOW - 4000}
    return (
        ContainerView(first, (gpu[0],), int(130.6 * GIB), Usage(412.0, 38 * GIB, 64 * GIB, 44), "ada",
                      "pytorch 2.9.1-cuda12.8 @3fe1", "sha256:3fe1" + "a" * 60),
        ContainerView(_container("jupyter-mei", **ngc), (gpu[1],), int(4.2 * GIB), Usage(0.3, GIB, None, 12), "mei",
                      "ngc pytorch 25.10 @a81c", "sha256:a81c" + "b" * 60),
        ContainerView(_container("prep", exit_code=137, oom_killed=True, finished_at=NOW - 130, **ended), (), None,
                      None, "ada", "pytorch 2.9.1-cuda12.8 @3fe1", None),
        ContainerView(_container("old", exit_code=0, finished_at=NOW - 5 * 86400, **ended), (), None, None, None,
                      "pytorch 2.9.1-cuda12.8 @3fe1", None, {"user": "it does not run"}),
    )  # fmt: skip


def images() -> tuple[Image, ...]:
    """With and without PyTorch."""
    return (
        Image("sha256:" + "1" * 64, ("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",),
              ("pytorch/pytorch@sha256:3fe1" + "a" * 60,), 6 * GIB, NOW - 20 * 86400, "amd64", "linux",
              (("PYTORCH_VERSION", "2.9.1"), ("CUDA_VERSION", "12.8.1"), ("PYTHON_VERSION", "3.11.13"))),
        Image("sha256:" + "2" * 64, ("nvcr.io/nvidia/pytorch:25.10-py3",), (), 21 * GIB, NOW - 40 * 86400, "amd64",
              "linux", (("PYTORCH_VERSION", "2.9.0a0"), ("CUDA_VERSION", "13.0.2"))),
        Image("sha256:" + "3" * 64, ("debian:13-slim",), (), 78 * 2**20, NOW - 9 * 86400, "amd64", "linux"),
    )  # fmt: skip


def shelf(machine: HostTraits) -> Shelf:
    """What is not here: one that runs, one with limits, one that will not, one of which little is known; and a pin."""
    entries = tuple(
        CatalogImage(reference, evidence=Evidence.SEEN, platforms=("linux/amd64",), recommended=recommended, **given)
        for reference, recommended, given in (
            ("pytorch/pytorch:2.9.1-cuda13.0-cudnn9-devel", True,
             {"torch": "2.9.1", "cuda": "13.0", "python": "3.11", "variant": "devel", "cudnn": "9.13.0",
              "sizes": {"linux/amd64": 9 * GIB}}),
            ("pytorch/pytorch:2.1.2-cuda11.8-cudnn8-runtime", True, {"torch": "2.1.2", "cuda": "11.8"}),
            ("pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtime", True, {"torch": "2.14.1", "cuda": "13.2"}),
            ("pytorch/pytorch:2.0.1-cuda11.7-cudnn8-devel", True, {"torch": "2.0.1", "cuda": "11.7"}),
        )
    )  # fmt: skip
    lock = Hold("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", "./gpuconsole.lock", own=True)
    return Shelf(view_catalog(Catalog(entries), machine), {"sha256:" + "1" * 64: (lock,)})


STEPS = (
    ImageStep('CMD ["bash"]', 0, NOW - 20 * 86400),
    ImageStep("COPY /opt/conda /opt/conda # buildkit", int(5.4 * GIB), NOW - 20 * 86400),
    ImageStep("RUN /bin/sh -c apt-get update && apt-get install -y --no-install-recommends ca-certificates libjpeg-dev "
              "libpng-dev && rm -rf /var/lib/apt/lists/* # buildkit", 122 * 2**20, NOW - 20 * 86400),
    ImageStep("/bin/sh -c #(nop)  ENV HF_TOKEN=hf_0123456789", 0, NOW - 20 * 86400),
    ImageStep("/bin/sh -c #(nop) ADD file:2e27 in / ", 77 * 2**20, NOW - 30 * 86400),
)  # fmt: skip


def chosen(order: BuildOrder) -> Chosen:
    """What a build comes to on a machine that is always the same."""
    gpus = (GpuTraits("GPU 0 (NVIDIA H200)", name="NVIDIA H200", capability=(9, 0)),)
    return choose(order, HostTraits("580.159.04", "13.0", "amd64", gpus, checks_demands=False))


def prunable() -> tuple[tuple[Removal, ...], tuple[Kept, ...]]:
    """Left over: one without a name, one with; one that is pinned stays."""
    nameless = Image("sha256:" + "7" * 64, size_bytes=5 * GIB)
    named = Image("sha256:" + "8" * 64, ("team/train:2026-10",), size_bytes=12 * GIB)
    need = Need("./gpuconsole.lock pins it as pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", "", True)
    removals = Removal(nameless, (), True), Removal(named, named.tags, True)
    return removals, (Kept(images()[0], need),)


PULLED = "pytorch/pytorch:2.9.1-cuda13.0-cudnn9-devel"


def pull() -> tuple[Run, PullState]:
    """A pull that is half way."""
    layers = (
        ("7a2c55901189", "Pull complete", None, None), ("90a8b3fd1c2e", "Pull complete", None, None),
        ("4f4fb700ef54", "Extracting", 310, 310), ("b1a2c3d4e5f6", "Downloading", 1270, 3350),
        ("c0ffee123456", "Downloading", 88, 412), ("d15ea5e00001", "Waiting", None, None),
    )  # fmt: skip
    each = tuple(
        PullProgress(status, layer, now and now * 2**20, total and total * 2**20)
        for layer, status, now, total in layers
    )
    state = PullState(PULLED, 6, 2, 3, int(2.4 * GIB), int(5.6 * GIB), "", each, 38.2 * 2**20, 87.0)
    run = Run("4", RunKind.PULL, PULLED, "", NOW - 66, headline=state.words, progress=0.43)
    return run, state


REPORT = {
    "checks": [
        {"id": "check.torch", "status": "ok", "why": "torch 2.9.1+cu128, CUDA 12.8 build", "seconds": 3.3},
        {"id": "check.shm", "status": "fail", "why": "/dev/shm is 64 MiB", "fix": "Launch it with --shm-size 8g."},
        {"id": "check.numerics", "status": "warn", "why": "TF32 is on", "fix": "Leave it, or unset the variable."},
    ]
}


def runs() -> tuple[Run, ...]:
    """One under way, one that went badly, one that went well."""
    return (
        Run("3", RunKind.CHECK, "llama-ft", IDS["llama-ft"], NOW - 12, headline="numerics", progress=0.6),
        Run("2", RunKind.CHECK, "jupyter-mei", IDS["jupyter-mei"], NOW - 900, RunState.FAILED, NOW - 880,
            "Not fit for training: 1 of 10 checks failed.", document=json.dumps(REPORT)),
        Run("1", RunKind.LAUNCH, "llama-ft", IDS["llama-ft"], NOW - 7400, RunState.OK, NOW - 7380, "It runs."),
    )  # fmt: skip


LOG = [
    "loading tokenizer … done",
    "resuming from /checkpoints/step-12000.pt",
    *(f"step {step:>6}  loss {3.1 - step / 9000:.4f}  lr 2.0e-04  {1180 + step % 7} tok/s" for step in
      range(12010, 12600, 10)),
    "/usr/lib/python3.11/warnings.py: UserWarning: the dataloader took longer than the step, see num_workers and "
    "pin_memory, and prefetch_factor where the storage is slow",
    "[bold]not markup[/bold] ► 数据集 ok",
]  # fmt: skip


class CannedLog:
    """Stands where the follower of a container's output stands."""

    def __init__(self, engine: object, container_id: str, on_news: Any) -> None:
        self._on_news = on_news
        self._status = LogStatus(LogState.FOLLOWING)

    def start(self) -> None:
        """There is something to take."""
        self._on_news()

    def waiting(self) -> tuple[int, int, LogStatus]:
        """Lines and characters."""
        return len(LOG), sum(map(len, LOG)), self._status

    def take(self) -> LogBatch:
        """All of it."""
        lines = tuple(
            LogLine("stderr" if "Warning" in text else "stdout", f"2027-01-15T07:59:{place % 60:02}.5Z", text)
            for place, text in enumerate(LOG)
        )
        return LogBatch(lines, (LogLine("stdout", "", "epoch 2:  71%|███████▏  | 710/1000"),), self._status)

    def close(self) -> None:
        """Nothing is open."""

    def wake(self) -> None:
        """It sleeps never."""


async def feed(pilot: Pilot[Any], *, gpus: int = 3) -> None:
    """Let it see everything at once, and a history."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    view = host(gpus)
    for back in range(240, -1, -1):
        app.history.host_looked(_then(view, at=NOW - back))
    app.history.containers_listed(containers(), at=NOW)
    app.history.runs_changed(runs(), at=NOW)
    app.engine_info = EngineInfo(f"unix://{DEFAULT_SOCKET}", name="docker", version="28.5.1", local=True)
    app.link = EngineLink(connected=True, endpoint=f"unix://{DEFAULT_SOCKET}", since=NOW - 60)
    machine = traits_of(view.snapshot, view.snapshot.gpus, path=GpuPath.CDI, architecture="x86_64")
    app.images = view_images(images(), [each.container for each in containers()], machine)
    app.shelf = shelf(machine)
    app.runs = runs()
    app.desk.runs.show(runs())
    for back in range(8, -1, -1):
        app.host_view = _then(view, at=NOW - back)
        await pilot.pause()
    app.containers = containers()


def _then(view: HostView, *, at: float) -> HostView:
    """As it was at that moment: less memory, another use."""

    def then(gpu: Gpu) -> Gpu:
        if gpu.utilization_pct is None or not gpu.memory_used_bytes:
            return gpu
        use = min(100, max(0, gpu.utilization_pct - int(NOW - at) * 7 % 40))
        return replace(gpu, utilization_pct=use, memory_used_bytes=int(gpu.memory_used_bytes * (1 - (NOW - at) / 400)))

    past = tuple(replace(each, gpu=then(each.gpu)) for each in view.gpus)
    return HostView(replace(view.snapshot, taken_at=at, gpus=tuple(each.gpu for each in past)), gpus=past)


@pytest.fixture
def still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes consoles that show always the same."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("gpuconsole.tui.screens.logs.LogFollower", CannedLog)
    time.tzset()

    def make(**options: Any) -> ConsoleApp:
        app = ConsoleApp(StillDesk(tmp_path), **options)
        app.animation_level = "none"
        return app

    return make

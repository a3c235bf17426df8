"""The GPUs watched from the host while a benchmark runs: on the simulated driver, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from gpuconsole.gpu.model import Gpu, GpuProcess, ProcessKind
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.host.processes import BLIND, ENDED
from gpuconsole.probes.benchresults import BenchReport, BenchResult, BenchStatus
from gpuconsole.probes.records import NO_GPUS, AskedGpu, AskedGpus, Environment, RunEnd, SeenGpu
from gpuconsole.services.benchassembly import assemble
from gpuconsole.services.benchsampling import HostSamples, below_us, in_container, others_on
from gpuconsole.services.session import Session
from tests.rig.nvml import GIB, NvmlBox, NvmlState, a100_mig, busy, h200
from tests.rig.nvml import GpuProcess as Simulated

WAIT_S = 20.0
UUID = h200(0).uuid


@pytest.fixture
def child() -> Iterator[Callable[[], int]]:
    """Give a function that starts a process below this one."""
    started: list[subprocess.Popen[str]] = []

    def start() -> int:
        started.append(subprocess.Popen(["sleep", "600"], text=True))
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def watch(nvml: NvmlBox) -> Iterator[Callable[..., HostSamples]]:
    opened: list[tuple[Session, HostSamples]] = []

    def begin(ours: Callable[[Holder], bool]) -> HostSamples:
        session = Session()
        samples = HostSamples(session, ours, interval_s=0.02)
        opened.append((session, samples))
        samples.start()
        return samples

    yield begin
    for session, samples in opened:
        samples.stop()
        session.close()


def until(seen: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not seen():
        assert time.monotonic() < end, "it did not come to be seen"
        time.sleep(0.02)


def use_since(samples: HostSamples, began: float) -> int:
    return samples.use(uuid(samples), 0, began=began, ended=time.time()).samples


def busy_since(samples: HostSamples, began: float) -> bool:
    clock = samples.use(uuid(samples), 0, began=began, ended=time.time()).sm_mhz
    return clock is not None and clock.high > 1000


def uuid(samples: HostSamples) -> str:
    found = samples.snapshot.gpus[0].uuid
    assert found is not None
    return found


def test_clocks_power_heat_and_reasons_of_the_time_it_ran(
    nvml: NvmlBox, watch: Callable[..., HostSamples], child: Callable[[], int]
) -> None:
    samples = watch(below_us(os.getpid()))
    nvml.write(NvmlState(gpus=(busy(h200(0), Simulated(child(), 2 * GIB)), h200(1))))
    until(lambda: busy_since(samples, time.time() - 1))
    began = time.time()
    until(lambda: use_since(samples, began) >= 12)
    assert samples.link(uuid(samples), began=began, ended=time.time()) == (5, 16)
    assert samples.link(uuid(samples), began=0.0, ended=1.0) == (None, None)
    use = samples.use(uuid(samples), 3, began=began, ended=time.time())
    assert use.gpu == 3
    assert use.sm_mhz is not None
    assert (use.sm_mhz.low, use.sm_mhz.mean, use.sm_mhz.high) == (1782.0, 1782.0, 1782.0)
    assert use.temperature_c is not None
    assert use.temperature_c.high == 56
    assert use.reasons == ("sw-power-cap",)
    assert use.reasons_share == {"sw-power-cap": 1.0}
    assert samples.contention([uuid(samples)], began=began, ended=time.time()) == (False, ())
    before = samples.use(uuid(samples), 0, began=began - 3600, ended=began - 3599)
    assert (before.samples, before.sm_mhz) == (0, None)
    assert before.unknown


def test_another_process_that_comes_meanwhile_is_named(
    nvml: NvmlBox, watch: Callable[..., HostSamples], child: Callable[[], int]
) -> None:
    samples, began = watch(lambda holder: False), time.time()
    nvml.change_gpu(0, processes=(Simulated(child(), 3 * GIB),))
    until(lambda: samples.contention([uuid(samples)], began=began, ended=time.time())[0] is True)
    assert samples.contention([uuid(samples)], began=began, ended=time.time())[1] == ("sleep 600 (3 GiB)",)
    other = samples.snapshot.gpus[1].uuid
    assert other is not None
    assert samples.contention([other], began=began, ended=time.time())[0] is False, "the other GPU is not disturbed"


def test_who_was_there_before_disturbs_also_in_the_same_container(
    nvml: NvmlBox, watch: Callable[..., HostSamples], child: Callable[[], int]
) -> None:
    nvml.change_gpu(0, processes=(Simulated(child(), 3 * GIB),))
    samples = watch(lambda holder: True)
    until(lambda: use_since(samples, 0.0) > 6)
    now = time.time()
    assert samples.contention([uuid(samples)], began=now - 10, ended=now) == (True, ("sleep 600 (3 GiB)",))


def test_an_instance_is_disturbed_by_who_is_on_it(
    nvml: NvmlBox, watch: Callable[..., HostSamples], child: Callable[[], int]
) -> None:
    nvml.write(NvmlState(gpus=(busy(a100_mig(), Simulated(child(), 4 * GIB)),)))
    samples = watch(lambda holder: False)
    first, second, *_ = (mig.uuid or "" for mig in samples.snapshot.gpus[0].migs)
    now = time.time()
    assert samples.contention([first], began=now, ended=now)[0] is True
    assert samples.contention([second], began=now, ended=now)[0] is False


def test_without_a_driver_there_is_a_reason_and_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = HostSamples(Session(), lambda holder: False)
    samples.start()
    samples.stop()
    if samples.problem is None:
        pytest.skip("this machine has a driver")
    assert samples.use(UUID, 0, began=0.0, ended=1.0).unknown == samples.problem
    assert samples.contention(["GPU-1"], began=0.0, ended=1.0) == (None, ())


def holder(pid: int = 7, **fields: object) -> Holder:
    known = {"command": "python train.py", "gpu_index": 0, "gpu_uuid": "GPU-1", "memory_bytes": GIB}
    return Holder(pid=pid, **(known | fields))  # type: ignore[arg-type]


def seen(*holders: Holder, percent: int = 0, processes: tuple[GpuProcess, ...] | None = ()) -> GpuView:
    gpu = Gpu(0, "GPU-1", "NVIDIA H200", utilization_pct=percent, processes=processes)
    return GpuView(gpu, holders)


def test_a_desktop_at_rest_does_not_disturb_and_one_at_work_does() -> None:
    screen = holder(command="Xorg", kind=ProcessKind.GRAPHICS)
    assert others_on(seen(screen, percent=2), None) == ((), False)
    assert others_on(seen(screen, percent=60), None) == (("Xorg (1 GiB)",), False)
    assert others_on(seen(screen, percent=99), lambda each: False) == ((), False), "the benchmark itself keeps it busy"


def test_use_by_nobody_who_is_listed_is_told() -> None:
    assert others_on(seen(percent=80), None) == (("a process that the driver does not list",), False)


def test_what_cannot_be_seen_is_no_answer_and_what_has_ended_is_no_doubt() -> None:
    blind = holder(unknown={"container_id": BLIND})
    assert others_on(seen(blind), lambda each: False) == ((), True)
    assert others_on(seen(blind), None) == (("python train.py (1 GiB)",), False), "before, it can be nobody of ours"
    assert others_on(seen(holder(unknown={"container_id": ENDED})), lambda each: False) == ((), False)
    assert others_on(seen(processes=None), lambda each: False) == ((), True)


def test_ours_are_those_of_the_container_or_below_us() -> None:
    assert in_container("c1")(holder(container_id="c1"))
    assert not in_container("c1")(holder(container_id="c2"))
    ours = below_us(os.getpid())
    script = "import subprocess; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); p.wait()"
    grandchild = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert grandchild.stdout is not None
    pid = int(grandchild.stdout.readline())
    try:
        assert ours(holder(pid))
        assert not ours(holder(1))
        assert not ours(holder(os.getppid()))
        grandchild.kill()
        grandchild.wait()
        assert ours(holder(pid)), "once seen it stays ours, also when its parent has ended"
    finally:
        os.kill(pid, 9)


def report(*results: BenchResult, gpus: tuple[SeenGpu, ...]) -> BenchReport:
    environment = Environment(gpus=gpus, driver="580.1")
    return BenchReport(RunEnd.COMPLETE, environment, "quick", results)


def test_a_run_knows_its_gpus_by_what_torch_saw_and_the_host_says(
    nvml: NvmlBox, watch: Callable[..., HostSamples]
) -> None:
    samples = watch(lambda each: False)
    second = samples.snapshot.gpus[1]
    assert second.uuid is not None
    told = report(
        BenchResult("bench.mm", "B01", BenchStatus.OK, device="cuda", gpu=(0,), unit="TFLOP/s", score=1.0),
        BenchResult("bench.launch", "B04", BenchStatus.OK, device="cuda", gpu=(0,), unit="us", score=1.0),
        gpus=(SeenGpu(0, second.uuid.removeprefix("GPU-"), "NVIDIA H200", multiprocessors=132),),
    )
    until(lambda: use_since(samples, 0.0) > 6)
    run = assemble(told, samples, asked=NO_GPUS, taken_at=1.0, subject="x", subject_id="")
    (gpu,) = run.machine.gpus
    assert (gpu.uuid, gpu.multiprocessors, gpu.power_limit_w, gpu.mig) == (second.uuid, 132, 700.0, False)
    assert (gpu.pcie_generation, gpu.pcie_max_generation) == (None, 5), "the link was not measured"
    assert [record.better for record in run.benchmarks] == ["higher", "lower"]
    elsewhere = assemble(told, None, asked=NO_GPUS, taken_at=1.0, subject="x", subject_id="", elsewhere="far away")
    assert (elsewhere.machine.unknown, elsewhere.machine.cpu) == ("far away", None)
    assert elsewhere.benchmarks[0].contended is None


def test_a_slice_is_known_as_one_where_the_host_tells_nothing_and_given_gpus_stand_in_for_unseen_ones() -> None:
    result = BenchResult("bench.allreduce", "B11", BenchStatus.OK, device="cuda", gpu=(0, 1), unit="GB/s", score=1.0)
    part = report(result, gpus=(SeenGpu(0, "MIG-1234", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"),))
    (gpu,) = assemble(part, None, asked=NO_GPUS, taken_at=1.0, subject="x", subject_id="").machine.gpus
    assert gpu.mig is True
    given = AskedGpus.of((AskedGpu("GPU-a", 0, "NVIDIA H200"), AskedGpu("GPU-b", 1, "NVIDIA H200")))
    both = assemble(report(result, gpus=()), None, asked=given, taken_at=1.0, subject="x", subject_id="")
    assert [each.uuid for each in both.machine.gpus] == ["GPU-a", "GPU-b"]
    one = replace(result, gpu=(0,))
    which = assemble(report(one, gpus=()), None, asked=given, taken_at=1.0, subject="x", subject_id="")
    assert which.machine.gpus == (), "it cannot be told which of the two it was"

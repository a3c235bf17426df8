"""A run of benchmarks: what one tells comes as it is told; what hangs, dies or raises costs that one alone."""

from __future__ import annotations

import signal

import pytest

from tests.payload.bench.planned import config, plan, told
from tests.payload.driving import Listener, Payload, of_type
from tests.payload.test_supervisor import processes_of

MM, MEM, LAUNCH, COMPILE = "bench.mm", "bench.mem", "bench.launch", "bench.compile"
CHILD = "subprocess.Popen(['sh', '-c', 'sleep 600; : ' + sys.argv[0]]); "
FIELDS = {
    "t", "run", "id", "code", "rev", "status", "params", "device", "gpu", "unit", "score", "stat", "values", "headline",
    "noisy", "cold_s", "peak_reserved_bytes", "began", "ended", "why", "fix",
}  # fmt: skip


def test_a_run_says_what_it_plans_what_it_finds_and_goodbye(payload: Payload) -> None:
    plan(payload, mm="", mem="")
    records = payload.run(MM, "bench.nonsense", MEM, "bench.p2p", **config())
    hello = records[0]
    assert (hello["t"], hello["mode"], hello["plan"]) == ("hello", "quick", [MM, MEM, "bench.p2p"])
    (first,) = told(records, MM)
    assert set(first) == FIELDS
    wanted = {"code": "B01", "rev": 1, "status": "ok", "params": {"a": 1}, "device": "cpu", "gpu": [], "unit": "GB/s"}
    assert first == first | wanted | {"score": 2.0, "headline": True, "noisy": False, "stat": {}, "why": ""}
    assert first["began"] <= first["ended"]
    (skipped,) = told(records, "bench.p2p")
    assert (skipped["status"], skipped["why"], skipped["headline"]) == ("skipped", "torch is a CPU build", True)
    assert [record["id"] for record in of_type(records, "measured")] == hello["plan"]
    assert [record["id"] for record in of_type(records, "progress") if record["text"] == "device memory"] == [MEM]
    facts = {name for record in of_type(records, "env") for name in record["env"]}
    assert {"cpus", "kernel", "torch", "memory_bytes"} <= facts
    assert len(of_type(records, "worker")) == 1
    assert records[-1] == records[-1] | {"t": "bye", "status": "ok", "ran": 3, "left": 0}
    assert payload.code == 0
    assert not payload.folder.exists()


def test_what_has_a_process_of_its_own_gets_one(payload: Payload) -> None:
    pid = "yield Measurement({}, score=float(os.getpid()))"
    plan(payload, mm=pid, mem=pid, compile=pid, ddp=pid)
    records = payload.run(MM, MEM, COMPILE, "bench.ddp", **config(mode="full"))
    pids = [record["score"] for record in of_type(records, "bench")]
    assert len(set(pids)) == 3
    assert pids[0] == pids[1]
    groups = [record["pgid"] for record in of_type(records, "worker")]
    assert groups == [pids[0], pids[2], pids[3]]
    assert len([record for record in of_type(records, "env") if "torch" in record["env"]]) == 1


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("raise RuntimeError('no such luck\\nand more')", "RuntimeError: no such luck"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "died of SIGSEGV"),
        ("os._exit(0)", "ended with exit code 0"),
    ],
)
def test_what_fails_keeps_what_it_told_and_the_next_still_runs(payload: Payload, action: str, why: str) -> None:
    plan(payload, mm="yield Measurement({'a': 1}, score=1.0, headline=True); " + action, mem="")
    records = payload.run(MM, MEM, **config())
    good, bad = told(records, MM)
    assert (good["status"], good["score"]) == ("ok", 1.0)
    assert bad["status"] == "error"
    assert why in bad["why"]
    assert not bad["headline"]
    assert told(records, MEM)[0]["status"] == "ok"
    assert records[-1]["status"] == "ok"


def test_what_hangs_is_ended_at_its_deadline_and_the_next_still_runs(payload: Payload) -> None:
    plan(payload, mm=CHILD + "time.sleep(600); yield", mem="")
    records = payload.run(MM, MEM, **config(options={"deadline_s": 1.0}))
    (hung,) = told(records, MM)
    assert (hung["status"], hung["why"], hung["headline"]) == ("timeout", "it did not end within 1 s", True)
    assert told(records, MEM)[0]["status"] == "ok"
    assert records[-1]["status"] == "ok"
    assert not processes_of(payload)
    assert not payload.folder.exists()


def test_the_run_as_a_whole_has_a_deadline(payload: Payload) -> None:
    plan(payload, launch="time.sleep(600); yield", mem="")
    records = payload.run(LAUNCH, MEM, **config(deadline_s=5))
    (hung,) = told(records, LAUNCH)
    assert hung["status"] == "timeout"
    assert "5 s" in hung["why"]
    assert "--only B04" in hung["fix"]
    assert not told(records, MEM)
    assert records[-1] == records[-1] | {"status": "timeout", "left": 1}
    assert payload.code == 3


def test_what_there_is_no_time_for_is_not_begun(payload: Payload) -> None:
    plan(payload, mm="time.sleep(1.0); yield Measurement({}, score=context.budget_s)", compile="", mem="")
    records = payload.run(MM, MEM, COMPILE, **config(mode="full", deadline_s=20))
    assert told(records, MM)[0]["score"] < 20  # what is left of the run, not the 30 s it would like
    (late,) = told(records, COMPILE)  # which takes 90 s
    assert late["status"] == "timeout"
    assert "of the run were left, and it takes 90" in late["why"]
    assert told(records, MEM)[0]["status"] == "ok"
    assert records[-1]["status"] == "ok"


def test_without_torch_each_says_so(payload: Payload) -> None:
    plan(payload, mm="")
    payload.module("torch", "raise OSError('libcudart.so.13: cannot open shared object file')")
    records = payload.run(MM, MEM, **config())
    assert [record["status"] for record in of_type(records, "bench")] == ["error", "error"]
    for record in of_type(records, "bench"):
        assert "libcudart.so.13" in record["why"]
        assert "gpuconsole check" in record["fix"]


def test_gpus_that_were_given_and_do_not_work_are_not_measured_on_the_cpu(payload: Payload) -> None:
    plan(payload, mm="")
    records = payload.run(MM, **config(asked=[{"uuid": "GPU-1"}], asked_count=1))
    (found,) = told(records, MM)
    assert (found["status"], found["why"]) == ("error", "torch is a CPU build, though GPUs were given")


def test_a_process_whose_cuda_is_broken_is_left_and_the_rest_runs_in_a_new_one(payload: Payload) -> None:
    pid = "yield Measurement({}, score=float(os.getpid()))"
    plan(payload, mm="context.torch.broken = True; raise RuntimeError('illegal memory access'); yield", mem=pid)
    payload.module(
        "torch",
        (payload.modules / "torch.py").read_text().replace("cuda = None", "cuda = '13.0'").replace("False", "True")
        + "\nbroken = False\n"
        + "class Zero:\n    def add_(self, other): pass\n"
        + "def zeros(*a, **k): return Zero()\n"
        + "def synchronize(device):\n    if broken: raise RuntimeError('illegal memory access')\n"
        + "cuda.synchronize, cuda.device_count, cuda.empty_cache = synchronize, lambda: 1, lambda: None\n"
        + "import types\ncuda.get_device_properties = lambda p: types.SimpleNamespace(\n"
        + "    name='H200', major=9, minor=0, total_memory=1, multi_processor_count=1)\n",
    )
    records = payload.run(MM, MEM, "bench.p2p", "bench.allreduce", **config(asked_count=1))
    assert told(records, MM)[0]["why"] == "RuntimeError: illegal memory access"
    assert told(records, MEM)[0]["status"] == "ok"
    assert told(records, MEM)[0]["device"] == "cuda"
    assert told(records, MEM)[0]["gpu"] == [0]
    first, second = of_type(records, "worker")
    assert told(records, MEM)[0]["score"] == second["pgid"] != first["pgid"]
    # With one GPU nothing is started that takes two.
    for slug in ("bench.p2p", "bench.allreduce"):
        assert (told(records, slug)[0]["status"], told(records, slug)[0]["why"]) == (
            "skipped",
            "there is one GPU, and it takes two",
        )
    assert len(of_type(records, "worker")) == 2


@pytest.mark.parametrize("how", ["input", "term"])
def test_it_ends_and_cleans_up_when_it_is_told_to_or_its_host_is_gone(payload: Payload, how: str) -> None:
    plan(payload, mm=CHILD + "context.report('deep'); time.sleep(600); yield")
    process = payload.start(MM, MEM, **config())
    listener = Listener(process)
    listener.wait_for("progress", text="deep")
    assert process.stdin is not None
    if how == "input":
        process.stdin.close()
    else:
        process.send_signal(signal.SIGTERM)
    assert listener.wait_for("bye")["status"] == "cancelled"
    assert listener.end() == 3
    assert not payload.folder.exists()
    assert not processes_of(payload)

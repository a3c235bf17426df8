"""B08: what ``torch.compile`` gains, and what it takes: with an empty cache, and in a new process with a full one.

It runs in processes of its own that never set TF32 (setting it by the newer names breaks the compiler of some
versions), and with caches in our own folder, so that the first compilation is a cold one and nothing is left behind.
"""

from __future__ import annotations

import os
import tempfile
import time
from importlib import import_module
from typing import Any, Callable, Iterator

from gpuconsole.probes.payload.bench import data, model
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import OK, TIMEOUT, Measurement
from gpuconsole.probes.payload.bench.ranks import RanksFailed, RanksLate, run_ranks
from gpuconsole.probes.payload.bench.timing import Timing, rounded, timed
from gpuconsole.probes.payload.bench.world import World
from gpuconsole.probes.payload.outcome import first_line

HEADLINE = {"case": "block", "mode": "default"}
_TOLERANCES = {"float32": 1e-4, "bfloat16": 2e-2, "float16": 2e-2}
_LINKS, _BATCHES = 4, 8
_SLICE = 1 / 30
"""Of the budget, for each thing that is timed."""
CASES = ("chain", "block")
_SHARES = {"cold": 0.7, "warm": 0.3}
"""What each process may take at most, of the time they are waited for."""
_CAUSES = (
    (("Failed to find C compiler", "InvalidCxxCompiler", "No working C++ compiler"), "the image has no compiler"),
    (("Python.h",), "the image has no Python headers (Python.h)"),
    (("failed to map segment",), "what is compiled must not be run: its folder is mounted noexec"),
    (("too old to be supported",), "this GPU is too old for Triton"),
    (("working triton", "TritonMissing", "No module named 'triton'"), "the image has no working Triton"),
    (("not supported on Python", "not yet supported for"), "this torch does not compile on this Python"),
)


def run(context: BenchContext) -> Iterator[Measurement]:
    """Compile and measure with an empty cache; then compile once more in a new process."""
    if not hasattr(context.torch, "compile"):
        yield Measurement.skipped(dict(HEADLINE), "torch {} has no torch.compile".format(context.torch.__version__))
        return
    modes = ("default", "reduce-overhead") if context.cuda else ("default",)
    wanted = [(case, mode) for case in CASES for mode in modes]
    with tempfile.TemporaryDirectory(prefix="compiled-", dir=context.folder) as caches:
        environment = {
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(caches, "inductor"),
            "TRITON_CACHE_DIR": os.path.join(caches, "triton"),
            "TMPDIR": caches,  # where headers are compiled to, wherever the cache is
        }
        compiled = []
        for measurement in _stage(context, "cold", wanted, environment):
            if measurement.status == OK:
                compiled.append((measurement.params["case"], measurement.params["mode"]))
            yield measurement
        if compiled:
            yield from _stage(context, "warm", compiled, environment)


def _stage(
    context: BenchContext, stage: str, wanted: list[tuple[str, str]], environment: dict[str, str]
) -> Iterator[Measurement]:
    """One process that compiles what is ``wanted``, and its records as measurements."""
    records = run_ranks(
        "compile:rank",
        {
            "stage": stage,
            "wanted": wanted,
            "slice_s": context.option("slice_s", context.budget_s * _SLICE),
            "backend": context.option("backend", "inductor"),
        },
        archive=context.archive,
        folder=context.folder,
        count=1,
        device="cuda" if context.cuda else "cpu",
        timeout_s=_SHARES[stage] * context.patience_s,
        group=False,
        environment=environment,
    )
    left = list(wanted)
    try:
        for record in records:
            if record["t"] == "at":
                context.report(record["text"])
            else:
                left = left[1:]
                yield measurement_of(record, cuda=context.cuda)
    except (RanksFailed, RanksLate) as error:
        for case, mode in left:
            params = params_of(case, mode, stage)
            if isinstance(error, RanksLate):
                measurement = Measurement(params, status=TIMEOUT, why=str(error))
            else:
                measurement = Measurement.failed(params, error)
            measurement.headline = params == HEADLINE
            yield measurement


def params_of(case: str, mode: str, stage: str) -> dict[str, Any]:
    """What tells the records apart; those of the second process tell seconds, not speed-ups."""
    params = {"case": case, "mode": mode}
    if stage == "warm":
        params["cache"] = "warm"
    return params


def measurement_of(record: dict[str, Any], *, cuda: bool) -> Measurement:
    """The measurement that a process's record amounts to."""
    params = params_of(record["case"], record["mode"], record["stage"])
    gpu = [0] if cuda else []
    if record.get("why"):
        cause = cause_of(record["why"])
        measurement = (
            Measurement.skipped(params, cause, gpu=gpu) if cause else Measurement(params, status="error", gpu=gpu)
        )
        measurement.why = cause or record["why"]
    elif record.get("wrong"):
        measurement = Measurement.wrong(params, record["wrong"], gpu=gpu)
    else:
        measurement = Measurement(params, unit=record["unit"], score=record["score"], values=record["values"], gpu=gpu)
        measurement.stat, measurement.noisy = record["stat"], record["noisy"]
        measurement.cold_s = record["compile_s"]
    measurement.began, measurement.ended = record["began"], record["ended"]
    measurement.peak_reserved_bytes = record.get("peak_reserved_bytes")
    measurement.headline = params == HEADLINE
    return measurement


def cause_of(text: str) -> str:
    """Why nothing can be compiled here, as a phrase; empty when ``text`` tells of something else."""
    for words, cause in _CAUSES:
        if any(word in text for word in words):
            return cause
    return ""


def rank(world: World, told: dict[str, Any]) -> None:
    """Compile each case in each mode, and tell how it went."""
    makers = {"chain": chain, "block": block}
    cases: dict[str, Case] = {}
    for name, mode in told["wanted"]:
        world.emit("at", text="compiling the {}, {}, {} cache".format(name, mode, told["stage"]))
        began = time.time()
        try:
            if name not in cases:
                cases[name] = Case(world.torch, world.device, makers[name])
            facts = cases[name].warm(mode, told) if told["stage"] == "warm" else cases[name].cold(mode, told)
        except Exception as error:
            facts = {"why": "{}: {}".format(type(error).__name__, telling_line(error))}
        facts["peak_reserved_bytes"] = world.peak_reserved_bytes()
        world.emit("case", case=name, mode=mode, stage=told["stage"], began=began, ended=time.time(), **facts)


def telling_line(error: BaseException) -> str:
    """The line of a compiler's error that names its cause, else its first."""
    for line in str(error).splitlines():
        if cause_of(line):
            return first_line(line)
    return first_line(error)


class Case:
    """A piece of a network, to be run eager and compiled.

    Args:
        torch: The module.
        device: Where it runs.
        make: Makes the piece and its input.
    """

    def __init__(self, torch: Any, device: str, make: Callable[[Any, str, Any], tuple[Any, Any]]) -> None:
        self._torch = torch
        self._device = device
        self._dtype = dtype_for(torch, device)
        torch.manual_seed(0)
        self._piece, self._inputs = make(torch, device, self._dtype)
        self._gradient = data.random_matrix(
            torch, tuple(self._inputs.shape), self._dtype, device=device, generator=data.seeded(torch, device)
        )
        self._eager: Timing | None = None
        self._wanted: tuple[Any, Any] = self._outcome(self._piece)

    def cold(self, mode: str, told: dict[str, Any]) -> dict[str, Any]:
        """Time it eager and compiled."""
        compiled, compile_s, wrong = self._compile(mode, told["backend"])
        if wrong:
            return {"wrong": wrong}
        if self._eager is None:
            self._eager = self._time(self._piece, told["slice_s"])
        timing = self._time(compiled, told["slice_s"])
        return {
            "unit": "x",
            "score": round(self._eager.median_ms / timing.median_ms, 4),
            "stat": timing.stat(),
            "noisy": timing.noisy or self._eager.noisy,
            "compile_s": round(compile_s, 3),
            "values": {
                "eager_ms": rounded(self._eager.median_ms),
                "compiled_ms": rounded(timing.median_ms),
                "cold_compile_s": round(compile_s, 3),
            },
        }

    def warm(self, mode: str, told: dict[str, Any]) -> dict[str, Any]:
        """Compile it again in this new process, with what the one before left in the cache."""
        _, took, wrong = self._compile(mode, told["backend"])
        if wrong:
            return {"wrong": wrong}
        told = {"unit": "s", "stat": {}, "noisy": False, "values": {"warm_compile_s": round(took, 3)}}
        return dict(told, score=round(took, 3), compile_s=round(took, 3))

    def _compile(self, mode: str, backend: str) -> tuple[Any, float, str]:
        """The compiled piece, the seconds of its first pass less those of an eager one, and what is wrong with it."""
        self._outcome(self._piece)
        eager_s = -time.perf_counter()
        self._outcome(self._piece)
        eager_s += time.perf_counter()
        import_module("torch._dynamo").reset()
        options = {} if mode == "default" else {"mode": mode}
        compiled = self._torch.compile(self._piece, backend=backend, **options)
        begun = time.perf_counter()
        got = self._outcome(compiled)
        compile_s = max(0.0, time.perf_counter() - begun - eager_s)
        tolerance = _TOLERANCES[str(self._dtype).split(".")[-1]]
        for name, mine, other in zip(("output", "gradient"), got, self._wanted):
            error = float((mine - other).norm() / other.norm())
            if not error <= tolerance:  # not a number is not either
                return compiled, compile_s, "the {} compiled is off by {:.0e} from eager".format(name, error)
        return compiled, compile_s, ""

    def _pass(self, piece: Any) -> Any:
        compiler = getattr(self._torch, "compiler", None)
        if hasattr(compiler, "cudagraph_mark_step_begin"):
            compiler.cudagraph_mark_step_begin()
        self._inputs.grad = None
        for parameter in self._piece.parameters():
            parameter.grad = None
        output = piece(self._inputs)
        output.backward(self._gradient)
        return output

    def _outcome(self, piece: Any) -> tuple[Any, Any]:
        """Output and gradient of its input, in float32 and copied, since a graph would overwrite them."""
        output = self._pass(piece).detach().float().clone()
        gradient = self._inputs.grad.float().clone()
        if self._device != "cpu":
            self._torch.cuda.synchronize(self._device)
        return output, gradient

    def _time(self, piece: Any, slice_s: float) -> Timing:
        return timed(
            self._torch, lambda: self._pass(piece), device=self._device, min_s=slice_s, heat_s=slice_s / 2, inner=0
        )


def dtype_for(torch: Any, device: str) -> Any:
    """What models are trained in there."""
    if device == "cpu":
        return torch.float32
    return torch.bfloat16 if torch.cuda.get_device_capability(device)[0] >= 8 else torch.float16


def chain(torch: Any, device: str, dtype: Any) -> tuple[Any, Any]:
    """A norm, a nonlinearity and a short cut, several times: all of it is memory traffic that fusing saves."""
    rows, width = (64, 256) if device == "cpu" else _shape(torch, device)
    nn = torch.nn

    class Link(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)

        def forward(self, features: Any) -> Any:
            return features + nn.functional.gelu(self.norm(features))

    piece = nn.Sequential(*(Link() for _ in range(1 if device == "cpu" else _LINKS))).to(device, dtype)
    return piece, _inputs(torch, (rows, width), dtype, device)


def _shape(torch: Any, device: str) -> tuple[int, int]:
    rows, width = 8192, 4096
    # Every link keeps its input, norm and output for the way back.
    data.need(torch, device, rows * width * 2 * 6 * _LINKS)
    return rows, width


def block(torch: Any, device: str, dtype: Any) -> tuple[Any, Any]:
    """One block of the decoder that is trained elsewhere."""
    size = model.TINY if device == "cpu" else model.MEDIUM
    batch = size.batch * (1 if device == "cpu" else _BATCHES)  # a small one is over before the next kernel is sent
    piece = model.Block(size.width, size.heads).to(device, dtype)
    return piece, _inputs(torch, (batch, size.sequence, size.width), dtype, device)


def _inputs(torch: Any, shape: tuple[int, ...], dtype: Any, device: str) -> Any:
    generator = data.seeded(torch, device)
    return data.random_matrix(torch, shape, dtype, device=device, generator=generator).requires_grad_()

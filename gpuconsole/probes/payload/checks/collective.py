"""C13: an all-reduce over all GPUs by NCCL gives the exact sum; over two processes of the CPU by gloo without GPUs."""

from __future__ import annotations

import glob
import os
import time
from typing import Any

from gpuconsole.probes.payload import apart
from gpuconsole.probes.payload.cards import is_full, no_room
from gpuconsole.probes.payload.child import MORE_PROCESSES, NO_PROCESS, died_of
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, WARN, Context, Outcome, count_of, first_line
from gpuconsole.probes.payload.parts import reduced

LIMIT_S = 60.0
"""From the start of the ranks, which import torch first."""
RETRY_S = 30.0
CPU_RANKS = 2
_MOMENT_S = 3.0
_PART = "reduced"
_P2P = "NCCL_P2P_DISABLE"
_SHM = "Launch it again with --shm-size 8g or --ipc host; NCCL passes data through shared memory."
_SEGMENTS = "/dev/shm/nccl-*"  # noqa: S108


class Attempt:
    """The ranks of one all-reduce.

    Args:
        context: Of the worker.
        back_end: ``nccl`` or ``gloo``.
        world: How many ranks.
        environment: Variables for them alone.
    """

    def __init__(self, context: Context, back_end: str, world: int, **environment: str) -> None:
        self.back_end = back_end
        self.world = world
        self._segments = set(glob.glob(_SEGMENTS))
        store = os.path.join(str(context.config["folder"]), "store-{}-{}".format(os.getpid(), time.monotonic_ns()))
        told = [
            {"rank": rank, "world": world, "back_end": back_end, "store": store, "timeout_s": LIMIT_S}
            for rank in range(world)
        ]
        self.begun = time.monotonic()
        if back_end == "nccl":
            if "NCCL_DEBUG" not in os.environ:
                environment["NCCL_DEBUG"] = "WARN"
            archive = str(context.config["archive"])
            self.ranks = [apart.start(_PART, one, archive=archive, environment=environment) for one in told]
        else:
            self.ranks = [apart.fork(lambda one=one: _forked(one)) for one in told]  # type: ignore[misc]

    def finish(self, limit_s: float) -> dict[str, Any]:
        """Wait for all ranks, end those that are late, and give what they told together."""
        until = self.begun + limit_s
        late = []
        while True:
            late = [rank for rank, process in enumerate(self.ranks) if process.exit_code is None]
            if not late or time.monotonic() >= until:
                break
            if any(process.wait(0.0) and "exact" not in process.told for process in self.ranks):
                # The others wait for one that is gone; they have a moment to say what they saw.
                until = min(until, time.monotonic() + _MOMENT_S)
            time.sleep(0.05)
        for process in self.ranks:
            process.kill()
        told = [process.told for process in self.ranks]
        self._remove_segments()
        failures = [(rank, one) for rank, one in enumerate(told) if one.get("failure")]
        silent = [rank for rank, one in enumerate(told) if "exact" not in one and not one.get("failure")]
        words = "\n".join(str(one.get("text") or "") for _, one in failures)
        return {
            "back_end": self.back_end,
            "ranks": self.world,
            "version": next((one["version"] for one in told if one.get("version")), None),
            "exact": [one.get("exact") for one in told],
            "late": late,
            "stages": [one.get("stage") for one in told],
            "failure": failures[0][1]["failure"] if failures else None,
            "exit_codes": [process.exit_code for process in self.ranks],
            "died": [rank for rank in silent if rank not in late],
            "words": "\n".join([words] + [process.stray for process in self.ranks])[-4000:],
            "seconds": round(time.monotonic() - self.begun, 2),
        }

    def _remove_segments(self) -> None:
        """Remove what ended ranks have left in shared memory: new, ours, and mapped by nobody."""
        for path in set(glob.glob(_SEGMENTS)) - self._segments:
            try:
                if os.stat(path).st_uid == os.getuid() and not _mapped(path):
                    os.unlink(path)
            except OSError:
                pass


def _mapped(path: str) -> bool:
    for maps in glob.glob("/proc/[0-9]*/maps"):
        try:
            with open(maps, encoding="utf-8", errors="replace") as file:
                if path in file.read():
                    return True
        except OSError:
            continue
    return False


def _forked(told: dict[str, Any]) -> None:
    reduced.main(told)


def begin(context: Context) -> None:
    """Start the ranks where they are whole processes: one a GPU."""
    if context.cuda and _nccl(context.torch) and context.statuses.get("check.kernel") != FAIL:
        context.apart[_PART] = Attempt(context, "nccl", int(context.torch.cuda.device_count()))


def _nccl(torch: Any) -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_nccl_available())


def run(context: Context) -> Outcome:
    """Wait for the sum; where it does not come, try once without direct traffic between GPUs to name the cause."""
    try:
        return _summed(context)
    except OSError as error:
        return Outcome(WARN, NO_PROCESS.format(error.strerror or error), MORE_PROCESSES)


def _summed(context: Context) -> Outcome:
    torch = context.torch
    if not torch.distributed.is_available():
        return Outcome(SKIP, "this torch is built without distributed training")
    if not context.cuda:
        context.report("{} processes on the CPU".format(CPU_RANKS))
        return _concluded(Attempt(context, "gloo", CPU_RANKS).finish(RETRY_S))
    if not _nccl(torch):
        count = int(torch.cuda.device_count())
        status = WARN if count > 1 else SKIP
        return Outcome(status, "this torch is built without NCCL", "Take an official build of torch for Linux.")
    if _PART not in context.apart:
        begin(context)
    if _PART not in context.apart:
        return Outcome(SKIP, "kernels do not run", "See check.kernel.")
    first: Attempt = context.apart.pop(_PART)
    context.report("{} by NCCL".format(count_of(first.world, "GPU")))
    result = first.finish(LIMIT_S)
    again = None
    if first.world > 1 and not worked(result) and not _known(result) and _P2P not in os.environ:
        context.report("again, without direct traffic between GPUs")
        again = Attempt(context, "nccl", first.world, **{_P2P: "1"}).finish(RETRY_S)
    return _concluded(result, again)


def _concluded(result: dict[str, Any], again: dict[str, Any] | None = None) -> Outcome:
    outcome = judge(result, again)
    outcome.value = {name: item for name, item in result.items() if name != "words"}
    outcome.value["worked_without_p2p"] = None if again is None else worked(again)
    return outcome


def worked(result: dict[str, Any]) -> bool:
    """Every rank has the exact sum."""
    return all(exact is True for exact in result["exact"])


def _known(result: dict[str, Any]) -> bool:
    """Its words name a cause that has nothing to do with direct traffic."""
    return is_full(result["words"]) or _lacks_shm(result["words"])


def _lacks_shm(words: str) -> bool:
    return "/dev/shm" in words and any(part in words for part in ("No space left", "extend", "Error while"))  # noqa: S108


def judge(result: dict[str, Any], again: dict[str, Any] | None) -> Outcome:
    """The outcome for the ranks' results, and for those of a second try without direct traffic."""
    on_cpu = result["back_end"] == "gloo"
    who = "{} of the CPU".format(count_of(result["ranks"], "process").replace("processs", "processes"))
    who = who if on_cpu else count_of(result["ranks"], "GPU")
    by = "gloo" if on_cpu else "NCCL" + (" {}".format(result["version"]) if result["version"] else "")
    if worked(result):
        end = " (no GPU took part)" if on_cpu else ""
        return Outcome(OK, "the sum over {} by {} is exact{}".format(who, by, end))
    status = WARN if on_cpu or result["ranks"] == 1 else FAIL
    if False in result["exact"]:
        fix = "Run it again; if it stays so, test the cards and their links with dcgmi diag."
        return Outcome(FAIL, "the sum over {} by {} is wrong".format(who, by), fix)
    if is_full(result["words"]):
        return no_room("a GPU")
    if _lacks_shm(result["words"]):
        return Outcome(status, "{} over {} fails: /dev/shm is too small".format(by, who), _SHM)
    what = _what(result)
    if again is not None and worked(again):
        why = "{} over {} {}, and works without direct traffic between them".format(by, who, what)
        fix = "Turn off the IOMMU or ACS of the host, or set {}=1 in the container.".format(_P2P)
        return Outcome(status, why, fix)
    fix = "Set NCCL_DEBUG=INFO in the container and run it again: the last lines name the step."
    if on_cpu:
        fix = "Look whether the container can resolve its own name: getent hosts $(hostname)."
    if _killed(result):
        fix = died_of(result["exit_codes"][result["died"][0]])[1]
    return Outcome(status, "{} over {} {}".format(by, who, what), fix)


def _what(result: dict[str, Any]) -> str:
    if result["failure"]:
        return "fails: {}".format(first_line(result["failure"]))
    if result["died"]:
        rank = result["died"][0]
        if _killed(result):
            return "fails: rank {} {}".format(rank, died_of(result["exit_codes"][rank])[0])
        return "dies in rank {}: {}".format(rank, first_line(_last(result["words"])) or "without a word")
    return "hangs: rank {} after {}".format(result["late"][0], result["stages"][result["late"][0]] or "its start")


def _killed(result: dict[str, Any]) -> bool:
    """The first rank that died did so by a signal."""
    return bool(result["died"]) and (result["exit_codes"][result["died"][0]] or 0) < 0


def _last(words: str) -> str:
    lines = [line for line in words.splitlines() if line.strip()]
    return lines[-1] if lines else ""

"""The worker: imports torch, runs the checks one after the other, and tells the supervisor."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import Any

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.checks import host_memory
from gpuconsole.probes.payload.outcome import FAIL, SKIP, Context, Outcome, first_line
from gpuconsole.probes.payload.plan import BY_SLUG, CHECKS, Check
from gpuconsole.probes.payload.stream import Emitter

_PROCESS_BYTES = 2 << 30
"""What a process with torch and CUDA may take of the host's memory."""


def work(config: dict[str, Any]) -> int:
    """Run ``config["checks"]`` in order; records go to the descriptor ``config["fd"]``."""
    die_with_parent()
    fd = int(config["fd"])
    os.set_inheritable(fd, False)
    out = Emitter(fd, str(config.get("run", "")))
    current = [""]

    def report(text: str, begin: bool = False) -> None:
        out.emit("progress", id=current[0], text=text, begin=begin)

    context = Context(config, report, lambda facts: out.emit("env", env=facts))
    if not context.statuses:
        context.environment(environment.of_container(context.workdir))
    elif config.get("torch_imported"):
        _import_again(context)
    for slug in config["checks"]:
        check = BY_SLUG[slug]
        current[0] = slug
        report(check.title, begin=True)
        begun = time.monotonic()
        _begin_early(slug, config["checks"], context)
        outcome = _run(check, context)
        context.statuses[slug] = outcome.status
        out.emit(
            "check",
            id=slug,
            status=outcome.status,
            why=outcome.why,
            fix=outcome.fix,
            value=outcome.value,
            s=round(time.monotonic() - begun, 3),
        )
    sys.stdout.flush()
    return 0


def _run(check: Check, context: Context) -> Outcome:
    """The check's outcome; one that raises has failed."""
    for needed in check.needs:
        if not (context.cuda if needed == "cuda" else context.torch is not None):
            return _without(needed, context)
    try:
        return check.load()(context)
    except Exception as error:
        why = "it cannot be told whether {}: {}: {}".format(check.title, type(error).__name__, first_line(error))
        fix = "This is not expected: what it wrote last may tell why."
        return Outcome(FAIL, why, fix, {"error": type(error).__name__})


def _begin_early(slug: str, planned: list[str], context: Context) -> None:
    """Begin what is slow and shall go on beside ``slug`` and those after it."""
    for check in CHECKS:
        if check.early and check.beside == slug and check.slug in planned and _has_room(context):
            try:
                check.load(check.early)(context)
            except Exception as error:
                # It is tried again when its turn comes, and what is wrong is told there.
                sys.stderr.write("{} cannot begin early: {}\n".format(check.slug, first_line(error)))


def _has_room(context: Context) -> bool:
    """Torch is there, and memory for it in several processes at a time; else they take turns."""
    if context.torch is None:
        return False
    rest = host_memory.now_available()
    processes = 2 + (int(context.torch.cuda.device_count()) if context.cuda else 0)
    return rest is None or rest >= processes * _PROCESS_BYTES


def _without(needed: str, context: Context) -> Outcome:
    if needed == "torch":
        return Outcome(SKIP, "torch cannot be imported")
    if context.torch is not None and context.torch.version.cuda is None:
        return Outcome(SKIP, "torch is a CPU build")
    return Outcome(SKIP, "CUDA does not start" if context.wants_gpu else "no GPU was given")


def _import_again(context: Context) -> None:
    """Torch for the rest of the checks, in a worker that takes over from one that was ended."""
    try:
        import torch

        context.torch = torch
    except Exception as error:
        # It went well the first time. What stands on it is skipped, and the note tells why.
        sys.stderr.write("torch cannot be imported again: {}\n".format(first_line(error)))


def die_with_parent() -> None:
    """Have the kernel end us when the supervisor ends, however it does."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError, ValueError):
        pass

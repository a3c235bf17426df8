"""Start of the payload: ``supervise``, ``work``, ``rank`` and ``part NAME`` with a CONFIG, or ``driver``."""

from __future__ import annotations

import json
import sys
from typing import Any


def main(arguments: list[str] | None = None) -> int:
    """Run what the first argument names and return the exit code."""
    argv = sys.argv[1:] if arguments is None else arguments
    mode = argv[0] if argv else ""
    if mode == "driver":
        from gpuconsole.probes.payload.libcuda import ask

        sys.stdout.write(json.dumps(ask()) + "\n")
        return 0
    if mode == "rank":
        from gpuconsole.probes.payload.bench.ranks import serve

        return serve(json.loads(argv[1]))
    if mode == "part":
        return _part(argv[1], json.loads(argv[2]))
    if mode in ("work", "supervise"):
        config = json.loads(argv[1])
        return _benchmarks(mode, config) if config.get("kind") == "bench" else _checks(mode, config)
    sys.stderr.write("this archive is a part of gpuconsole and is started by it\n")
    return 2


def _part(name: str, config: dict[str, Any]) -> int:
    from importlib import import_module

    from gpuconsole.probes.payload.worker import die_with_parent

    die_with_parent()
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")  # where memory runs out, a part shall go and not the worker that tells of it
    except OSError:
        pass
    return int(import_module("gpuconsole.probes.payload.parts." + name).main(config))


def _checks(mode: str, config: dict[str, Any]) -> int:
    if mode == "work":
        from gpuconsole.probes.payload.worker import work

        return work(config)
    from gpuconsole.probes.payload.supervisor import Supervisor

    return Supervisor(config).run()


def _benchmarks(mode: str, config: dict[str, Any]) -> int:
    if mode == "work":
        from gpuconsole.probes.payload.benchworker import work

        return work(config)
    from gpuconsole.probes.payload.benchsupervisor import BenchSupervisor

    return BenchSupervisor(config).run()

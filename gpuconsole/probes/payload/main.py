"""Start of the payload: ``supervise CONFIG``, ``work CONFIG`` or ``driver``."""

from __future__ import annotations

import json
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run what the first argument names and return the exit code."""
    argv = sys.argv[1:] if arguments is None else arguments
    mode = argv[0] if argv else ""
    if mode == "driver":
        from gpuconsole.probes.payload.libcuda import ask

        sys.stdout.write(json.dumps(ask()) + "\n")
        return 0
    if mode == "work":
        from gpuconsole.probes.payload.worker import work

        return work(json.loads(argv[1]))
    if mode == "supervise":
        from gpuconsole.probes.payload.supervisor import Supervisor

        return Supervisor(json.loads(argv[1])).run()
    sys.stderr.write("this archive is a part of gpuconsole and is started by it\n")
    return 2

"""The doctor: gather what the host rules look at, and ask them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from gpuconsole.core.errors import ConsoleError, GpuNotFound
from gpuconsole.core.text import plain_line
from gpuconsole.diagnose.finding import Finding
from gpuconsole.diagnose.host_rules import HostFacts, Wiring, examine
from gpuconsole.engine.docker.unreachable import engine_installed
from gpuconsole.engine.model import EngineInfo
from gpuconsole.host.cdi import DEFAULT_DIRS
from gpuconsole.host.facts import launch_facts
from gpuconsole.host.machine import disk_space, read_machine
from gpuconsole.launch.gpupath import choose_gpu_path
from gpuconsole.services.session import Session


def examine_host(session: Session) -> tuple[HostFacts, tuple[Finding, ...]]:
    """Look at this machine and its engine; whatever is missing is a finding, never an error."""
    info: EngineInfo | None = None
    error: ConsoleError | None = None
    endpoint = ""
    try:
        endpoint = session.endpoint.url
        info = session.engine.info()
    except ConsoleError as failure:
        error = failure
    facts = HostFacts(
        machine=read_machine(),
        gpus=session.gpus.snapshot(details=True),
        engine=info,
        engine_error=error,
        endpoint=endpoint,
        wiring=None if info is None else _wiring(info),
        disk=_disk(info),
        engine_installed=engine_installed(),
        tmux=_tmux_version(),
    )
    return facts, examine(facts)


def _wiring(info: EngineInfo) -> Wiring:
    try:
        route = choose_gpu_path(info, launch_facts(cdi_dirs=info.cdi_spec_dirs or DEFAULT_DIRS))
    except GpuNotFound as none:
        return Wiring(path=None, reason=none.message, fix=none.hint)
    return Wiring(path=route.path.value, reason=route.reason)


def _disk(info: EngineInfo | None) -> tuple[str, int, int] | None:
    if info is None or not info.local or not info.root_dir or not Path(info.root_dir).is_absolute():
        return None
    space = disk_space(info.root_dir)
    return None if space is None else (info.root_dir, *space)


def _tmux_version() -> str | None:
    program = shutil.which("tmux")
    if program is None:
        return None
    try:
        answer = subprocess.run([program, "-V"], capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return plain_line(answer.stdout) or "tmux"

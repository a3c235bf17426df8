"""The words of a check where there is no container: what was seen and what to do, on this machine itself."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from gpuconsole.probes.records import CheckResult

_OF_CONTAINERS = re.compile(r"\b(?:containers?|launch(?:ed)?|images?)\b", re.IGNORECASE)
_DOCTOR = "'gpuconsole doctor' looks at the driver and the GPUs, and says what to do."
_INSTALL_AGAIN = "Install it again: {python} -m pip install --force-reinstall torch"
_LARGER_SHM = "Make it larger: sudo mount -o remount,size=8g /dev/shm"
_BUILDS = "https://pytorch.org/get-started/locally has the line for each"

_ANYWHERE = (
    ("memory ran out", "Most often memory ran out: free some of it."),
    ("more shared memory", _LARGER_SHM),
    ("limit of processes", "Raise your limit of processes: ulimit -u."),
    ("another processor", f"This torch was built for another processor: {_BUILDS}."),
    ("Give it more time", "Give it more time by --timeout; something in it is stuck."),
    ("Run the check again", "Run the check again."),
)
"""Words of a remedy that any check may have for a container, and the remedy here."""
_REMEDIES: dict[str, tuple[tuple[str, str], ...]] = {
    "check.torch": (
        ("there is no torch", "Activate the environment that has it, or install it: {python} -m pip install torch"),
        ("without a driver", _DOCTOR),
        ("cannot use the", f"Install a CUDA build of torch for {{python}}: {_BUILDS}."),
        ("older than", "Install a newer one: {python} -m pip install --upgrade torch"),
        ("is slow", "Look at the disk it is installed on: it may be busy."),
        ("", _INSTALL_AGAIN),
    ),
    "check.driver": (("", "Update the driver, or install a torch of an older CUDA."),),
    "check.kernel": (("", f"Install a build of torch that knows this card: {_BUILDS}."),),
    "check.numerics": (("", f"{_INSTALL_AGAIN} – and if it stays so, test the machine's memory."),),
    "check.gpu-pattern": (("", "Take that card out of use, and test it with dcgmi diag -r 3."),),
    "check.cudnn": (("", _INSTALL_AGAIN),),
    "check.attention": (("only plain", "Install a newer torch."), ("", _INSTALL_AGAIN)),
    "check.amp": (("", _INSTALL_AGAIN),),
    "check.limits": (
        ("files", "Raise the limit of open files: ulimit -n 65536."),
        ("", "Raise them in /etc/security/limits.conf: memlock and stack."),
    ),
    "check.host-memory": (("", "End what fills the memory."),),
    "check.cpu": (("NUMA", "Start it beside its GPU: numactl --cpunodebind."), ("", "Free some processors.")),
    "check.clock": (("zone", "Install tzdata, or unset TZ."),),
    "check.compile": (
        ("compiler", "Install gcc and g++: sudo apt-get install build-essential."),
        ("Python.h", "Install the headers of this Python: sudo apt-get install python3-dev."),
        ("libcuda", "Run sudo ldconfig."),
        ("no name", "Set USER, or TORCHINDUCTOR_CACHE_DIR."),
        ("", "Set TORCHINDUCTOR_CACHE_DIR to a folder that can be written."),
    ),
    "check.all-reduce": (
        ("too small", _LARGER_SHM),
        ("direct traffic", "Turn off the IOMMU or ACS in the firmware, or set NCCL_P2P_DISABLE=1."),
        ("gloo", "Look whether this machine can resolve its own name: getent hosts $(hostname)."),
        ("", "Set NCCL_DEBUG=INFO and run it again: the last lines name the step."),
    ),
    "check.shm": (("", _LARGER_SHM),),
    "check.workspace": (("temporary", "Make /tmp writable."), ("", "Run it in a folder that you may write and keep.")),
    "check.environment": (("", "Unset that variable."),),
    "check.delivery": (("", "Make /tmp writable, and make room in it."),),
    "check.python": (("", "Run gpuconsole with a Python of 3.8 or newer that has torch."),),
}
"""Check → words of what was seen, and the remedy then; the empty ones hold for the rest."""


def on_this_machine(result: CheckResult, python: str) -> CheckResult:
    """``result`` in words that hold where there is no container.

    Args:
        result: As for a container.
        python: The interpreter that was checked.
    """
    why = result.why.replace(" in the container", " here").replace("the container", "this machine")
    if not _OF_CONTAINERS.search(result.fix):
        return replace(result, why=why)
    anywhere = [remedy for words, remedy in _ANYWHERE if words in result.fix]
    here = [remedy for words, remedy in _REMEDIES.get(result.id, ()) if words in why]
    fix = [*anywhere, *here, _DOCTOR][0]
    return replace(result, why=why, fix=fix.format(python=shlex.quote(python)))

"""The checks, in the order they run: each with its name, its code and how long it may take."""

from __future__ import annotations

from importlib import import_module
from typing import Callable

from gpuconsole.probes.payload.outcome import Context, Outcome

_HOME = "gpuconsole.probes.payload.checks."
_STUCK = (
    "something is stuck",
    "Restart the container; if it stays so, look at the driver and the disk of the host.",
)
_DRIVER_STUCK = (
    "the driver does not answer",
    "Look at gpuconsole doctor and at the kernel log; the host may have to be restarted.",
)
_DISK_STUCK = (
    "the disk does not answer",
    "Look at the disk under the folder: a network mount may have lost its server.",
)
_IMPORT_STUCK = ("the import does not come to its end", "Look at the disk under the image, and at what it wrote last.")


class Check:
    """One check.

    Args:
        slug: Its name, ``check.shm``.
        code: Its code in the suite, ``C15``.
        title: What it asks, as the end of "whether …".
        where: ``module:function`` under ``checks``; imported when it runs.
        deadline_s: After so many seconds it is ended and has failed.
        needs: ``torch`` (it can be imported), ``cuda`` (it works); the check is skipped without them.
        stuck: What it means, with a remedy, when it does not end.
    """

    def __init__(
        self,
        slug: str,
        *,
        code: str,
        title: str,
        where: str,
        deadline_s: float,
        needs: str = "",
        stuck: tuple[str, str] = _STUCK,
    ) -> None:
        self.slug = slug
        self.code = code
        self.title = title
        self.where = where
        self.deadline_s = deadline_s
        self.needs = tuple(needs.split())
        self.stuck = stuck

    @property
    def process(self) -> str:
        """Its process, for a sentence."""
        return "the process that looked whether {}".format(self.title)

    def load(self) -> Callable[[Context], Outcome]:
        """The function that runs it."""
        module, _, function = self.where.partition(":")
        loaded: Callable[[Context], Outcome] = getattr(import_module(_HOME + module), function)
        return loaded


CHECKS = (
    Check(
        "check.torch",
        code="C01",
        title="torch can be imported",
        where="torch_build:run",
        deadline_s=90.0,
        stuck=_IMPORT_STUCK,
    ),
    Check(
        "check.cuda-available",
        code="C02",
        title="CUDA starts",
        where="available:run",
        deadline_s=45.0,
        needs="torch",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.devices",
        code="C02",
        title="GPUs seen are those given",
        where="devices:run",
        deadline_s=20.0,
        needs="torch",
    ),
    Check(
        "check.driver",
        code="C03",
        title="the driver fits the CUDA of torch",
        where="driver:run",
        deadline_s=20.0,
        needs="torch",
    ),
    Check(
        "check.gpu-memory",
        code="C17",
        title="GPU memory is free",
        where="gpu_memory:run",
        deadline_s=30.0,
        needs="torch cuda",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.kernel",
        code="C04",
        title="kernels run on every GPU",
        where="kernel:run",
        deadline_s=45.0,
        needs="torch cuda",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.numerics",
        code="C05",
        title="results are right",
        where="numerics:run",
        deadline_s=60.0,
        needs="torch",
    ),
    Check(
        "check.shm",
        code="C15",
        title="shared memory is large enough",
        where="shm:run",
        deadline_s=60.0,
    ),
    Check(
        "check.workspace",
        code="C20",
        title="work can be saved",
        where="workspace:run",
        deadline_s=30.0,
        stuck=_DISK_STUCK,
    ),
    Check(
        "check.environment",
        code="C25",
        title="no variable sets a trap",
        where="traps:run",
        deadline_s=10.0,
    ),
)
BY_SLUG = {check.slug: check for check in CHECKS}

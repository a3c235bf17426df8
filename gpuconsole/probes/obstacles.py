"""Why checks could not be started or broke off, in words."""

from __future__ import annotations

from collections.abc import Sequence

from gpuconsole.probes import parsing
from gpuconsole.probes.catalog import DELIVERY, PYTHON, CheckInfo
from gpuconsole.probes.records import CheckResult, CheckStatus

_OTHER_IMAGE = "Take an image with PyTorch: it brings a Python of its own."
_AGAIN = "Run the check again; look at the container's logs if it happens again."


def no_python(old: Sequence[str]) -> CheckResult:
    """No Python that can run the checks; ``old`` names those that are too old."""
    if old:
        return _fail(PYTHON, f"the Python in the container is older than 3.8 ({', '.join(old[:3])})", _OTHER_IMAGE)
    return _fail(PYTHON, "there is no Python in the container", _OTHER_IMAGE)


def of_boot(record: parsing.RawRecord, workdir: str) -> CheckResult:
    """The failure a ``boot`` record tells."""
    why = parsing.text_of(record, "why")
    if why == "no-python":
        return no_python(_texts(record, "old"))
    if why == "no-place":
        tried = "; ".join(_texts(record, "tried"))
        return _fail(
            DELIVERY,
            f"the container takes no file in /tmp, /dev/shm or {workdir} ({tried})",
            "Launch it with a writable /tmp: --tmpfs /tmp.",
        )
    if why == "no-start":
        return _fail(
            PYTHON,
            f"{parsing.text_of(record, 'python')} cannot be started: {parsing.text_of(record, 'error')}",
            _OTHER_IMAGE,
        )
    return _fail(DELIVERY, "the checks did not arrive whole in the container", _AGAIN)


def not_started(why: str) -> CheckResult:
    """The checks did not come to their first word."""
    return _fail(PYTHON, f"{why} before the first check", look_at_logs(why))


def ended_with(exit_code: int | None) -> str:
    """A payload that ended without a goodbye, as a phrase."""
    if exit_code in (137, -9):
        return f"the checks were killed (exit code {exit_code})"
    return "the checks ended" if exit_code is None else f"the checks ended with exit code {exit_code}"


def look_at_logs(why: str) -> str:
    """What to do about a run that broke off."""
    if "removed" in why:
        return "Launch it again."
    if "paused" in why:
        return "Let it go on (gpuconsole pause --resume), then run the check again."
    if "exit code 137" in why and "container" in why:
        return "Somebody stopped it, or the host ran out of memory: look at its logs and at the kernel's."
    if "killed" in why or "memory" in why:
        return "Most often memory ran out: raise the container's memory limit, or free memory on the host."
    return _AGAIN


def _texts(record: parsing.RawRecord, name: str) -> tuple[str, ...]:
    value = parsing.harmless(record.get(name))
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _fail(info: CheckInfo, why: str, fix: str) -> CheckResult:
    return CheckResult(info.id, info.code, CheckStatus.FAIL, why, fix)

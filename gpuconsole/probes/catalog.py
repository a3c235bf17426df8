"""The checks as the host knows them: name, code, title, and which failure explains which."""

from __future__ import annotations

from dataclasses import dataclass

from gpuconsole.probes.payload.plan import CHECKS as _PAYLOAD_CHECKS


@dataclass(frozen=True, slots=True)
class CheckInfo:
    """One check of the suite."""

    id: str
    code: str
    title: str


PYTHON = CheckInfo("check.python", "", "a Python to run the checks with")
"""Not in the suite: it stands in a report only when the checks could not be started at all."""
DELIVERY = CheckInfo("check.delivery", "", "a place for the checks' files")
"""As above, for a container that takes no file anywhere."""

CHECKS: tuple[CheckInfo, ...] = tuple(CheckInfo(check.slug, check.code, check.title) for check in _PAYLOAD_CHECKS)
"""In the order they run, which is also the order of cause: an earlier failure explains a later one."""

"""Checks from the command line, remembered beside those of the console: what they saw is known from then on."""

from __future__ import annotations

from gpuconsole.probes.records import CheckReport
from gpuconsole.services.runs import RunKind, Runs


def remember_check(report: CheckReport, runs: Runs | None = None) -> None:
    """Keep a check's report as a run about its container or image; of this machine's own Python nothing is kept.

    Args:
        report: How it ended.
        runs: Where; None takes the usual file, which need not be writable.
    """
    from gpuconsole.services.checkruns import conclusion

    environment = report.environment
    kind, _, name = environment.where.partition(" ")
    subject_id = environment.image_id if kind == "image" else environment.container_id
    if not subject_id or kind not in ("image", "container"):
        return
    kept = runs or Runs()
    try:
        kept.end(kept.begin(RunKind.CHECK, name, subject_id, ago_s=report.seconds or 0.0), *conclusion(report))
    finally:
        if runs is None:
            kept.close()

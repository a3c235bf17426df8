"""Every check inside a container of a real engine; what is around them is tested with the quick ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuconsole.probes import suite
from gpuconsole.probes.records import RunEnd
from tests.engine.checking import OK, SKIP, WARN, Checked, result

pytestmark = pytest.mark.engine


@pytest.mark.slow
def test_each_has_a_result_in_a_sound_container_and_leaves_nothing(modern: Checked, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    name = modern.start("--shm-size", "1g", "-v", f"{workspace}:/workspace")
    report = modern.check(name, deadline_s=240)
    assert report.end is RunEnd.COMPLETE
    assert [check.id for check in report.checks] == [check.id for check in suite.in_order()]
    assert {check.status for check in report.checks} <= {OK, SKIP, WARN}, report.checks
    assert all(check.why for check in report.checks if check.status is not OK)
    assert all(check.seconds is not None for check in report.checks)
    compiled = result(report, "check.compile")
    assert compiled.status is WARN
    assert "there is no C++ compiler" in compiled.why
    assert "build-essential" in compiled.fix
    assert result(report, "check.all-reduce").value["exact"] == [True, True]
    assert result(report, "check.gpu-health").status is SKIP
    assert modern.is_clean(name)
    assert not list(workspace.iterdir())


def test_a_narrow_container_is_told_what_is_narrow(modern: Checked) -> None:
    name = modern.start(
        "--read-only", "--user", "4321", "--memory", "3g", "--cpus", "0.5", "--ulimit", "nofile=512",
        "--network", "none", "-e", "TZ=Mars/Base",
    )  # fmt: skip
    only = ("limits", "host-memory", "cpu", "clock", "compile", "all-reduce")
    report = modern.check(name, only=only)
    assert report.end is RunEnd.COMPLETE
    for slug, status, words in (
        ("check.limits", WARN, "only 512 files may be open"),
        ("check.cpu", WARN, "the time of 0.5 processors only"),
        ("check.host-memory", OK, "3 GiB of memory allowed"),
        ("check.compile", WARN, "there is no C++ compiler"),
        ("check.all-reduce", OK, "exact"),
    ):
        found = result(report, slug)
        assert found.status is status, found
        assert words in found.why
    assert result(report, "check.clock").value["zone_known"] is False
    assert result(report, "check.compile").value["cache"] is None, "its user has no name"
    assert modern.is_clean(name)

"""The verdict names one thing: the failure that explains the others."""

from __future__ import annotations

import pytest

from gpuconsole.probes import catalog, gpuchecks, obstacles, suite
from gpuconsole.probes.records import CheckResult, CheckStatus, Environment, RunEnd, SeenGpu, Verdict
from gpuconsole.probes.verdict import judge

GPU = Environment(torch="2.9.0", torch_cuda="12.8", gpus=(SeenGpu(0), SeenGpu(1)))


def checks(**statuses: str) -> list[CheckResult]:
    """Results by the last word of the check's name; the others are fine."""
    return [
        CheckResult(
            check.id,
            check.code,
            CheckStatus(statuses.get(check.id.removeprefix("check.").replace("-", "_"), "ok")),
            f"{check.id} was looked at",
        )
        for check in catalog.CHECKS
    ]


def sentence(environment: Environment = GPU, end: RunEnd = RunEnd.COMPLETE, **statuses: str) -> Verdict:
    return judge(checks(**statuses), environment, end)


def test_all_well_on_gpus() -> None:
    found = sentence()
    assert found == Verdict(CheckStatus.OK, "Fit for training on 2 GPUs; nothing stands out.", None)


@pytest.mark.parametrize(
    ("unseen", "what"),
    [(("check.gpu-health", "check.gpu-clocks"), "health and clocks"), (("check.gpu-clocks",), "clocks"), ((), None)],
)
@pytest.mark.parametrize("why", ["the engine is not on this machine", "NVML cannot be used."])
def test_nothing_stands_out_only_of_what_was_looked_at(unseen: tuple[str, ...], what: str | None, why: str) -> None:
    """Whichever of the host's own checks could not look, and for whatever reason."""
    host = [
        CheckResult(each.id, each.code, CheckStatus.SKIP if each.id in unseen else CheckStatus.OK, why)
        for each in suite.HOST_CHECKS
    ]
    found = judge([*checks(), *host], GPU, RunEnd.COMPLETE)
    assert found.status is CheckStatus.OK
    told = (
        "nothing stands out"
        if what is None
        else f", but the host could not look at the GPUs' {what}: {why.rstrip('.')}"
    )
    assert found.sentence.endswith(f"{told}.")


def test_where_no_gpu_was_given_there_was_nothing_to_look_at() -> None:
    host = [gpuchecks.skipped(each, gpuchecks.NOT_GIVEN) for each in suite.HOST_CHECKS]
    found = judge([*checks(kernel="skip"), *host], Environment(torch="2.9.0", torch_cuda="12.8"), RunEnd.COMPLETE)
    assert found.sentence.endswith("no GPU took part; nothing stands out.")


def test_the_first_failure_in_the_order_of_cause_is_named() -> None:
    found = sentence(torch="fail", devices="fail", shm="fail", workspace="warn")
    assert found.check == "check.torch"
    assert found.sentence == "Not fit for training: check.torch was looked at (and 2 more)."


def test_a_warning_is_named_when_nothing_failed() -> None:
    found = sentence(shm="warn")
    assert (found.status, found.check) == (CheckStatus.WARN, "check.shm")
    assert found.sentence == "Fit for training on 2 GPUs, but check.shm was looked at."


def test_a_cpu_build_is_never_called_fit_for_training() -> None:
    found = sentence(Environment(torch="2.9.0+cpu"), kernel="skip", cuda_available="skip")
    assert found.status is CheckStatus.OK
    assert "CPU only" in found.sentence
    assert "Fit" not in found.sentence


def test_a_cuda_build_without_gpus_says_so() -> None:
    found = sentence(Environment(torch="2.9.0", torch_cuda="12.8"), kernel="skip", cuda_available="skip")
    assert "no GPU took part" in found.sentence


@pytest.mark.parametrize("end", [RunEnd.CANCELLED, RunEnd.BROKEN, RunEnd.TIMEOUT])
def test_an_unfinished_run_gives_no_all_clear(end: RunEnd) -> None:
    found = sentence(end=end)
    assert found.status is CheckStatus.SKIP
    assert "before it could tell" in found.sentence


def test_a_failure_counts_even_in_an_unfinished_run() -> None:
    assert sentence(end=RunEnd.CANCELLED, numerics="fail").check == "check.numerics"


def test_the_catalog_has_every_check_once_with_its_code() -> None:
    found = {check.id: check.code for check in catalog.CHECKS}
    assert len(found) == len(catalog.CHECKS)
    assert found.pop("check.devices") == found["check.cuda-available"] == "C02"
    codes = [*found.values(), *(check.code for check in suite.HOST_CHECKS)]
    assert sorted(codes) == [f"C{number:02}" for number in range(1, 26)]
    assert found["check.shm"] == "C15"
    assert [check.code for check in suite.in_order()] == sorted([*codes, "C02"])


@pytest.mark.parametrize(
    ("record", "why", "fix"),
    [
        ({"why": "no-python", "old": []}, "there is no Python", "PyTorch"),
        ({"why": "no-python", "old": ["/usr/bin/python2"]}, "older than 3.8 (/usr/bin/python2)", "PyTorch"),
        ({"why": "no-place", "tried": ["/tmp: Read-only file system"]}, "/tmp: Read-only file system", "--tmpfs /tmp"),
        ({"why": "no-start", "python": "/x", "error": "Exec format error"}, "/x cannot be started", "PyTorch"),
        ({"why": "damaged"}, "did not arrive whole", "again"),
        ({"why": ["odd"], "old": 7}, "did not arrive whole", "again"),
    ],
)
def test_a_start_that_failed_is_explained(record: dict[str, object], why: str, fix: str) -> None:
    found = obstacles.of_boot(record, "/workspace")
    assert found.status is CheckStatus.FAIL
    assert why in found.why
    assert fix in found.fix

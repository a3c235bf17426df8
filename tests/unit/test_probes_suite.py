"""Which checks a run has, in which order they are shown, and which of several failures is named."""

from __future__ import annotations

from itertools import combinations

import pytest

from gpuconsole.core.errors import ExitCode, UsageError
from gpuconsole.probes import catalog, suite
from gpuconsole.probes.payload.plan import BY_SLUG, CHECKS
from gpuconsole.probes.records import CheckResult, CheckStatus, Environment, RunEnd
from gpuconsole.probes.verdict import judge


def result(slug: str, status: str = "fail") -> CheckResult:
    code = next((check.code for check in suite.in_order() if check.id == slug), "")
    return CheckResult(slug, code, CheckStatus(status), f"{slug} was looked at")


def test_all_checks_stand_in_the_order_of_their_codes() -> None:
    codes = [check.code for check in suite.in_order()]
    assert codes == sorted(codes)
    assert len({check.id for check in suite.in_order()}) == len(codes) == len(catalog.CHECKS) + 2


@pytest.mark.parametrize(
    ("only", "inside", "host"),
    [
        (("shm",), ["check.torch", "check.shm"], []),
        (("C15",), ["check.torch", "check.shm"], []),
        (("check.SHM",), ["check.torch", "check.shm"], []),
        (("workspace",), ["check.workspace"], []),
        (("c02",), ["check.torch", "check.cuda-available", "check.devices"], []),
        (("p2p",), ["check.torch", "check.cuda-available", "check.p2p"], []),
        (("gpu-health", "C24"), [], ["check.gpu-health", "check.gpu-clocks"]),
        (("environment", "clock"), ["check.clock", "check.environment"], []),
    ],
)
def test_some_checks_with_those_they_stand_on(only: tuple[str, ...], inside: list[str], host: list[str]) -> None:
    selection = suite.select(only)
    assert [slug for slug in selection.inside if slug in inside] == inside
    assert set(selection.inside) - set(inside) <= {"check.torch", "check.cuda-available"}
    assert [check.id for check in selection.host] == host
    assert not selection.whole


def test_whatever_is_chosen_has_what_it_needs_before_it() -> None:
    for check in CHECKS:
        inside = suite.select((check.slug,)).inside
        assert inside[-1] == check.slug
        for need in check.needs:
            assert {"torch": "check.torch", "cuda": "check.cuda-available"}[need] in inside


def test_a_check_there_is_none_of_is_said_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no check shmm") as raised:
        suite.select(("shm", "shmm"))
    assert raised.value.exit_code is ExitCode.USAGE
    assert "C15 shm" in raised.value.hint


def test_what_begins_early_begins_beside_a_check_that_comes_before_it() -> None:
    order = [check.slug for check in CHECKS]
    early = [check for check in CHECKS if check.early]
    assert [check.slug for check in early] == ["check.compile", "check.all-reduce"]
    for check in early:
        assert order.index(check.beside) < order.index(check.slug)
        # A wrong result of the card itself, or a full one, is told before others use it.
        assert order.index(check.beside) > order.index("check.gpu-pattern")
        assert callable(BY_SLUG[check.slug].load)


CAUSES = (
    ("check.python", "check.torch"),
    ("check.torch", "check.numerics"),
    ("check.cuda-available", "check.devices"),
    ("check.driver", "check.kernel"),
    ("check.gpu-health", "check.gpu-pattern"),
    ("check.gpu-health", "check.numerics"),
    ("check.kernel", "check.cudnn"),
    ("check.kernel", "check.compile"),
    ("check.gpu-pattern", "check.amp"),
    ("check.p2p", "check.all-reduce"),
    ("check.shm", "check.all-reduce"),
    ("check.limits", "check.all-reduce"),
    ("check.workspace", "check.compile"),
)


@pytest.mark.parametrize(("cause", "effect"), CAUSES)
@pytest.mark.parametrize("status", ["fail", "warn"])
def test_the_cause_is_named_and_not_its_effect(cause: str, effect: str, status: str) -> None:
    rest = [result(check.id, "ok") for check in suite.in_order() if check.id not in (cause, effect)]
    for pair in ((cause, effect), (effect, cause)):
        checks = suite.sorted_for_report([*rest, *(result(slug, status) for slug in pair)])
        assert judge(checks, Environment(torch_cuda="12.8"), RunEnd.COMPLETE).check == cause


def test_every_check_has_its_place_among_the_causes() -> None:
    slugs = [check.id for check in suite.in_order()]
    for one, other in combinations(slugs, 2):
        forth = [check.id for check in suite.sorted_by_cause([result(one), result(other)])]
        back = [check.id for check in suite.sorted_by_cause([result(other), result(one)])]
        assert forth == back


def test_some_checks_give_no_verdict_on_the_whole() -> None:
    found = judge([result("check.shm", "ok")], Environment(torch_cuda="12.8"), RunEnd.COMPLETE)
    assert found.sentence == "Nothing failed of what was checked; nothing stands out."
    found = judge([result("check.gpu-health", "skip")], Environment(), RunEnd.COMPLETE)
    assert (found.status, found.check) == (CheckStatus.SKIP, "check.gpu-health")
    assert found.sentence == "Nothing could be checked: check.gpu-health was looked at."

"""The checks on two H200 as they went: every one of the suite, in its order, and the verdict they amount to."""

from __future__ import annotations

import json
from pathlib import Path

from gpuconsole.probes.records import CheckResult, CheckStatus, Environment, RunEnd, SeenGpu
from gpuconsole.probes.suite import in_order
from gpuconsole.probes.verdict import judge

FIXTURE = Path(__file__).parents[1] / "fixtures" / "check" / "h200-x2.json"


def test_all_checks_on_two_gpus_and_their_verdict() -> None:
    told = json.loads(FIXTURE.read_text(encoding="utf-8"))
    checks = [
        CheckResult(one["id"], one["code"], CheckStatus(one["status"]), one["why"], one["fix"], one["value"],
                    one["seconds"]) for one in told["checks"]
    ]  # fmt: skip
    assert [check.id for check in checks] == [check.id for check in in_order()]
    assert {check.status for check in checks} == {CheckStatus.OK, CheckStatus.WARN}
    seen = told["environment"]["gpus"]
    environment = Environment(
        torch_cuda=told["environment"]["torch_cuda"], gpus=tuple(SeenGpu(gpu["position"]) for gpu in seen)
    )
    verdict = judge(checks, environment, RunEnd.COMPLETE)
    assert (verdict.status.value, verdict.sentence, verdict.check) == tuple(told["verdict"].values())
    assert sum(check.seconds or 0 for check in checks) < 45

"""Alarms on the recordings: what was full rings before, once a state; what went well stays silent by default."""

from __future__ import annotations

from collections import Counter

import pytest

from gpuconsole.gpu.forecast import Forecaster
from gpuconsole.gpu.state import MemoryState
from gpuconsole.services.alarms import Alarm, Alarms
from tests.forecast.truth import CALM, GROWTH, Recording, recordings

RECORDINGS = recordings()
UNANNOUNCED = {"run-070"}
"""Missed at every sampling, as RESULTS.md says: no alarm comes near its end."""


def rung(run: Recording, *levels: MemoryState) -> list[list[Alarm]]:
    """What rang in a recording from each of ``levels`` on; an alarm's time is the sample's."""
    forecaster, alarms = Forecaster(), [Alarms(least=least) for least in levels]
    found: list[list[Alarm]] = [[] for _ in levels]
    for sample in run.samples:
        said = forecaster.feed(sample)
        for each, into in zip(alarms, found, strict=True):
            into += [part for whole in each.looked(said, sample.t) for part in whole.parts or (whole,)]
    return found


@pytest.mark.parametrize("run", [run for run in RECORDINGS if run.kind in CALM], ids=lambda run: run.name)
def test_a_calm_run_rings_nothing_by_default(run: Recording) -> None:
    assert rung(run, MemoryState.CRITICAL) == [[]]


@pytest.mark.parametrize("run", [run for run in RECORDINGS if run.kind in GROWTH], ids=lambda run: run.name)
def test_what_grows_until_it_is_full_rings_before_it_is_and_no_state_twice(run: Recording) -> None:
    assert run.oom_t is not None
    loud, quiet = rung(run, MemoryState.CRITICAL, MemoryState.RISK)
    for found in (loud, quiet):
        before = [each for each in found if each.state is not MemoryState.FAILED and each.at <= run.oom_t]
        assert bool(before) is (run.name not in UNANNOUNCED or found is quiet), "who is told"
        for key, count in Counter((each.key, each.state) for each in found).items():
            assert count == 1, key

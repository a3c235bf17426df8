"""Launches as runs: how each goes on or ended, as the launch records have it, beside what this console launched."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuconsole.core.text import plain_line
from gpuconsole.diagnose.deaths import REMOVED
from gpuconsole.services.runs import Run, RunKind, RunState

if TYPE_CHECKING:
    from gpuconsole.services.launchrecords import LaunchRecord

SHOWN = 20
"""The newest launches that are shown also where another console or the command line launched them."""
_ON_PURPOSE = ("stopped", REMOVED)


def with_launches(runs: Iterable[Run], records: Iterable[LaunchRecord], *, up: Collection[str]) -> tuple[Run, ...]:
    """The runs, newest first, with launches as they are by their records.

    Args:
        runs: Those that consoles carried out.
        records: The launches, newest first.
        up: Ids of the containers that have not ended.
    """
    known = tuple(runs)
    own = {run.subject_id: run for run in known if run.kind is RunKind.LAUNCH and run.subject_id}
    nameless = [run for run in known if run.kind is RunKind.LAUNCH and not run.subject_id]
    told: dict[str, Run] = {}
    others: list[Run] = []
    for place, record in enumerate(records):
        of = own.get(record.container_id or "")
        if of is not None:
            told[of.id] = _as_recorded(of, record, up)
        elif place < SHOWN and _is_settled(record, up) and not any(_is_its(run, record) for run in nameless):
            begun = Run(
                f"launch-{record.word}", RunKind.LAUNCH, plain_line(record.name), record.container_id or "",
                record.started_at,
            )  # fmt: skip
            others.append(_as_recorded(begun, record, up))
    every = [*(told.get(run.id, run) for run in known), *others]
    return tuple(sorted(every, key=lambda run: run.started_at, reverse=True))


def _is_settled(record: LaunchRecord, up: Collection[str]) -> bool:
    """How it is can be told: it has ended, or its container is here."""
    return record.ended or record.container_id in up


def _is_its(run: Run, record: LaunchRecord) -> bool:
    """Whether it is what a launch wrote down that is under way, or made no container that stayed."""
    within = run.started_at <= record.started_at and (run.ended_at is None or record.started_at <= run.ended_at)
    return within and run.subject in (record.name, record.image)


def _as_recorded(run: Run, record: LaunchRecord, up: Collection[str]) -> Run:
    profile = f", from the profile {plain_line(record.profile)}" if record.profile else ""
    if not record.ended:
        if record.container_id in up:
            return replace(run, state=RunState.OK, headline=f"It runs{profile}.", up=True, ended_at=None)
        return replace(run, state=RunState.OK, headline=f"It was started{profile}; how it is now is not known.")
    reason = plain_line(record.reason or "It has ended.")
    document = json.dumps({"message": reason, "hint": plain_line(" ".join(record.advice))})
    return replace(run, state=_state(record), headline=reason, document=document, ended_at=record.ended_at)


def _state(record: LaunchRecord) -> RunState:
    if record.cause in _ON_PURPOSE:
        return RunState.CANCELLED
    if record.exit_code == 0:
        return RunState.OK
    return RunState.WARN if record.exit_code is None and record.cause == "gone" else RunState.FAILED

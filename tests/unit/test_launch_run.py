"""A launch as a run: whatever becomes of it, the one who waits for its end is told."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.services import launchruns
from gpuconsole.services.launching import Launched
from gpuconsole.services.launchruns import LaunchRun
from gpuconsole.services.runs import Runs, RunState

DESK: Any = SimpleNamespace(session=None, runs=None, hold=lambda *_: None, let_go=lambda _: None)


def ended(desk: Any, **more: Any) -> Launched | ConsoleError:
    """How a launch of ``busybox`` ended."""
    told: list[Launched | ConsoleError] = []
    over = threading.Event()

    def on_end(outcome: Launched | ConsoleError) -> None:
        told.append(outcome)
        over.set()

    LaunchRun(desk, LaunchOptions("busybox"), on_news=lambda _: None, on_end=on_end, **more).start()
    assert over.wait(10)
    return told[0]


@pytest.mark.parametrize("error", [NotFound("The folder you are in is gone.", hint="cd ~"), RuntimeError("odd")])
@pytest.mark.parametrize("place", ["spec_of", "launch"])
def test_however_it_fails_its_end_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception, place: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(launchruns, "spec_of", lambda *_: LaunchSpec("busybox"))
    monkeypatch.setattr(launchruns, place, fail)
    desk = SimpleNamespace(**{**vars(DESK), "runs": Runs(kept=False)})
    outcome = ended(desk)
    assert isinstance(outcome, ConsoleError)
    assert outcome.hint
    assert str(error) in outcome.message
    states = [run.state for run in desk.runs.all()]
    assert states == ([RunState.FAILED] if place == "launch" else []), "what did not begin is no run"


def test_what_its_profile_took_is_known_as_it_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[LaunchSpec] = []

    def launched(session: object, spec: LaunchSpec, *_: object, **__: object) -> None:
        seen.append(spec)
        raise NotFound("no further")

    monkeypatch.setattr(launchruns, "spec_of", lambda *_: LaunchSpec("busybox"))
    monkeypatch.setattr(launchruns, "launch", launched)
    ended(SimpleNamespace(**{**vars(DESK), "runs": Runs(kept=False)}), profile="train", taken=("DB_PASSWORD",))
    assert [(spec.profile, spec.taken) for spec in seen] == [("train", frozenset({"DB_PASSWORD"}))]

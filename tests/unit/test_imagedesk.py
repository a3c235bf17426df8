"""What the console does with images beside what its engine does: what goes on, and what is done with what was built."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuconsole.core.errors import ConsoleError, EngineRefused
from gpuconsole.engine.model import Image
from gpuconsole.images.verdict import HostTraits
from gpuconsole.services.buildorders import BuildOrder, choose
from gpuconsole.services.imagedesk import ImageDesk
from gpuconsole.services.pullqueue import to_pull_again
from gpuconsole.services.runs import Run, RunKind, Runs, RunState
from gpuconsole.services.session import Session


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """How builds that were begun are ended: by the test."""
    found: list[Any] = []

    def start(*_: object, on_end: Any, **__: object) -> None:
        found.append(on_end)

    monkeypatch.setattr("gpuconsole.services.imagebuilds.start_build", start)
    return found


def test_what_was_built_is_checked_and_what_was_not_can_be_built_again(tmp_path: Path, begun: list[Any]) -> None:
    done: list[object] = []
    desk = ImageDesk(
        Session(host=f"unix://{tmp_path}/none.sock"),
        Runs(kept=False),
        holder=SimpleNamespace(hold=print, let_go=print),
        refresh=lambda: done.append("refreshed"),
        check=lambda name, image_id: done.append((name, image_id)),
    )
    assert not desk.going
    order = BuildOrder(torch="2.9.1", cuda="12.8", tag="a/b:1")
    chosen = choose(order, HostTraits())
    assert desk.builds.begin(order, chosen)
    assert list(desk.going) == ["build of a/b:1"]
    assert not desk.builds.begin(order, chosen), "one at a time of a name"
    assert len(begun) == 1
    failure: ConsoleError = EngineRefused("No.", hint="Try again.")
    begun[0](failure)
    assert not desk.going
    assert not done
    assert desk.builds.begin(order, chosen)
    begun[1](SimpleNamespace(name="a/b:1", image=Image("sha256:1", ("a/b:1",))))
    assert done == ["refreshed", ("a/b:1", "sha256:1")]


@pytest.mark.parametrize(
    ("kind", "state", "document", "again"),
    [
        (RunKind.PULL, RunState.FAILED, '{"reference": "a/b:1@sha256:1"}', "a/b:1@sha256:1"),
        (RunKind.PULL, RunState.CANCELLED, '{"reference": "a/b:1"}', "a/b:1"),
        (RunKind.PULL, RunState.OK, '{"reference": "a/b:1"}', None),
        (RunKind.PULL, RunState.RUNNING, None, None),
        (RunKind.PULL, RunState.CANCELLED, None, "a/b:1"),
        (RunKind.PULL, RunState.FAILED, "[", None),
        (RunKind.PULL, RunState.FAILED, "[]", None),
        (RunKind.PULL, RunState.FAILED, '{"reference": 3}', None),
        (RunKind.LAUNCH, RunState.FAILED, '{"reference": "a/b:1"}', None),
    ],
)
def test_only_a_pull_that_brought_nothing_is_tried_again(
    kind: RunKind, state: RunState, document: str | None, again: str | None
) -> None:
    assert to_pull_again(Run("r", kind, "a/b:1", "", 0.0, state, document=document)) == again

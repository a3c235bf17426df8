"""Pulls beside each other on a real engine: the second counts what the first has yet to fill."""

from __future__ import annotations

import threading

import pytest

from gpuconsole.core.errors import Conflict
from gpuconsole.images.reference import parse
from gpuconsole.services import pullobstacles
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.pulling import PullState
from gpuconsole.services.pullruns import Puller
from gpuconsole.services.session import Session
from tests.rig.engines import Engine
from tests.rig.fresh import fresh_image
from tests.rig.registry import Registry

pytestmark = pytest.mark.engine
MB = 1_000_000


def test_the_second_pull_counts_what_the_first_has_yet_to_fill(
    engine_modern: Engine, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, second = registry.over_the_line(fresh_image(registry, megabytes=(8,))), fresh_image(registry, megabytes=(8,))
    # Room for one of them, downloaded and unpacked, and not for both.
    monkeypatch.setattr(pullobstacles, "disk_space", lambda _: (40 * MB, 100 * MB))
    session = Session(host=engine_modern.host)
    downloading, cancel = threading.Event(), Cancellation()
    ended: list[BaseException] = []

    def first(state: PullState) -> None:
        if state.layers:
            downloading.set()

    def work() -> None:
        try:
            Puller(session).pull(parse(slow), cancel=cancel, on_state=first)
        except Cancelled as error:
            ended.append(error)

    registry.line.limit(bytes_per_second=200_000)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert downloading.wait(60)
        with pytest.raises(Conflict) as caught:
            Puller(session).pull(parse(second), cancel=Cancellation(), on_state=lambda _: None)
        assert "of which other pulls still take" in caught.value.message
        assert second not in engine_modern.images()
    finally:
        cancel.request()
        thread.join(60)
    assert ended
    pulled = Puller(session).pull(parse(second), cancel=Cancellation(), on_state=lambda _: None)
    assert pulled.reference == second
    session.close()

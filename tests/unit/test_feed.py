"""What the console is told of GPUs and containers, by two threads: the last word is the newest."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

import pytest

from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.host.model import HostView
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.feed import Feed, Listener
from gpuconsole.services.session import Session

ONE = Container("ab" * 32, "train", "a:1", "sha256:1", ContainerState.RUNNING)
LOOK = HostView(GpuSnapshot(taken_at=1.0), gpus=())


class Ears:
    """Hears of everything, and meanwhile the engine lists other containers."""

    def __init__(self, feed: Feed, listed: tuple[Container, ...]) -> None:
        self.names: list[list[str]] = []
        self.lister = threading.Thread(target=feed._listed, args=(listed,))

    def host_looked(self, view: HostView) -> None:
        self.lister.start()
        self.lister.join(0.3)  # the other thread has the time to tell before this one goes on

    def containers_listed(self, views: tuple[ContainerView, ...]) -> None:
        self.names.append([view.container.name for view in views])


@pytest.mark.parametrize(("before", "after"), [((), (ONE,)), ((ONE,), ())], ids=["one that comes", "one that goes"])
def test_a_look_at_the_gpus_takes_no_container_back_that_was_listed_meanwhile(
    tmp_path: Path, before: tuple[Container, ...], after: tuple[Container, ...]
) -> None:
    feed = Feed(Session(host=f"unix://{tmp_path}/none.sock"), interval_s=1.0)
    ears = Ears(feed, after)
    feed._listener, feed._connected, feed._containers = cast(Listener, ears), True, before
    feed._looked(LOOK)
    ears.lister.join()
    assert ears.names[-1] == [one.name for one in after]

"""The recorder of a console: how much of a container's output it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.host.model import HostView
from gpuconsole.host.recording import read_recording
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.desk import Desk
from gpuconsole.services.logfollow import LogBatch, LogLine, LogState, LogStatus
from gpuconsole.services.recorder import Recorder
from gpuconsole.services.runs import Runs
from gpuconsole.services.session import Session


class Bursts:
    """Stands where the follower of a container's output stands: each batch is told as soon as it is started."""

    sizes: tuple[int, ...] = ()

    def __init__(self, engine: object, container_id: str, on_news: Any) -> None:
        self._on_news = on_news
        self._left = list(self.sizes)

    def start(self) -> None:
        while self._left:
            self._on_news()

    def take(self) -> LogBatch:
        lines = tuple(LogLine("stdout", "", f"line {place}") for place in range(self._left.pop(0)))
        return LogBatch(lines, (), LogStatus(LogState.FOLLOWING))

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ((), 0),
        ((30,), 10),
        ((10, 20), 30),
        ((10, 89), 99),
        ((10, 90), 100),
        ((10, 91), 100),
        ((10, 200, 50), 100),
        ((10, 60, 60, 60, 60), 100),
        ((10, 90, 0, 1, 300), 100),
    ],
)
def test_no_more_lines_are_kept_than_are_bearable_however_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], kept: int
) -> None:
    monkeypatch.setattr("gpuconsole.services.recorder._LINES_AT_MOST", 100)
    monkeypatch.setattr("gpuconsole.services.recorder._PAST_LINES", 10)
    monkeypatch.setattr("gpuconsole.services.recorder.LogFollower", Bursts)
    monkeypatch.setattr(Bursts, "sizes", sizes)
    path = tmp_path / "a.jsonl"
    recorder = Recorder(Desk(Session(host=f"unix://{tmp_path}/none.sock"), runs=Runs(kept=False)), path, interval_s=1.0)
    recorder.host_looked(HostView(GpuSnapshot(taken_at=1.0)))
    container = Container(id="ab" * 32, name="train", image="a", image_id="sha256:1", state=ContainerState.RUNNING)
    recorder.containers_listed((ContainerView(container),))
    recorder.close()
    assert recorder.failure is None
    assert sum(line["type"] == "log" for _, line in read_recording(path)) == kept
    assert recorder.lines_of(container.id) == kept

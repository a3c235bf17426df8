"""How far a pull is, from the engine's steps."""

from __future__ import annotations

from gpuconsole.engine.model import PullProgress
from gpuconsole.services.pulling import PullMeter, PullState

GIB = 2**30


def state_after(*steps: PullProgress) -> PullState:
    meter = PullMeter("team/image:1")
    for step in steps:
        meter.add(step)
    return meter.state


def layer(name: str, status: str, current: int | None = None, total: int | None = None) -> PullProgress:
    return PullProgress(status=status, layer=name, current_bytes=current, total_bytes=total)


def test_before_the_first_layer_the_engines_word_counts() -> None:
    assert str(state_after()) == "asking the registry"
    assert str(state_after(PullProgress("Pulling from team/image", layer="1"))) == "Pulling from team/image"


def test_layers_and_bytes_are_added_up() -> None:
    state = state_after(
        PullProgress("Pulling from team/image", layer="1"),
        layer("a", "Already exists"),
        layer("b", "Pulling fs layer"),
        layer("c", "Waiting"),
        layer("b", "Downloading", 1 * GIB, 2 * GIB),
        layer("c", "Downloading", 3 * GIB, 4 * GIB),
        layer("c", "Download complete"),
    )
    assert state == PullState("team/image:1", 3, 1, 2, 5 * GIB, 6 * GIB, "Pulling from team/image")
    assert str(state) == "2 of 3 layers downloaded, 5.0 of 6.0 GiB"


def test_unpacking_is_told_when_all_is_downloaded() -> None:
    steps = (layer("a", "Downloading", 1, GIB), layer("a", "Verifying Checksum"), layer("a", "Extracting", 5, GIB))
    assert str(state_after(*steps)) == "1 of 1 layers downloaded, 1.0 of 1.0 GiB, unpacking"
    assert str(state_after(*steps, layer("a", "Pull complete"))) == "1 of 1 layers downloaded, 1.0 of 1.0 GiB"

"""The room that pulls under way have yet to fill: counted layer by layer, once for what they share, and given back."""

from __future__ import annotations

import threading

import pytest

from gpuconsole.core.errors import Conflict
from gpuconsole.engine.model import PullProgress
from gpuconsole.services.pulling import PullState
from gpuconsole.services.pullobstacles import UNPACKED, Room
from gpuconsole.services.pullspace import PullSpace

GIB = 2**30
WHOLE = 1 + UNPACKED


def layers(*names: str) -> dict[str, int]:
    return {f"sha256:{name * 64}": GIB for name in names}


def at(*steps: tuple[str, str, int | None]) -> PullState:
    return PullState("x", each=tuple(PullProgress(status, name * 12, now, GIB) for name, status, now in steps))


def room(gigabytes: float, download: int = 1) -> Room:
    return Room("/var/lib/docker", int(gigabytes * GIB), download * GIB)


def test_what_is_promised_shrinks_as_a_pull_goes_on_and_ends_with_it() -> None:
    space = PullSpace()
    with space.share("a", layers("a", "b", "c"), None) as mine:
        assert space.promised() == 3 * WHOLE * GIB
        mine.reached(at(("a", "Downloading", GIB // 2), ("b", "Extracting", None), ("f", "Downloading", 1)))
        assert space.promised() == (WHOLE - 0.5 + UNPACKED + WHOLE) * GIB
        mine.reached(at(("a", "Pull complete", None), ("b", "Already exists", None), ("c", "Download complete", None)))
        assert space.promised() == UNPACKED * GIB
    assert space.promised() == 0


def test_layers_that_several_bring_are_stored_once() -> None:
    space = PullSpace()
    with space.share("a", layers("a", "b"), None), space.share("b", layers("b", "c"), None):
        assert space.promised() == 3 * WHOLE * GIB
        assert space.promised(layers("a", "b", "d")) == WHOLE * GIB


def test_one_more_is_refused_where_the_others_take_the_room_and_a_refused_one_takes_none() -> None:
    space = PullSpace()
    with space.share("first", layers("a"), room(5)):
        with pytest.raises(Conflict) as caught, space.share("second", layers("b"), room(5)):
            pass
        assert "of which other pulls still take 3 GiB" in caught.value.message
        assert "when the others are done" in caught.value.hint
        assert space.promised() == WHOLE * GIB
        with space.share("same layers", layers("a"), room(5)), space.share("forced", layers("b"), None):
            pass
    with space.share("second", layers("b"), room(5)):
        pass
    with pytest.raises(ZeroDivisionError), space.share("fails", layers("a"), room(5)):
        raise ZeroDivisionError
    assert space.promised() == 0


def test_of_many_that_begin_at_once_as_many_begin_as_have_room() -> None:
    space, begun, tried = PullSpace(), [], threading.Barrier(8)

    def work(name: str) -> None:
        try:
            with space.share(name, layers(name), room(7)):
                begun.append(name)
                tried.wait(30)
        except Conflict:
            tried.wait(30)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcdef01"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(begun) == 2

"""Which endings mean that a container's command never ran, and which only look so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuconsole.core.errors import NotFound, Refused
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.engine.request import CreateRequest
from gpuconsole.services.following import Ending
from gpuconsole.services.unstarted import refuse_unstarted

REQUEST = CreateRequest(image="small", command=("train", "--x"))
BRIEF = Container(
    id="f" * 64, name="c", image="small", image_id="", state=ContainerState.EXITED, started_at=100.0, finished_at=100.2
)
TINI = "[FATAL tini (7)] exec train failed: No such file or directory"


@pytest.mark.parametrize(
    ("code", "line", "kind"),
    [
        (127, TINI, NotFound),
        (1, "[FATAL tini (12)] exec /a b: c/train failed: Not a directory", NotFound),
        (126, "[FATAL tini (7)] exec train failed: Permission denied", Refused),
        (1, "exec /scripts/train: no such file or directory", NotFound),
        (255, "exec /scripts/train: permission denied", Refused),
    ],
)
@pytest.mark.parametrize("followed", [False, True])
def test_the_words_of_an_init_or_the_engines_helper(
    code: int, line: str, kind: type[Exception], followed: bool
) -> None:
    for lines in ((line,), (line,) * 5):
        with pytest.raises(kind, match=r"program .*train in the container"):
            refuse_unstarted(Ending(code, BRIEF, lines), REQUEST, followed=followed)


@pytest.mark.parametrize(
    "ending",
    [
        None,
        Ending(0, BRIEF, (TINI,)),
        Ending(3, BRIEF, (TINI,)),
        Ending(None, BRIEF, (TINI,)),
        Ending(127, BRIEF, ()),
        Ending(127, BRIEF, ("begun", TINI)),
        Ending(127, BRIEF, (TINI, "done")),
        Ending(127, BRIEF, (f"> {TINI}",)),
        Ending(127, BRIEF, ("sh: train: not found",)),
        Ending(1, BRIEF, ("exec: train: not found",)),
        Ending(127, replace(BRIEF, finished_at=7300.0), (TINI,)),
    ],
)
def test_what_only_looks_so_is_left_alone(ending: Ending | None) -> None:
    for followed in (False, True):
        refuse_unstarted(ending, REQUEST, followed=followed)


def test_by_the_exit_code_alone_only_where_there_is_nothing_else() -> None:
    gone = replace(REQUEST, auto_remove=True)
    with pytest.raises(NotFound, match="program train"):
        refuse_unstarted(Ending(127), gone, followed=False)
    with pytest.raises(Refused, match="program train"):
        refuse_unstarted(Ending(126, replace(BRIEF, auto_remove=True)), gone, followed=False)
    with pytest.raises(NotFound, match="program of its image"):
        refuse_unstarted(Ending(127), replace(gone, command=None, entrypoint=("",)), followed=False)
    for code, followed in ((127, True), (126, True), (1, False), (0, False)):
        refuse_unstarted(Ending(code), gone, followed=followed)

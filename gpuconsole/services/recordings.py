"""Recordings of the console: one made of this machine for a while, and the one that is shipped."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpuconsole.core.errors import Conflict
from gpuconsole.host.recording import STANDARD_OUTPUT

if TYPE_CHECKING:
    from gpuconsole.services.session import Session

_LOOK_S = 0.2
_SHIPPED = "console-h200.jsonl.gz"


def record(
    session: Session,
    path: Path,
    *,
    seconds: float,
    interval_s: float = 1.0,
    check: str | None = None,
    check_at_s: float = 5.0,
    replace: bool = False,
    names: bool = False,
    on_second: Callable[[float], bool] = lambda elapsed: True,
) -> float:
    """Record what the console would show of this machine, without names of it and its people unless they are wanted.

    Args:
        session: The GPUs and the engine; closed at the end.
        path: The file; a name that ends in ``.gz`` is compressed, ``-`` is standard output.
        seconds: How long.
        interval_s: Seconds between looks at the GPUs.
        check: A container that is checked meanwhile.
        check_at_s: Second at which that check begins.
        replace: A file that is there already may go.
        names: Keep names of the machine, its people and its folders.
        on_second: Told the seconds so far, some times a second; False ends the recording there.

    Returns:
        The seconds that were recorded.

    Raises:
        Conflict: The file is there already.
        BadFile: It cannot be written.
    """
    if path != STANDARD_OUTPUT and path.exists() and not replace:
        raise Conflict(f"{path} is there already.", hint="Choose another name, or pass --force to replace it.")
    from gpuconsole.services.desk import Desk
    from gpuconsole.services.recorder import Recorder

    with tempfile.TemporaryDirectory(prefix="gpuconsole-record-") as folder:
        desk = Desk(session, runs_path=Path(folder) / "runs.db")
        recorder = Recorder(desk, path, interval_s=interval_s, names=names)
        recorder.start()
        began = time.monotonic()
        elapsed = 0.0
        try:
            while elapsed < seconds and recorder.failure is None and on_second(elapsed):
                time.sleep(_LOOK_S)
                elapsed = time.monotonic() - began
                view = next((each for each in recorder.seen if each.container.name == check), None)
                if view is not None and elapsed >= check_at_s:
                    desk.check_container(view.container)
                    check = None
        finally:
            recorder.close()
        if recorder.failure is not None and not isinstance(recorder.failure.__cause__, BrokenPipeError):
            raise recorder.failure
        return elapsed


def shipped() -> Path:
    """The recording of a real machine that comes with gpuconsole.

    Raises:
        FileNotFoundError: The installation is damaged.
    """
    package = Path(__file__).resolve().parent.parent
    for path in (package / "recordings" / _SHIPPED, package.parent / "tests" / "fixtures" / _SHIPPED):
        if path.is_file():
            return path
    raise FileNotFoundError("the shipped recording is missing; install gpuconsole again")

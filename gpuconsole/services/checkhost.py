"""The container that an image is checked in: it only waits, and it does not outlive the check, however that ends."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gpuconsole.core.errors import Conflict, ConsoleError, NotFound
from gpuconsole.engine.model import Container
from gpuconsole.engine.protocol import Engine, ExecProcess
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.probes.place import ContainerPlace
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.launching import Launched, LaunchStep, OnStep, Phase, launch
from gpuconsole.services.probeturn import PATIENCE_S
from gpuconsole.services.session import Session

_SPARE_S = 120
"""The container ends by itself this long after the check must have, should nobody be left to end it."""
_REMOVAL_S = 10.0


@dataclass(frozen=True, slots=True)
class _Keeper:
    """A program of the image that keeps the container up, and one that ends it."""

    waits: tuple[str, ...]
    tether: tuple[str, ...]
    """Run beside it with its input held open by us: that input ends when we do, even by SIGKILL, and then the
    container ends too. The first process of a container obeys only signals it has asked for, so ``waits`` does."""


def _keepers(lifetime_s: int) -> Iterator[_Keeper]:
    yield _Keeper(
        ("sh", "-c", f"trap 'exit 0' INT; sleep {lifetime_s} & wait"),
        ("sh", "-c", "cat >/dev/null; kill -INT 1"),
    )
    for python in ContainerPlace.pythons:  # Python asks for SIGINT itself
        yield _Keeper(
            (python, "-c", f"import time; time.sleep({lifetime_s})"),
            (python, "-c", "import os, sys; sys.stdin.buffer.read(); os.kill(1, 2)"),
        )


@contextmanager
def waiting_container(
    session: Session, spec: LaunchSpec, on_step: OnStep, *, cancel: Cancellation, deadline_s: float
) -> Iterator[Container]:
    """A fresh container of an image that only waits, removed at the end of the block.

    Should this process be killed, the container ends within a second and the engine removes it; in the moment between
    its start and the first word with it, it ends by itself once its turn and then ``deadline_s`` must be over.

    Raises:
        NotFound: There is no such image, or nothing in it can be run.
        ConsoleError: It does not stay up, or could not be removed.
    """
    container, tether = _started(
        session, spec, on_step, cancel=cancel, lifetime_s=int(PATIENCE_S + deadline_s) + _SPARE_S
    )
    try:
        yield container
    finally:
        try:
            _remove(session.engine, container)
        finally:
            tether.close()  # should the engine not remove it, it ends now and is removed later


def _started(
    session: Session, spec: LaunchSpec, on_step: OnStep, *, cancel: Cancellation, lifetime_s: int
) -> tuple[Container, _Tether]:
    """By whatever program the image has for waiting."""
    stays_not_up = False
    tell = on_step
    for keeper in _keepers(lifetime_s):
        idle = replace(
            spec,
            name=f"gpuconsole-check-{secrets.token_hex(4)}",
            entrypoint=keeper.waits[:1],
            command=keeper.waits[1:],
            auto_remove=True,
            init=False,
            interactive=False,
        )
        tether = _Tether(session.engine, keeper.tether, tell)
        tell = _silent  # what a further try would say has been said by the first
        try:
            launched: Launched = launch(session, idle, tether.step, cancel=cancel)
        except BaseException as error:
            tether.close()
            if not (isinstance(error, NotFound) and f"program {keeper.waits[0]}" in error.message):
                raise
            continue
        if launched.container is not None and launched.ending is None:
            return launched.container, tether
        tether.close()
        stays_not_up = True
    if stays_not_up:
        raise ConsoleError(
            f"A container of {spec.image} does not stay up to be checked.",
            hint="Launch it with a command that goes on, then check it by its name.",
        )
    raise NotFound(
        f"The image {spec.image} has no Python, so there is nothing to check.",
        hint="Take an image with PyTorch; 'gpuconsole images' shows what is inside.",
    )


class _Tether:
    """Ties a container to this process as soon as it runs, before anything else is done with it."""

    def __init__(self, engine: Engine, command: Sequence[str], on_step: OnStep) -> None:
        self._engine = engine
        self._command = command
        self._on_step = on_step
        self._name = ""
        self._process: ExecProcess | None = None

    def step(self, step: LaunchStep) -> None:
        """Hear of a step of the launch."""
        if step.plan is not None:
            self._name = step.plan.name
        if step.phase is Phase.WATCH:
            with contextlib.suppress(ConsoleError):  # it ended at once, which the launch is about to see
                self._process = self._engine.execute(self._name, self._command)
        self._on_step(step)

    def close(self) -> None:
        """Let go, which ends the container if it is still there."""
        if self._process is not None:
            self._process.close()


def _silent(_: LaunchStep) -> None:
    """Says nothing."""


def _remove(engine: Engine, container: Container) -> None:
    """Remove the check's container, and wait until it is gone."""
    deadline = time.monotonic() + _REMOVAL_S
    while True:
        try:
            engine.remove(container.id, force=True, volumes=True)
        except NotFound:
            return
        except Conflict:
            pass  # its removal on its own end is under way
        if time.monotonic() >= deadline:
            raise ConsoleError(
                f"The container {container.name} of the check is left behind: the engine does not remove it.",
                hint=f"Remove it by 'gpuconsole rm --force {container.name}'.",
            )
        time.sleep(0.1)

"""Launching a container: image, create, start, first second; whatever fails or is interrupted leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from gpuconsole.core.errors import Conflict, ConsoleError, NotFound
from gpuconsole.engine.model import Container
from gpuconsole.engine.protocol import Engine, InteractiveProcess
from gpuconsole.launch.request import name_for
from gpuconsole.launch.spec import Force, LaunchSpec
from gpuconsole.services.access import Access, access_of, write_launch_files
from gpuconsole.services.bringing import ensure_image
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.following import Ending, exit_code_from_events, first_second, follow, now
from gpuconsole.services.gputurn import GpuTurn, take_gpus
from gpuconsole.services.launchrecorder import LaunchRecorder
from gpuconsole.services.obstacles import refuse_taken_name, refuse_taken_ports
from gpuconsole.services.planning import LaunchPlan, plan_launch, renamed, with_image
from gpuconsole.services.preflight import refuse
from gpuconsole.services.pulling import PullState
from gpuconsole.services.session import Session
from gpuconsole.services.undoing import Made
from gpuconsole.services.unstarted import refuse_unstarted

_NAME_TRIES = 5
_NO_KEYS = ""


class Phase(StrEnum):
    """The steps of a launch, in their order."""

    PLAN = "plan"
    IMAGE = "image"
    WAIT = "wait"
    """Its GPUs are not free yet; only where that was asked for."""
    CREATE = "create"
    START = "start"
    WATCH = "watch"
    FOLLOW = "follow"


@dataclass(frozen=True, slots=True)
class LaunchStep:
    """A step was reached, or got further."""

    phase: Phase
    plan: LaunchPlan | None = None
    """What is about to be done; made anew before the container is made, since a pull takes its time."""
    pull: PullState | None = None
    """How far the pull is."""
    access: Access | None = None
    """Where a followed container is used through a browser."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A container that was started."""

    id: str
    plan: LaunchPlan
    container: Container | None
    """As the engine described it last; None when it has ended and was removed."""
    ending: Ending | None = None
    """How it ended, when it did so at once or was followed."""
    access: Access | None = None
    """Where it is used through a browser; None of a kind of work that is not."""
    not_kept: str = ""
    """Why it is not remembered; empty when it is."""

    @property
    def name(self) -> str:
        """The container's name."""
        return self.plan.name


OnStep = Callable[[LaunchStep], None]
OnOutput = Callable[[str, bytes], None]


def launch(
    session: Session,
    spec: LaunchSpec,
    on_step: OnStep,
    *,
    cancel: Cancellation | None = None,
    on_output: OnOutput | None = None,
    when_free: bool = False,
) -> Launched:
    """Launch what ``spec`` says and tell how it stands after its first second, or after its end.

    Args:
        session: Whose GPUs and engine.
        spec: What was asked for.
        on_step: Called as it goes on.
        cancel: Stops it between two steps. Up to the first second nothing is left of it; then it goes on.
        on_output: Follow the container to its end, with its output to this function.
        when_free: Wait until nobody is on the GPUs it is to get.

    Raises:
        Conflict: Its name or a port of it is taken.
        NotFound: Its image does not exist.
        GpuNotFound: Its GPUs do not exist, or cannot be given.
        LaunchRefused: Preflight found what ``--force`` does not lift.
        Cancelled: ``cancel`` was used; the message says what became of it.
        ConsoleError: The engine refused or failed; nothing is left behind, or the message says what.
    """
    cancel = cancel or Cancellation()
    plan = plan_launch(session, spec)
    on_step(LaunchStep(Phase.PLAN, plan=plan))
    engine = session.engine
    # Before a pull of many gigabytes, not after it; the findings have the same, with another exit code.
    refuse_taken_name(engine, spec.name)
    refuse_taken_ports(engine, plan)
    refuse(plan.findings, spec)
    _go_on(cancel, "before anything was made")
    image, pulled = ensure_image(
        session,
        plan.image.fetch,
        policy=spec.pull,
        force=Force.DISK_SPACE in spec.force,
        cancel=cancel,
        on_pull=lambda state: on_step(LaunchStep(Phase.IMAGE, pull=state)),
    )
    turn, recorder = GpuTurn(), LaunchRecorder(spec)
    try:
        # A pull takes minutes, in which the GPUs that were free may have been taken; and now its users are known.
        plan = take_gpus(
            session, spec, plan, turn, cancel=cancel, when_free=when_free, anew=pulled and plan.who is not None,
            on_wait=lambda waiting: on_step(LaunchStep(Phase.WAIT, plan=waiting)),
        )  # fmt: skip
        plan = with_image(plan, image)
        _go_on(cancel, "before anything was made")
        done = _bring_up(engine, plan, on_step, cancel=cancel, on_output=on_output, recorder=recorder, turn=turn)
        return replace(done, not_kept=recorder.problem)
    finally:
        turn.release()
        recorder.settle(engine)
        recorder.close()


def _go_on(cancel: Cancellation, when: str) -> None:
    if cancel.requested:
        raise Cancelled(f"Interrupted {when}: nothing was launched.")


def _bring_up(
    engine: Engine,
    plan: LaunchPlan,
    on_step: OnStep,
    *,
    cancel: Cancellation,
    on_output: OnOutput | None,
    recorder: LaunchRecorder,
    turn: GpuTurn,
) -> Launched:
    """Make and start the container, and watch or follow it."""
    made = Made(engine, plan)
    process: InteractiveProcess | None = None
    ending: Ending | None = None
    started_at = now()
    try:
        token = write_launch_files(engine, plan)
        plan = _create(engine, plan, made, on_step)
        _go_on(cancel, "after the container was made")
        if on_output is not None:
            # Joined before the start, so that the first line is not lost, nor all of a short run with --rm.
            process = engine.attach(made.container_id, size=None, detach_keys=_NO_KEYS)
        on_step(LaunchStep(Phase.START))
        recorder.begin(plan)
        engine.start(made.container_id)
        turn.release()
        _go_on(cancel, "just after the start")
        if process is None:
            on_step(LaunchStep(Phase.WATCH))
            ending = first_second(engine, made.container_id, started_at=started_at)
            _go_on(cancel, "just after the start")
            refuse_unstarted(ending, plan.request, followed=False)
        recorder.started(made.container_id)
    except BaseException as error:
        if process is not None:
            process.close()
        recorder.failed(engine, made.container_id, error, exit_code=ending.exit_code if ending else None)
        made.undo(error)
        if isinstance(error, Conflict):
            refuse_taken_ports(engine, plan)
        raise
    if process is not None and on_output is not None:
        on_step(LaunchStep(Phase.FOLLOW, access=access_of(plan, _described(engine, made.container_id), token)))
        ending = follow(
            engine,
            made.container_id,
            process,
            name=plan.name,
            started_at=started_at,
            on_output=on_output,
            cancel=cancel,
        )
        try:
            refuse_unstarted(ending, plan.request, followed=True)
        except ConsoleError as error:
            recorder.failed(engine, made.container_id, error, exit_code=ending.exit_code)
            made.undo(error)
            raise
    settled = _settled(engine, made.container_id, plan, ending, started_at=started_at)
    return replace(settled, access=access_of(plan, settled.container, token))


def _described(engine: Engine, container_id: str) -> Container | None:
    try:
        return engine.container(container_id)
    except ConsoleError:  # it has ended already, and was removed on its end
        return None


def _create(engine: Engine, plan: LaunchPlan, made: Made, on_step: OnStep) -> LaunchPlan:
    """Make the container; a name of ours that is taken is made anew."""
    on_step(LaunchStep(Phase.CREATE, plan=plan))
    for attempt in range(_NAME_TRIES):
        try:
            made.container_id, made.name = engine.create(plan.request), plan.name
        except Conflict:
            if plan.spec.name is not None or attempt == _NAME_TRIES - 1:
                raise
            plan = renamed(plan, name_for(plan.spec))
            on_step(LaunchStep(Phase.CREATE, plan=plan))
        else:
            return plan
    raise AssertionError("the loop returns or raises")


def _settled(
    engine: Engine, container_id: str, plan: LaunchPlan, ending: Ending | None, *, started_at: float
) -> Launched:
    if ending is not None:
        return Launched(container_id, plan, ending.container, ending)
    try:
        return Launched(container_id, plan, engine.container(container_id))
    except NotFound:  # it ended just now, and was removed on its end
        code = exit_code_from_events(engine, container_id, since=started_at)
        return Launched(container_id, plan, None, Ending(code))

"""A build as a run: told as it goes on, remembered with what came of it; and the check of what was built."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpuconsole.core.document import document
from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.core.text import duration, plain_line, size
from gpuconsole.services.building import Built, build_image
from gpuconsole.services.buildmeter import BuildState
from gpuconsole.services.buildorders import BuildOrder, Chosen
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.runs import RunKind, Runs, RunState

if TYPE_CHECKING:
    from gpuconsole.probes.records import CheckReport, Record
    from gpuconsole.services.launching import OnStep
    from gpuconsole.services.pullqueue import Holder
    from gpuconsole.services.session import Session

_NEWS_S = 0.2
_LOG = 60
"""Lines of the log that are remembered with the run."""


def build_as_run(
    session: Session,
    order: BuildOrder,
    runs: Runs,
    *,
    cancel: Cancellation,
    chosen: Chosen,
    on_state: Callable[[BuildState], None] = lambda state: None,
    on_begin: Callable[[str], None] = lambda run_id: None,
) -> Built:
    """Build what is ordered, as a run; see :func:`gpuconsole.services.building.build_image`.

    Args:
        session: Whose engine.
        order: What to build.
        runs: Where it is shown and remembered.
        cancel: Ends it.
        chosen: What the order comes to.
        on_state: Told how far it is, on this thread.
        on_begin: Told the run's id.
    """
    run_id = runs.begin(RunKind.BUILD, chosen.name, "", "begins")
    on_begin(run_id)
    told_at = 0.0
    last = BuildState(chosen.name)

    def tell(state: BuildState) -> None:
        nonlocal told_at, last
        last = state
        if time.monotonic() - told_at >= _NEWS_S:
            told_at = time.monotonic()
            runs.advance(run_id, plain_line(str(state)), state.share)
        on_state(state)

    try:
        built = build_image(session, order, cancel=cancel, on_state=tell, chosen=chosen)
    except ConsoleError as error:
        state = RunState.CANCELLED if cancel.requested else RunState.FAILED
        words = f"{error.message} → {error.hint}" if error.hint else error.message
        runs.end(run_id, state, words, _failure(chosen, last, error))
        raise
    except Exception as error:
        words = plain_line(f"gpuconsole itself failed: {type(error).__name__}: {error}")
        runs.end(run_id, RunState.FAILED, words, _failure(chosen, last, ConsoleError(words), code=ExitCode.INTERNAL))
        raise
    sentence = f"{built.name} is built ({size(built.image.size_bytes)}, {duration(built.seconds)})"
    runs.end(run_id, RunState.OK, sentence, document("build", **built_part(built)), subject_id=built.image.id)
    return built


def start_build(
    session: Session,
    order: BuildOrder,
    runs: Runs,
    *,
    chosen: Chosen,
    holder: Holder,
    on_end: Callable[[Built | ConsoleError], None],
    on_state: Callable[[BuildState], None] = lambda state: None,
) -> None:
    """Build on a thread of its own; returns at once.

    Args:
        session: Whose engine.
        order: What to build.
        runs: Where it is shown and remembered.
        chosen: What the order comes to: :func:`gpuconsole.services.building.chosen_for`.
        holder: Cancels it.
        on_end: Told on that thread what came of it.
        on_state: Told on that thread how far it is.
    """
    cancel = Cancellation()

    def work() -> None:
        run_id = ""

        def begun(new: str) -> None:
            nonlocal run_id
            run_id = new
            holder.hold(new, cancel, threading.current_thread())

        outcome: Built | ConsoleError
        try:
            outcome = build_as_run(
                session, order, runs, cancel=cancel, chosen=chosen, on_state=on_state, on_begin=begun
            )
        except ConsoleError as error:
            outcome = error
        except Exception as error:  # noqa: BLE001 (the thread must not end in silence)
            outcome = ConsoleError(
                plain_line(f"gpuconsole itself failed at building ({type(error).__name__}: {error})."),
                hint="Build again.",
            )
        finally:
            holder.let_go(run_id)
        on_end(outcome)

    threading.Thread(target=work, name=f"build-{chosen.name}", daemon=True).start()


def check_built(
    session: Session,
    built: Built,
    runs: Runs,
    *,
    gpus: str | None,
    on_record: Callable[[Record], None],
    on_step: OnStep,
    cancel: Cancellation,
) -> CheckReport:
    """Check what was built in a container of its own, as a run of kind CHECK about the new image.

    Args:
        session: Whose GPUs and engine.
        built: What was built.
        runs: Where it is remembered.
        gpus: Which GPUs, as ``--gpus`` has it; None takes what a check of an image takes.
        on_record: Called at each step and result.
        on_step: Called at each step of the launch before them.
        cancel: Ends it at any moment.

    Raises:
        Cancelled: ``cancel`` was used; the image stays.
        ConsoleError: The container could not be started.
    """
    from gpuconsole.launch.fields import Surroundings
    from gpuconsole.launch.options import LaunchOptions, read_options
    from gpuconsole.services.checking import check_image
    from gpuconsole.services.checkruns import conclusion
    from gpuconsole.services.probeprogress import ProbeProgress

    spec = read_options(
        LaunchOptions(image=built.image.id, gpus=gpus), Surroundings.current(engine_is_local=session.endpoint.local)
    )
    run_id = runs.begin(RunKind.CHECK, built.name, built.image.id, "begins")
    progress = ProbeProgress()

    def tell(record: Record) -> None:
        runs.advance(run_id, *progress.add(record))
        on_record(record)

    try:
        report = check_image(session, spec, tell, on_step=on_step, cancel=cancel, called=built.name)
    except BaseException as error:
        state = RunState.CANCELLED if cancel.requested else RunState.FAILED
        runs.end(run_id, state, plain_line(error.message if isinstance(error, ConsoleError) else str(error)))
        raise
    runs.end(run_id, *conclusion(report))
    return report


def built_part(built: Built) -> dict[str, Any]:
    """What was built, for a document."""
    recipe = built.recipe
    return {
        "event": "built",
        "tag": built.name,
        "id": built.image.id,
        "torch": f"{recipe.torch}+{recipe.build}",
        "torchvision": recipe.vision,
        "torchaudio": recipe.audio,
        "cuda": recipe.cuda,
        "base": recipe.base,
        "index_url": recipe.index_url,
        "torch_index_url": recipe.torch_index_url,
        "size_bytes": built.image.size_bytes,
        "replaced_id": built.replaced_id,
        "seconds": round(built.seconds, 1),
        "dockerfile": built.dockerfile,
        "log": built.log[-_LOG:],
    }


def _failure(chosen: Chosen, last: BuildState, error: ConsoleError, *, code: ExitCode | None = None) -> str:
    return document(
        "build",
        event="failed",
        tag=chosen.name,
        torch=f"{chosen.recipe.torch}+{chosen.recipe.build}",
        cuda=chosen.recipe.cuda,
        base=chosen.recipe.base,
        step=last.step,
        steps=last.steps,
        message=error.message,
        hint=error.hint,
        exit_code=int(code or error.exit_code),
        log=error.detail.splitlines()[-_LOG:],
    )

"""What a launch would be, and everything in its way, field by field; nothing is changed by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, GpuNotFound, Refused
from gpuconsole.launch.changes import Change
from gpuconsole.launch.gpupath import NoGpuPath
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.preflight import Finding, Severity
from gpuconsole.launch.spec import FieldProblem, Force, LaunchSpec, SpecInvalid
from gpuconsole.launch.units import units_of
from gpuconsole.services.imagenames import local_image
from gpuconsole.services.planning import LaunchPlan, plan_launch

if TYPE_CHECKING:
    from gpuconsole.engine.model import Image
    from gpuconsole.services.session import Session


@dataclass(frozen=True, slots=True)
class Weight:
    """What options amount to."""

    problems: tuple[FieldProblem, ...] = ()
    """What is wrong with a field, so that nothing could be planned."""
    findings: tuple[Finding, ...] = ()
    """What is likely to go wrong, refusals first; of the plan, or why there is none."""
    force: frozenset[Force] = frozenset()
    """The refusals that were lifted."""
    failure: ConsoleError | None = None
    """Why it could not be told at all."""
    plan: LaunchPlan | None = None
    """None when a field is wrong or the GPUs cannot be given."""
    image: Image | None = None
    """The local image."""
    to_pull: bool = False
    """The image is not here."""


def spec_of(session: Session, options: LaunchOptions) -> LaunchSpec:
    """The spec of ``options``, as they were written on this machine. It looks at files, so it can take its time.

    Raises:
        SpecInvalid: With every field that cannot be used.
        NotFound: The folder this program works in is gone.
    """
    return read_options(options, session.surroundings())


def weigh(session: Session, options: LaunchOptions, *, name: str | None = None, taken: Iterable[str] = ()) -> Weight:
    """What ``options`` amount to now.

    Args:
        session: Whose GPUs and engine.
        options: What was typed.
        name: The name made earlier, so that it stays while the rest is typed.
        taken: Variables of the shell whose values a profile has put in.
    """
    try:
        spec = replace(spec_of(session, options), taken=frozenset(taken))
    except SpecInvalid as error:
        known = (
            None if any(each.field == "IMAGE" for each in error.problems) else _local_or_none(session, options.image)
        )
        return Weight(problems=error.problems, image=known)
    except ConsoleError as error:
        return Weight(failure=error)
    try:
        engine = session.engine
        engine.info()  # what it refuses here is not the GPUs' fault
        image = local_image(engine, spec.image)
    except ConsoleError as error:
        return Weight(failure=error)
    try:
        plan = plan_launch(session, spec, name=name)
    except (GpuNotFound, Refused) as error:
        return Weight(findings=(_no_gpus(session, error),), force=spec.force, image=image, to_pull=image is None)
    except SpecInvalid as error:
        return Weight(problems=error.problems, image=image, to_pull=image is None)
    except ConsoleError as error:
        return Weight(failure=error)
    return Weight(findings=plan.findings, force=spec.force, plan=plan, image=image, to_pull=image is None)


def _no_gpus(session: Session, error: GpuNotFound | Refused) -> Finding:
    """Why the GPUs cannot be given, as the preflight rule of that name has it."""
    field, told, hint = "--gpus", error.message, error.hint
    if isinstance(error, Refused):
        none = Change("gpus", "none")
        return Finding("engine-not-local", Severity.REFUSE, field, told, hint, none, forceable=True)
    if isinstance(error, NoGpuPath):
        return Finding("gpu-wiring", Severity.REFUSE, field, told, hint)
    some = bool(units_of(session.gpus.snapshot()))
    return Finding("gpu-missing", Severity.REFUSE, field, told, hint, Change("gpus", "auto") if some else None)


def _local_or_none(session: Session, reference: str) -> Image | None:
    try:
        return local_image(session.engine, reference)
    except ConsoleError:
        return None

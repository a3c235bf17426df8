"""What a launch would be, and everything in its way, field by field; nothing is changed by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, GpuNotFound, Refused
from gpuconsole.core.text import plain_line
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.preflight import Finding, standing
from gpuconsole.launch.spec import FieldProblem, LaunchSpec, SpecInvalid
from gpuconsole.services.imagenames import local_image
from gpuconsole.services.planning import LaunchPlan, plan_launch

if TYPE_CHECKING:
    from gpuconsole.engine.model import Image
    from gpuconsole.services.session import Session


@dataclass(frozen=True, slots=True)
class Weight:
    """What options amount to."""

    problems: tuple[FieldProblem, ...] = ()
    """What is wrong with a field, or in its way."""
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


def weigh(session: Session, options: LaunchOptions, *, name: str | None = None) -> Weight:
    """What ``options`` amount to now.

    Args:
        session: Whose GPUs and engine.
        options: What was typed.
        name: The name made earlier, so that it stays while the rest is typed.
    """
    try:
        spec = spec_of(session, options)
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
        return Weight(problems=(_problem("--gpus", error),), image=image, to_pull=image is None)
    except SpecInvalid as error:
        return Weight(problems=error.problems, image=image, to_pull=image is None)
    except ConsoleError as error:
        return Weight(failure=error)
    refusals = tuple(_refusal(finding) for finding in standing(plan.findings, spec.force))
    return Weight(problems=refusals, plan=plan, image=image, to_pull=image is None)


def _refusal(finding: Finding) -> FieldProblem:
    return FieldProblem(finding.field, plain_line(f"{finding.sentence} {finding.remedy}").rstrip("."))


def _local_or_none(session: Session, reference: str) -> Image | None:
    try:
        return local_image(session.engine, reference)
    except ConsoleError:
        return None


def _problem(field: str, error: ConsoleError) -> FieldProblem:
    return FieldProblem(field, plain_line(f"{error.message} {error.hint or ''}").rstrip("."))

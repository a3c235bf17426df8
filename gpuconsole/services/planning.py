"""What a launch would do, decided from the spec, the engine and this machine's GPUs; nothing is changed by it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from gpuconsole.core.errors import ConsoleError, EngineUnavailable, GpuNotFound, Refused
from gpuconsole.engine.model import EngineInfo, GpuPath, Image
from gpuconsole.engine.request import CreateRequest
from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.host.cdi import DEFAULT_DIRS
from gpuconsole.host.memorygroup import MemoryGroup
from gpuconsole.launch.changes import Change
from gpuconsole.launch.claims import Claims, claims_of
from gpuconsole.launch.gpupath import GpuRoute, choose_gpu_path
from gpuconsole.launch.gpus import GpuChoice, choose_gpus, is_free
from gpuconsole.launch.labels import LAUNCH
from gpuconsole.launch.preflight import Finding, Said
from gpuconsole.launch.references import NO_REFERENCES, References
from gpuconsole.launch.render import DockerRun, render
from gpuconsole.launch.request import build_request, hides_init, name_for
from gpuconsole.launch.spec import FieldProblem, Force, GpuWish, GpuWishKind, LaunchSpec, SpecInvalid
from gpuconsole.launch.units import units_of
from gpuconsole.launch.work import TOKEN_NAME, Kind
from gpuconsole.services.enginememory import shared_limit
from gpuconsole.services.identities import Named, named
from gpuconsole.services.notebooks import needs_token, token_mount
from gpuconsole.services.preflight import preflight, warnings
from gpuconsole.services.session import Session
from gpuconsole.services.startingimage import UNKNOWN, StartingImage, starting_image
from gpuconsole.services.suitability import unsuitable_advice
from gpuconsole.services.tagadvice import latest_advice
from gpuconsole.services.workports import work_port

_NOT_LOCAL = "The engine at {endpoint} is not on this machine, and GPUs are chosen from this machine's"


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """A launch, decided."""

    spec: LaunchSpec
    request: CreateRequest
    info: EngineInfo
    choice: GpuChoice
    route: GpuRoute
    """Of the path ``none`` without GPUs."""
    notes: tuple[str, ...] = ()
    """Sentences about what may not be meant."""
    image: StartingImage = UNKNOWN
    """Which image, and by which digest."""
    who: Named | None = None
    """Who runs it, when that is the caller."""
    port: int = 0
    """The host's port of a kind of work that is used through one; 0 until the engine chooses it."""
    memory_group: MemoryGroup | None = None
    """The limit that all containers of the engine share, where it is less than the machine has."""
    findings: tuple[Finding, ...] = ()
    """What is likely to go wrong with it, refusals first."""

    @property
    def name(self) -> str:
        """The container's name."""
        return self.request.name or ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Which GPUs and which way, and why; and who runs it, where that is the caller."""
        user = self.who.identity.reason if self.who is not None else ""
        return tuple(reason for reason in (self.choice.reason, self.route.reason, user) if reason)

    @property
    def own_files(self) -> tuple[str, ...]:
        """Small files of ours that the container is given, on this machine."""
        token = (token_mount(self.request.labels[LAUNCH]),) if needs_token(self.spec) else ()
        return tuple(mount.source for mount in (*(self.who.mounts if self.who else ()), *token))

    def docker_run(
        self, *, foreground: bool = False, hide_values: bool = False, references: References = NO_REFERENCES
    ) -> DockerRun:
        """The ``docker run`` that does the same."""
        return render(self.request, self.spec, foreground=foreground, hide_values=hide_values, references=references)


def plan_launch(session: Session, spec: LaunchSpec, *, name: str | None = None) -> LaunchPlan:
    """Decide which GPUs ``spec`` gets, by which way, under which name.

    Args:
        session: Whose GPUs and engine.
        spec: What was asked for.
        name: The name decided earlier, to plan the same launch once more.

    Raises:
        GpuNotFound: The GPUs that were asked for are not there, or cannot be given.
        Refused: GPUs were asked of an engine elsewhere.
        EngineUnavailable: No engine answers.
        SpecInvalid: More is asked for than the engine's machine has.
        BadFile: The folder's lock file has mistakes.
    """
    info = session.engine.info()
    _refuse_beyond_machine(spec, info)
    _refuse_token_elsewhere(spec, info)
    given = _gpus(session, spec, info)
    choice, route, notes = given.choice, given.route, given.notes
    image = starting_image(session.engine, spec.image)
    who = named(spec, info, image.image)
    port = work_port(session.engine, spec, info)
    word = secrets.token_hex(8)
    group = None if session.recorded else shared_limit(info)
    built = build_request(
        spec,
        name=name or name_for(spec),
        info=info if group is None else replace(info, memory_bytes=group.limit_bytes),
        choice=choice,
        route=route,
        identity=who.identity if who else None,
        files=(*(who.mounts if who else ()), *((token_mount(word),) if needs_token(spec) else ())),
        port=port,
        word=word,
    )
    request = image.in_request(built)
    gpus = tuple({unit.gpu.index: unit.gpu for unit in choice.units}.values())
    fetch = image.fetch if image.image else spec.image
    unfit = unsuitable_advice(session, fetch, gpus=gpus, path=route.path, info=info)
    latest = None if image.lock else latest_advice(session, spec.image)
    about_user = who.identity.notes if who else ()
    said = (*image.notes, *notes, *choice.notes, *about_user, *_notes(spec, info))
    plan = LaunchPlan(spec, request, info, choice, route, said, image, who, port, group)
    findings = preflight(session, plan, unfit=unfit, moving=latest, shortage=given.shortage, wiring=given.wiring)
    return replace(plan, findings=findings, notes=(*said, *warnings(findings, spec.force)))


def _refuse_beyond_machine(spec: LaunchSpec, info: EngineInfo) -> None:
    if spec.cpus is not None and info.cpus is not None and spec.cpus > info.cpus:
        told = f"{spec.cpus:g} is more than the {info.cpus} CPUs of the engine's machine; give {info.cpus} at most"
        raise SpecInvalid([FieldProblem("--cpus", told, change=Change("cpus", None))])


def _refuse_token_elsewhere(spec: LaunchSpec, info: EngineInfo) -> None:
    if needs_token(spec) and not info.local:
        told = (
            "Jupyter's token is handed over in a file, and the engine is not on this machine; write one into a file "
            f"there, and give it by --secret {TOKEN_NAME}=FILE"
        )
        raise SpecInvalid([FieldProblem("--kind", told)])


def chosen_freely(spec: LaunchSpec) -> bool:
    """Whether the GPUs were left to us, so that a choice may be made anew."""
    return spec.gpus is None or spec.gpus.kind in (GpuWishKind.AUTO, GpuWishKind.COUNT)


@dataclass(frozen=True, slots=True)
class _Given:
    """The GPUs of a launch; without any, why."""

    choice: GpuChoice = GpuChoice()  # noqa: RUF009  # frozen
    route: GpuRoute = GpuRoute(GpuPath.NONE, "")  # noqa: RUF009  # frozen
    notes: tuple[str, ...] = ()
    shortage: Said | None = None
    wiring: Said | None = None


def _gpus(session: Session, spec: LaunchSpec, info: EngineInfo) -> _Given:
    # Curves are drawn without a GPU; one held for that would be held for days.
    nobody = spec.work.kind is Kind.TENSORBOARD
    wish = spec.gpus or GpuWish(GpuWishKind.NONE if nobody else GpuWishKind.AUTO)
    if wish.kind is GpuWishKind.NONE:
        return _Given()
    if not info.local and Force.ENGINE_NOT_LOCAL not in spec.force:
        told = _NOT_LOCAL.format(endpoint=info.endpoint)
        if spec.gpus is None:
            return _Given(notes=(f"{told}; so it gets none.",))
        raise Refused(
            f"{told}.", hint="Launch with --gpus none, or pass --force engine-not-local if both have the same GPUs."
        )
    snapshot = session.gpus.snapshot()
    claims, notes = _claims(session, snapshot) if snapshot.gpus else ({}, ())
    choice = None
    try:
        choice = choose_gpus(wish, snapshot, claims)
        facts = session.launch_facts(info.cdi_spec_dirs or DEFAULT_DIRS)
        route = choose_gpu_path(info, facts, choice=choice, wanted=spec.gpu_path)
    except GpuNotFound as error:
        if spec.gpus is not None or spec.gpu_path is not None:
            raise
        # Who has GPUs and cannot give them wants to know the remedy; who has none does not.
        said = Said(error.message, (error.hint or "") if units_of(snapshot) else "")
        return _Given(shortage=said) if choice is None else _Given(wiring=said)
    return _Given(choice, route, notes)


def with_gpus_now(session: Session, plan: LaunchPlan) -> LaunchPlan | None:
    """The same plan with its GPUs as they are now; None when what it was decided from has changed.

    Raises:
        ConsoleError: The engine or the driver does not answer.
    """
    try:
        given = _gpus(session, plan.spec, plan.info)
    except GpuNotFound:
        return None  # planning says what is missing
    before, now = plan.choice, given.choice
    free = [[is_free(unit) for unit in choice.units] for choice in (before, now)]
    if now.uuids != before.uuids or given.route != plan.route or free[0] != free[1]:
        return None
    return replace(plan, choice=now)


def _claims(session: Session, snapshot: GpuSnapshot) -> tuple[Claims, tuple[str, ...]]:
    """Whom the engine gave which GPUs; of one that does not tell, the sentence that says so."""
    try:
        return claims_of(session.engine.containers(everything=False), snapshot.gpus), ()
    except EngineUnavailable:
        raise
    except ConsoleError as error:
        return {}, (f"It is not known which GPUs other containers were given: {error.message}",)


def _notes(spec: LaunchSpec, info: EngineInfo) -> tuple[str, ...]:
    notes: list[str] = []
    if spec.init and hides_init(spec.mounts):
        notes.append("A mount lies over /sbin, so the container runs without the engine's init.")
    if not info.local and any(mount.kind == "bind" for mount in spec.mounts):
        notes.append(f"The folders to mount are those of the engine's machine ({info.endpoint}), not of this one.")
    named = [mount.source for mount in spec.mounts if mount.kind == "volume" and info.local]
    notes.extend(
        f"{name} is a named volume; the folder of that name here is written ./{name}."
        for name in named
        if Path(name).is_dir()
    )
    if spec.work.kind is Kind.TENSORBOARD:
        notes.append("TensorBoard knows no password: every user of this machine can open it.")
    if spec.work.nodes and spec.work.nodes > 1 and spec.network != "host":
        notes.append("Machines that work together reach each other's ports: launch with --network host on each.")
    return tuple(notes)


def with_image(plan: LaunchPlan, image: Image) -> LaunchPlan:
    """The same launch, now that its image is here."""
    found = plan.image.found(image)
    return replace(plan, image=found, request=found.in_request(plan.request))


def renamed(plan: LaunchPlan, name: str) -> LaunchPlan:
    """The same launch under another name."""
    return replace(plan, request=replace(plan.request, name=name))

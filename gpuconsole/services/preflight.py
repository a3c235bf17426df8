"""What the preflight rules look at, gathered for one planned launch; and the refusal that comes of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuconsole.core.errors import Conflict, ConsoleError, ExitCode, Refused
from gpuconsole.core.text import plain_line
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.launch.preflight import Facts, Finding, Folder, Said, Severity, examine, standing
from gpuconsole.launch.spec import PullPolicy, VariableSource
from gpuconsole.services.isolation import device_facts, engine_group, engine_sockets, volume_folders
from gpuconsole.services.secrets import MASK, mask_arguments, mask_value

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.host.model import Holder, HostView
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.planning import LaunchPlan
    from gpuconsole.services.session import Session

_LABELLED = "name=selinux"
_MOST_HOLDERS = 4
_MISSING = ("path-missing", "device-missing")


class LaunchRefused(Refused):
    """Preflight stands in the way; ``findings`` are the refusals."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        told = [finding.sentence for finding in findings]
        fixes = [finding.remedy for finding in findings if finding.remedy]
        super().__init__(" ".join(told), hint=" ".join(fixes) or "Correct it and launch again.")


class LaunchMissing(LaunchRefused):
    """Nothing stands in the way but paths and devices that are not there."""

    exit_code = ExitCode.NOT_FOUND


def preflight(
    session: Session,
    plan: LaunchPlan,
    *,
    unfit: Said | None = None,
    moving: Said | None = None,
    shortage: Said | None = None,
    wiring: Said | None = None,
) -> tuple[Finding, ...]:
    """What is likely to go wrong with a planned launch.

    Args:
        session: Whose GPUs and engine.
        plan: The launch.
        unfit: The image will not run on the chosen GPUs.
        moving: The reference means another image with every release.
        shortage: Why there are no GPUs to give.
        wiring: Why those that there are cannot be brought into it.
    """
    facts = _facts(session, plan)
    return examine(replace(facts, unfit=unfit, moving=moving, shortage=shortage, wiring=wiring))


def refuse(findings: tuple[Finding, ...], spec: LaunchSpec) -> None:
    """Go on only when no refusal stands.

    Raises:
        LaunchRefused: One does, and ``--force`` does not lift it.
    """
    if found := standing(findings, spec.force):
        missing = all(finding.slug in _MISSING for finding in found)
        raise (LaunchMissing if missing else LaunchRefused)(found)


def warnings(findings: tuple[Finding, ...], force: Iterable[str] = ()) -> tuple[str, ...]:
    """What is said and stands in no way, a line each; of the refusals those that ``force`` lifts."""
    stands = standing(findings, force)
    return tuple(
        finding.sentence if finding.severity is Severity.REFUSE else f"{finding.sentence} {finding.fix}".rstrip()
        for finding in findings
        if finding not in stands
    )


def _facts(session: Session, plan: LaunchPlan) -> Facts:
    info, local = plan.info, plan.info.local and not session.recorded
    home = os.path.expanduser("~")
    home = os.path.realpath(home) if local else home  # as the mounts are known: /home may lead to a larger disk
    needed, free = _disk(plan, session.pull_space.promised()) if local else (None, None)
    snapshot = session.gpus.snapshot() if plan.choice.units else None
    behind = {} if session.recorded else volume_folders(session.engine, plan.spec)
    paths = (*(mount.source for mount in plan.spec.mounts if mount.kind == "bind"), *behind.values())
    return Facts(
        spec=plan.spec,
        request=plan.request,
        info=info,
        choice=plan.choice,
        route=plan.route,
        machine=_machine(session, info) if plan.choice.units and local else LaunchFacts(),
        gpus=snapshot.gpus if snapshot is not None else (),
        holders=_holders(session, plan) if local else {},
        uid=os.getuid(),
        home=home,
        image=plan.image.image,
        needed_bytes=needed,
        disk_free_bytes=free,
        name_taken=_name_taken(session, plan),
        ports_taken=() if session.recorded else _ports_taken(session, plan),
        memory_available_bytes=_available() if local else None,
        folders=_folders(paths) if local else {},
        devices=device_facts(plan.spec) if local else {},
        volume_folders=behind,
        sockets=engine_sockets(paths, info, home=home) if local else {},
        engine_gid=engine_group(info) if local else None,
        memory_group=plan.memory_group,
        selinux=local and _selinux(info),
        secrets_written=_secrets(plan.spec),
    )


def _disk(plan: LaunchPlan, promised: int = 0) -> tuple[int | None, int | None]:
    """Bytes that a pull takes, as far as that is known without asking a registry, and those that are free.

    Args:
        plan: The launch.
        promised: Bytes that pulls under way have yet to fill, so that they are free no more.
    """
    from gpuconsole.services.pullobstacles import room

    to_pull = plan.image.image is None and plan.spec.pull is not PullPolicy.NEVER
    space = room(plan.info, (_download(plan) or 0) if to_pull else 0)
    return (space.needed_bytes or None, max(0, space.free_bytes - promised)) if space is not None else (None, None)


def _download(plan: LaunchPlan) -> int | None:
    """What a pull brings: by the lock file that pins it, else by what its registry said to 'catalog verify'."""
    from gpuconsole.images.pins import pin_of
    from gpuconsole.services.catalog import load_catalog
    from gpuconsole.services.pullobstacles import platform_of

    try:
        pin = pin_of(plan.image.written, plan.image.lock.pins()) if plan.image.lock else None
        if pin is not None:
            return pin.download_bytes
        known = load_catalog().find(plan.spec.image)
    except ConsoleError:
        return None
    return (known.sizes or {}).get(platform_of(plan.info) or "") if known is not None else None


def _name_taken(session: Session, plan: LaunchPlan) -> Said | None:
    from gpuconsole.services.obstacles import refuse_taken_name

    try:
        refuse_taken_name(session.engine, plan.spec.name)
    except Conflict as error:
        return Said(error.message, error.hint or "")
    except ConsoleError:
        return None  # the launch itself meets it
    return None


def _ports_taken(session: Session, plan: LaunchPlan) -> tuple[Said, ...]:
    from gpuconsole.launch.preflight_work import republished
    from gpuconsole.services.obstacles import taken_ports

    try:
        return tuple(
            Said(taken.message, taken.hint, republished(plan.spec, taken.port, host_port=taken.free or 0))
            for taken in taken_ports(session.engine, plan)
        )
    except ConsoleError:
        return ()


def _machine(session: Session, info: EngineInfo) -> LaunchFacts:
    from gpuconsole.host.cdi import DEFAULT_DIRS

    return session.launch_facts(info.cdi_spec_dirs or DEFAULT_DIRS)


def _holders(session: Session, plan: LaunchPlan) -> Mapping[str, tuple[str, ...]]:
    """Who is on the chosen GPUs; nobody is asked when they are idle."""
    if not any(unit.compute_processes for unit in plan.choice.units):
        return {}
    from gpuconsole.services.overview import overview

    view = overview(session, names=_names(session))
    return {unit.uuid: _on(view, unit.uuid) for unit in plan.choice.units}


def _names(session: Session) -> Mapping[str, str]:
    try:
        return {container.id: container.name for container in session.engine.containers(everything=False)}
    except ConsoleError:
        return {}


def _on(view: HostView, uuid: str) -> tuple[str, ...]:
    found = [holder for each in view.gpus for holder in each.holders if uuid in (each.gpu.uuid, holder.mig_uuid)]
    found.sort(key=lambda holder: -(holder.memory_bytes or 0))
    return tuple(_words(holder) for holder in found[:_MOST_HOLDERS])


def _words(holder: Holder) -> str:
    from gpuconsole.core.text import shorten, size

    who = f"container {holder.container_name}" if holder.container_name else shorten(holder.command or "a process", 40)
    parts = [f"pid {holder.pid}", *([size(holder.memory_bytes)] if holder.memory_bytes is not None else [])]
    owner = f" of {holder.user}" if holder.user else ""
    return f"{who}{owner} ({', '.join(parts)})"


def _available() -> int | None:
    import psutil

    try:
        return int(psutil.virtual_memory().available)
    except (psutil.Error, OSError):
        return None


def _folders(paths: Iterable[str]) -> Mapping[str, Folder]:
    from gpuconsole.host.folders import look, mount_table

    mounts = mount_table()
    found = {}
    for path in paths:
        facts = look(path, mounts=mounts)
        found[path] = Folder(facts.exists, facts.readable, facts.owner_uid, facts.filesystem, facts.real)
    return found


def _selinux(info: EngineInfo) -> bool:
    from gpuconsole.host.folders import selinux_enforced

    return any(_LABELLED in option for option in info.security_options) and selinux_enforced()


def _secrets(spec: LaunchSpec) -> Mapping[str, tuple[str, ...]]:
    """What was written and is a secret: in the command, in variables, in labels."""
    written = tuple((each.name, each.value) for each in spec.variables if each.source is VariableSource.WRITTEN)
    found = {
        "COMMAND": ("the command",) if any(MASK in word for word in mask_arguments(spec.command)) else (),
        "--env": tuple(name for name, value in written if mask_value(name, value) != value),
        "--label": tuple(f"label {plain_line(key)}" for key, value in spec.labels if mask_value(key, value) != value),
    }
    return {option: names for option, names in found.items() if names}

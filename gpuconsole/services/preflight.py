"""What the preflight rules look at, gathered for one planned launch; and the refusal that comes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, Refused
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.launch.preflight import Facts, Finding, Folder, Severity, examine, standing
from gpuconsole.launch.spec import VariableSource
from gpuconsole.services.secrets import MASK, mask_arguments, mask_value

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.host.model import Holder, HostView
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.planning import LaunchPlan
    from gpuconsole.services.session import Session

_LABELLED = "name=selinux"
_MOST_HOLDERS = 4


class LaunchRefused(Refused):
    """Preflight stands in the way; ``findings`` are the refusals."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        told = [finding.sentence for finding in findings]
        fixes = [finding.fix for finding in findings if finding.fix]
        super().__init__(" ".join(told), hint=" ".join(fixes) or "Correct it and launch again.")


def preflight(session: Session, plan: LaunchPlan, *, unfit: str = "", moving: str = "") -> tuple[Finding, ...]:
    """What is likely to go wrong with a planned launch.

    Args:
        session: Whose GPUs and engine.
        plan: The launch.
        unfit: A sentence when the image will not run on the chosen GPUs.
        moving: A sentence when the reference means another image with every release.
    """
    return examine(_facts(session, plan, unfit=unfit, moving=moving))


def refuse(findings: tuple[Finding, ...], spec: LaunchSpec) -> None:
    """Go on only when no refusal stands.

    Raises:
        LaunchRefused: One does, and ``--force`` does not lift it.
    """
    if found := standing(findings, spec.force):
        raise LaunchRefused(found)


def warnings(findings: tuple[Finding, ...]) -> tuple[str, ...]:
    """What is said and stands in no way, a line each; refusals that were lifted among them."""
    return tuple(
        f"{finding.sentence} {finding.fix}".rstrip()
        for finding in findings
        if finding.severity is Severity.WARN or finding.forceable
    )


def _facts(session: Session, plan: LaunchPlan, *, unfit: str, moving: str) -> Facts:
    info, local = plan.info, plan.info.local
    snapshot = session.gpus.snapshot() if plan.choice.units else None
    return Facts(
        spec=plan.spec,
        request=plan.request,
        info=info,
        choice=plan.choice,
        route=plan.route,
        machine=_machine(session, info) if plan.choice.units and local else LaunchFacts(),
        gpus=snapshot.gpus if snapshot is not None else (),
        holders=_holders(session, plan),
        uid=os.getuid(),
        home=os.path.expanduser("~"),
        image=plan.image.image,
        unfit=unfit,
        moving=moving,
        memory_available_bytes=_available() if local else None,
        folders=_folders(plan.spec) if local else {},
        selinux=local and _selinux(info),
        secrets_written=_secrets(plan.spec),
    )


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


def _folders(spec: LaunchSpec) -> Mapping[str, Folder]:
    from gpuconsole.host.folders import look, mount_table

    mounts = mount_table()
    found = {}
    for mount in spec.mounts:
        if mount.kind == "bind":
            facts = look(mount.source, mounts=mounts)
            found[mount.source] = Folder(facts.exists, facts.readable, facts.owner_uid, facts.filesystem)
    return found


def _selinux(info: EngineInfo) -> bool:
    from gpuconsole.host.folders import selinux_enforced

    return any(_LABELLED in option for option in info.security_options) and selinux_enforced()


def _secrets(spec: LaunchSpec) -> tuple[str, ...]:
    """What was written on the command line and is a secret: masked words of the command, names of variables."""
    words = tuple(word for word in mask_arguments(spec.command) if MASK in word)
    named = tuple(
        variable.name
        for variable in spec.variables
        if variable.source is VariableSource.WRITTEN and mask_value(variable.name, variable.value) != variable.value
    )
    return (*words, *named)

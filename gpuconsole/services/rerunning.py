"""A remembered launch, to be done again or to be compared with another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.core.text import plain_line
from gpuconsole.images.reference import is_image_id, parse
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.request import name_for
from gpuconsole.services.secrets import is_secret_name

if TYPE_CHECKING:
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.launchrecords import LaunchRecord
    from gpuconsole.services.session import Session


@dataclass(frozen=True, slots=True)
class Again:
    """A launch to be done again."""

    spec: LaunchSpec
    options: LaunchOptions
    """What it amounts to as typed."""
    notes: tuple[str, ...] = ()
    """What is not as it was, a sentence each."""
    changed_gpus: str = ""
    """A sentence when it cannot get the GPUs it had."""


def again(session: Session, record: LaunchRecord, *, any_gpu: bool = False) -> Again:
    """The same launch: the same digest, options and, where they are there, GPUs.

    Args:
        session: Whose GPUs and engine.
        record: The launch.
        any_gpu: Choose GPUs anew, as the launch chose them.

    Raises:
        NotFound: Its folder is gone, or a secret that was not kept is not in this shell.
        SpecInvalid: An option of it cannot be used any more.
        BadFile: The record is of another version.
    """
    options = record.launch_options()
    if not os.path.isdir(record.folder) and session.endpoint.local:
        raise NotFound(
            f"The folder launch {record.number} was started from is gone: {plain_line(record.folder)}.",
            hint="Launch it anew from another folder.",
        )
    around = replace(session.surroundings(), cwd=record.folder)
    _need_secrets(options, around.environment)
    notes = []
    options = replace(options, image=_pinned(record))
    if options.name is not None and _taken(session, options.name):
        notes.append(f"The name {options.name} is taken, so it gets a new one.")
        options = replace(options, name=None)
    changed = ""
    if record.gpus and not any_gpu:
        missing = _missing(session, record.gpus)
        if missing:
            changed = f"It had {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not to be had here."
        else:
            options = replace(options, gpus=f"device={','.join(record.gpus)}")
    spec = replace(
        read_options(options, around), written=replace(options, image=record.image), profile=record.profile or ""
    )
    if spec.name is None and is_image_id(spec.image) and not is_image_id(record.image):
        spec = replace(spec, name=name_for(replace(spec, image=record.image)))  # an id makes no name
    return Again(spec, options, tuple(notes), changed)


def _pinned(record: LaunchRecord) -> str:
    """The image by the digest it was started by; as written where none was known."""
    if record.digest is None or is_image_id(record.digest):
        return record.digest or record.image
    return f"{parse(record.image).name}@{record.digest}"


def _need_secrets(options: LaunchOptions, environment: Mapping[str, str]) -> None:
    absent = [text for text in options.environment if is_secret_name(text) and text not in environment]
    if absent:
        raise NotFound(
            f"{', '.join(absent)} held a secret, which is not kept, and this shell does not have it.",
            hint=f"Set it first: export {absent[0]}=…",
        )


def _taken(session: Session, name: str) -> bool:
    try:
        return session.engine.container(name).name == name
    except NotFound:
        return False


def _missing(session: Session, uuids: tuple[str, ...]) -> list[str]:
    from gpuconsole.launch.units import units_of

    try:
        there = {unit.uuid for unit in units_of(session.gpus.snapshot())}
    except ConsoleError:
        return list(uuids)
    return [uuid for uuid in uuids if uuid not in there]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which two launches differ. None stands for what one of them did not say."""

    what: str
    first: Any
    second: Any


def differences(first: LaunchRecord, second: LaunchRecord) -> tuple[Difference, ...]:
    """In what two launches differ: image and digest, options, GPUs, folder, how they ended."""
    found: list[Difference] = []
    for what in ("digest", "gpus", "folder", "exit_code", "cause"):
        one, other = getattr(first, what), getattr(second, what)
        if one != other:
            found.append(Difference(what, one, other))
    for what in sorted({*first.options, *second.options}):
        # What was asked for beside what was given: two things, however alike they are called.
        name = f"{what}_asked" if what == "gpus" else what
        found.extend(_of_option(name, first.options.get(what), second.options.get(what)))
    return tuple(found)


def _of_option(what: str, one: Any, other: Any) -> list[Difference]:
    """Of a list only what the other has not; the command as a whole, since its order counts."""
    if one == other:
        return []
    if not isinstance(one, list | None) or not isinstance(other, list | None) or what == "command":
        return [Difference(what, one, other)]
    mine, theirs = one or [], other or []
    only_mine = [each for each in mine if each not in theirs]
    only_theirs = [each for each in theirs if each not in mine]
    return [Difference(what, only_mine or None, only_theirs or None)]

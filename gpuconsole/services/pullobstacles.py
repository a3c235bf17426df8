"""What keeps an image from being pulled: known beforehand from its manifest, or said better after a failure."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gpuconsole.core.errors import Conflict, ConsoleError
from gpuconsole.core.text import plain_line, size
from gpuconsole.engine.model import EngineInfo
from gpuconsole.engine.pullfailures import ImageUnknown, LoginNeeded, PlatformMissing, RateLimited, RegistryUnreached
from gpuconsole.host.machine import disk_space
from gpuconsole.images.findings import Trouble
from gpuconsole.images.neartags import nearest_tags
from gpuconsole.images.reference import Reference
from gpuconsole.images.registry import Manifest, Registries
from gpuconsole.images.registrycalls import RegistryError
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.fitting import ARCHITECTURES

_ANSWER_S = 8.0
"""A registry that says nothing for so long holds up no pull."""
_LOOK_S = 0.1
UNPACKED = 2.0
"""Unpacked layers of PyTorch images take about twice the bytes that travel; both lie on the disk during a pull."""
_CONTAINERD = "/var/lib/containerd"

_T = TypeVar("_T")


def registries() -> Registries:
    """The registries, with the logins that Docker has."""
    from gpuconsole.engine.docker.logins import DockerLogins

    return Registries(DockerLogins())


def ask_in_time(question: Callable[[], _T], cancel: Cancellation | None = None) -> _T | None:
    """A registry's answer; None when there is none to go by, or not in time, or the stop is asked for meanwhile."""
    answers: queue.SimpleQueue[_T | BaseException] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(question())
        except BaseException as error:  # noqa: BLE001  # raised again by who waits, unless it means "no answer"
            answers.put(error)

    threading.Thread(target=ask, name="registry-question", daemon=True).start()
    until = time.monotonic() + _ANSWER_S
    while time.monotonic() < until and not (cancel is not None and cancel.requested):
        try:
            answer = answers.get(timeout=_LOOK_S)
        except queue.Empty:
            continue
        if isinstance(answer, BaseException):
            if isinstance(answer, (RegistryError, ConsoleError)):
                return None
            raise answer
        return answer
    return None


def platform_of(info: EngineInfo) -> str | None:
    """``linux/amd64``: what the engine pulls; None when it does not say."""
    architecture = ARCHITECTURES.get(info.architecture)
    return None if architecture is None else f"{info.os or 'linux'}/{architecture}"


def refuse_other_platform(reference: Reference, manifest: Manifest, info: EngineInfo) -> None:
    """Go on only with an image for the engine's processor.

    Raises:
        PlatformMissing: It is published for others alone.
    """
    wanted = platform_of(info)
    there = manifest.platforms
    if wanted is None or not there or wanted in there:
        return
    raise PlatformMissing(
        f"{reference} is published for {' and '.join(there)}, not for {wanted}, which the engine's machine is.",
        hint="Choose another image: 'gpuconsole catalog' lists those that run here.",
    )


@dataclass(frozen=True, slots=True)
class Room:
    """What a pull needs of the engine's disk, and what is there."""

    folder: str
    free_bytes: int
    download_bytes: int
    promised_bytes: int = 0
    """What other pulls under way have yet to fill."""

    @property
    def needed_bytes(self) -> int:
        """Downloaded and unpacked, as an estimate from the download alone."""
        return int(self.download_bytes * (1 + UNPACKED))

    @property
    def enough(self) -> bool:
        """There is room."""
        return self.free_bytes - self.promised_bytes >= self.needed_bytes


def room(info: EngineInfo, download_bytes: int) -> Room | None:
    """The room for a pull of so many bytes; None where the engine's disk cannot be seen from here."""
    if not info.local or not info.root_dir or not Path(info.root_dir).is_absolute():
        return None
    folders = [info.root_dir]
    if info.image_store == "containerd" and Path(_CONTAINERD).is_dir():
        folders.append(_CONTAINERD)  # a containerd of the system keeps its images apart from the engine
    spaces = [(space[0], folder) for folder in folders if (space := disk_space(folder)) is not None]
    if not spaces:
        return None
    free, folder = min(spaces)
    return Room(folder, free, download_bytes)


def refuse_full_disk(what: str, space: Room) -> None:
    """Go on only with room on the engine's disk.

    Raises:
        Conflict: There is not enough, as far as is known before.
    """
    if space.enough:
        return
    others = f", of which other pulls still take {size(space.promised_bytes)}" if space.promised_bytes else ""
    wait = "Pull it when the others are done, or make" if space.promised_bytes else "Make"
    raise Conflict(
        f"{what} is {size(space.download_bytes)} to download and needs about {size(space.needed_bytes)} with what it "
        f"unpacks to, and the engine's disk ({plain_line(space.folder)}) has {size(space.free_bytes)} free{others}.",
        hint=f"{wait} room with 'gpuconsole image prune'; if most of its layers are here: gpuconsole pull --force",
    )


def explained(error: ConsoleError, reference: Reference, info: EngineInfo, ask: Registries) -> ConsoleError:
    """The failure of a pull with the remedy for this very image: what its registry says is asked where that helps.

    Args:
        error: What the engine said.
        reference: What was to be pulled.
        info: The engine.
        ask: The registries.
    """
    told: tuple[str, str] | None = None
    if isinstance(error, ImageUnknown):
        told = _unknown(reference, ask)
    elif isinstance(error, PlatformMissing):
        told = _other_platforms(reference, info, ask)
    elif isinstance(error, LoginNeeded):
        told = _login(reference, ask)
    elif isinstance(error, RateLimited):
        told = _limit(reference)
    elif isinstance(error, RegistryUnreached):
        told = error.message.replace("the registry", reference.registry, 1), error.hint
    if told is None:
        return error
    return type(error)(told[0], hint=told[1], detail=error.detail)


def _unknown(reference: Reference, ask: Registries) -> tuple[str, str] | None:
    from gpuconsole.services.catalog import load_catalog

    if reference.digest is not None:
        return (
            f"There is no image {reference}: its registry has nothing of that digest.",
            "Its publisher deleted it, or it never was there; 'gpuconsole pin --check' looks at all pins.",
        )
    why = load_catalog([]).phantoms.get(str(reference))
    tags = ask_in_time(lambda: _tags(reference, ask))
    if tags == ():
        return f"There is no image {reference}: its registry has nothing of that name.", "Look at the name's spelling."
    message = f"There is no image {reference}: its registry has no such tag{f' ({why})' if why else ''}."
    wanted = reference.tag or "latest"
    if tags is None:
        known = [each.parsed.tag or "" for each in load_catalog([]).images if each.parsed.name == reference.name]
        near, asked = nearest_tags(wanted, known), "It was not asked for its tags; in the catalog are"
    else:
        near, asked = nearest_tags(wanted, tags), "The nearest it has:"
    if near:
        return message, f"{asked} {', '.join(near)}."
    return message, "Look at the tag's spelling; old tags get deleted by their publishers."


def _tags(reference: Reference, ask: Registries) -> tuple[str, ...]:
    """The tags of the repository; none when there is no such repository."""
    try:
        return ask.tags(reference)
    except RegistryError as error:
        if error.trouble is Trouble.GONE:
            return ()
        raise


def _other_platforms(reference: Reference, info: EngineInfo, ask: Registries) -> tuple[str, str] | None:
    wanted = platform_of(info) or info.architecture
    manifest = ask_in_time(lambda: ask.describe(reference, wanted))
    if manifest is None or not manifest.platforms:
        return None
    return (
        f"{reference} is published for {' and '.join(manifest.platforms)}, not for {wanted}, "
        "which the engine's machine is.",
        "Choose another image: 'gpuconsole catalog' lists those that run here.",
    )


def _login(reference: Reference, ask: Registries) -> tuple[str, str]:
    registry = reference.registry
    known = ask.has_login(registry)
    message = f"{registry} does not give out {reference.repository} " + (
        "to the login that Docker has for it, or has none of this name."
        if known
        else "without a login, or has none of this name."
    )
    if registry == "nvcr.io":
        how = "docker login nvcr.io --username '$oauthtoken', with an NGC API key as the password"
    else:
        how = "docker login" if registry == "docker.io" else f"docker login {registry}"
    again = "once more, since a login can run out" if known else "on this machine"
    return message, f"Look at the name's spelling; if it is right, log in {again}: {how}."


def _limit(reference: Reference) -> tuple[str, str]:
    registry = reference.registry
    if registry == "docker.io":
        return (
            "Docker Hub's limit on pulls from this address is reached.",
            "Log in ('docker login') for a limit of your own, or wait some hours; trying again at once does not help.",
        )
    return (
        f"{registry} has been asked too often.",
        f"Log in ('docker login {registry}'), or wait some hours; trying again at once does not help.",
    )

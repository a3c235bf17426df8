"""The files by which the caller has a name in a container: made once for each image, kept, mounted read-only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from gpuconsole.core.errors import BadFile, ConsoleError
from gpuconsole.core.files import write_whole
from gpuconsole.core.text import plain_line
from gpuconsole.engine.model import EngineInfo, Image, Mount
from gpuconsole.engine.protocol import Engine
from gpuconsole.launch.identity import GROUP, PASSWD, Identity, group_for, identity_of, passwd_for
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.services.launchfiles import launch_dir, let_containers_read, make_private


@dataclass(frozen=True, slots=True)
class Named:
    """Who runs a container, and the files that say so."""

    identity: Identity
    folder: Path | None = None
    """Where they are; None when none are needed."""

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The files, read-only in their places."""
        if self.folder is None:
            return ()
        return tuple(Mount("bind", str(self.folder / Path(path).name), path, True) for path in (PASSWD, GROUP))


def named(spec: LaunchSpec, info: EngineInfo, image: Image | None) -> Named | None:
    """Who runs the container of ``spec``; None when that is not the caller. No file is made yet.

    Args:
        spec: What was asked for.
        info: The engine it is for.
        image: None while it is not here.
    """
    known = dict(image.environment) if image is not None else {}
    folder = image.working_dir if image is not None else ""
    identity = identity_of(spec, info, image_environment=known, image_folder=folder)
    if identity is None:
        return None
    return Named(identity, _folder(spec, identity, image) if identity.needs_files else None)


def _folder(spec: LaunchSpec, identity: Identity, image: Image | None) -> Path:
    """One for each image and caller, so that its path is known before its content is."""
    caller = spec.caller
    assert caller is not None  # noqa: S101  # else there is no identity
    said = f"{caller} {identity.home} {image.id if image else ''}"
    return launch_dir() / "users" / hashlib.sha256(said.encode(errors="replace")).hexdigest()[:16]


def write_files(engine: Engine, spec: LaunchSpec, who: Named, image: Image | None, *, selinux: bool = False) -> None:
    """Make the files of ``who`` if they are not there yet, from the image's own.

    Raises:
        BadFile: The state folder cannot be written.
    """
    folder, caller = who.folder, spec.caller
    if folder is None or caller is None or all((folder / Path(path).name).is_file() for path in (PASSWD, GROUP)):
        return
    own = _own(engine, image)
    try:
        make_private(folder)
        write_whole(folder / "group", group_for(caller, own.get(GROUP)))
        write_whole(folder / "passwd", passwd_for(caller, who.identity.home, own.get(PASSWD)))
        for path in (PASSWD, GROUP):
            let_containers_read(folder / Path(path).name, selinux=selinux)
    except OSError as error:
        raise BadFile(
            f"{plain_line(str(folder))} cannot be written ({error.strerror}), and the container's user is named there.",
            hint="Make room or give it to its user; or launch with --user image, or by numbers: --user UID:GID.",
        ) from error


def _own(engine: Engine, image: Image | None) -> dict[str, str]:
    """The image's own files; without those that cannot be read, for which there are ordinary ones."""
    if image is None:
        return {}
    try:
        found = engine.image_files(image.id, (PASSWD, GROUP))
    except ConsoleError:
        return {}
    return {path: content.decode(errors="replace") for path, content in found.items()}

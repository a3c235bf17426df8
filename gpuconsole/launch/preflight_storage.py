"""Preflight of what is mounted: paths, folders that are dangerous to give away, who will own what is written."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace

from gpuconsole.engine.model import Mount
from gpuconsole.launch.changes import Change
from gpuconsole.launch.fields import shown
from gpuconsole.launch.preflight import Facts, Finding, Rule, Severity
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.launch.work import Kind

_SYSTEM = (
    "/", "/etc", "/boot", "/root", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/var", "/var/lib", "/var/lib/docker",
    "/run", "/var/run", "/proc", "/sys", "/dev",
)  # fmt: skip
_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock")
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "lustre", "beegfs", "ceph")
_TRAINERS = ("torchrun", "accelerate", "deepspeed", "jupyter", "jupyter-lab")
_SCRIPTS = (".py", ".sh", ".ipynb")
_ROOT = ("", "0", "root", "0:0", "root:root", "0:root", "root:0")


def _binds(facts: Facts) -> list[Mount]:
    return [mount for mount in facts.spec.mounts if mount.kind == "bind"]


def _writable(facts: Facts) -> list[Mount]:
    return [mount for mount in _binds(facts) if not mount.read_only]


def _user(facts: Facts) -> str:
    """Who runs in the container, as far as it is known; empty is root."""
    if facts.request.user is not None:
        return facts.request.user
    return facts.image.user if facts.image is not None else "?"


def paths(facts: Facts) -> Iterator[Finding]:
    """A path that is not there, is not from the root, or that the one who launches cannot read."""
    for mount in _binds(facts):
        path, known = mount.source, facts.folder(mount.source)
        if not path.startswith("/"):
            yield Finding(
                "path-relative",
                Severity.REFUSE,
                "--volume",
                f"{shown(path)} is no absolute path, and the engine does not know what it is relative to.",
                "Write it from the root, or begin it with ./ for one of this folder.",
            )
        elif known.exists is False:
            yield Finding(
                "path-missing",
                Severity.REFUSE,
                "--volume",
                f"{shown(path)} is not there; Docker would make an empty folder that belongs to root.",
                f"Make it with 'mkdir -p {shown(path)}', or correct the path.",
            )
        elif known.readable is False:
            yield Finding(
                "path-unreadable",
                Severity.WARN,
                "--volume",
                f"{shown(path)} cannot be read by you, so work in the container that runs as you cannot either.",
                f"Look at 'ls -ld {shown(path)}' and ask its owner, or mount another folder.",
            )


def colon(facts: Facts) -> Iterator[Finding]:
    """A path with ``:`` in it, which ``docker run -v`` and compose's short form cannot write."""
    for mount in _binds(facts):
        if ":" in mount.source or ":" in mount.target:
            path = mount.source if ":" in mount.source else mount.target
            yield Finding(
                "path-colon",
                Severity.WARN,
                "--volume",
                f"{shown(path)} has a ':' in it, which tools that split mounts at ':' take for its end.",
                "Mount the folder above it, or rename it.",
            )


def _over_folders(facts: Facts) -> list[Mount]:
    """Volumes that lead to a path of the host, as mounts of that path."""
    known = facts.volume_folders
    return [replace(each, source=known[each.source]) for each in facts.spec.mounts
            if each.kind == "volume" and each.source in known]  # fmt: skip


def dangerous(facts: Facts) -> Iterator[Finding]:
    """Folders that give a container the machine: the root, ``/etc``, the engine's socket; and the whole home."""
    for mount in (*_binds(facts), *_over_folders(facts)):
        path = posixpath.normpath(facts.folder(mount.source).real or mount.source).replace("//", "/")
        led = f" (it leads to {shown(path)})" if path != posixpath.normpath(mount.source).replace("//", "/") else ""
        inside = facts.sockets.get(mount.source, "")
        if inside not in ("", path):
            led += f" (the engine's socket {shown(inside)} is in it)"
        socket = bool(inside) or posixpath.basename(path) in _SOCKETS
        if socket or path in _SYSTEM:
            whole = "all that you may do here" if _is_rootless(inside or path) else "the whole machine as root"
            what = f"the engine itself, and with it {whole}" if socket else "files of the system"
            how = "command" if socket else "read" if mount.read_only else "change"
            yield Finding(
                "dangerous-mount",
                Severity.REFUSE,
                "--volume",
                f"{_said(facts, mount)}{led} would let the container {how} {what}.",
                "Mount the folders that the work needs, or pass --force dangerous-mount if this is meant.",
                forceable=True,
            )
        elif f"{posixpath.normpath(facts.home or '/')}/".startswith(f"{path}/") and not mount.read_only:
            yield Finding(
                "home-mount",
                Severity.WARN,
                "--volume",
                "Your whole home is mounted, with its keys and passwords, and everything in it can be changed.",
                "Mount the project's folder, or the home with :ro.",
                _read_only(facts, mount),
            )


def _is_rootless(socket: str) -> bool:
    """Whether a socket is that of a user's own engine, which has no more rights than the user."""
    return socket.startswith("/run/user/")


def _said(facts: Facts, mount: Mount) -> str:
    """How a mount is called: by its path, and by the volume that hides it."""
    names = [name for name, path in facts.volume_folders.items() if path == mount.source and mount.kind == "volume"]
    return f"The volume {shown(names[0])}, which is {shown(mount.source)}," if names else shown(mount.source)


def _read_only(facts: Facts, mount: Mount) -> Change | None:
    """The same mount, to be read only; None when it is not known how it was written."""
    for item in facts.spec.written.volumes if facts.spec.written is not None else ():
        source, _, rest = item.partition(":")
        target, _, _ = rest.partition(":")
        # No place of a container is taken twice, so that the place tells which one it is.
        if "=" not in source and posixpath.normpath(target) == mount.target:
            return Change("volumes", f"{source}:{target}:ro", instead=item)
    return None


def nothing_mounted(facts: Facts) -> Iterator[Finding]:
    """Nothing of what the container writes outlives it."""
    spec = facts.spec
    kept = any(not mount.read_only for mount in spec.mounts if mount.kind in ("bind", "volume"))
    # Who asks for --rm knows that nothing stays; of a script or a notebook something was to stay all the same.
    if kept or spec.work.kind is Kind.TENSORBOARD or (spec.auto_remove and not _makes_results(spec)):
        return
    gone, place = "when it ends" if facts.spec.auto_remove else "when it is removed", _place_for_results(facts)
    what = "Everything that is mounted can only be read" if facts.spec.mounts else "Nothing is mounted"
    yield Finding(
        "nothing-mounted",
        Severity.WARN,
        "--volume",
        f"{what}: results in the container are lost {gone}.",
        f"Mount a folder for results: -v {place or 'FOLDER:/workspace'}.",
        Change("volumes", place, add=True) if place else None,
    )


def _place_for_results(facts: Facts) -> str:
    """The folder it is launched from, as a volume; empty where that would be the next thing to warn of."""
    folder, taken = facts.spec.folder, {mount.target for mount in facts.spec.mounts}
    free = next((place for place in ("/workspace", "/results") if place not in taken), "")
    whole = folder in _SYSTEM or f"{posixpath.normpath(facts.home or '/')}/".startswith(f"{folder}/")
    return f".:{free}" if free and not (folder and whole) else ""


def _makes_results(spec: LaunchSpec) -> bool:
    if spec.work.kind in (Kind.JUPYTER, Kind.TORCHRUN, Kind.SCRIPT):
        return True
    program = posixpath.basename(spec.command[0]) if spec.command else ""
    return program in _TRAINERS or any(word.endswith(_SCRIPTS) for word in spec.command)


def logdir(facts: Facts) -> Iterator[Finding]:
    """TensorBoard is to draw runs from a folder that nothing brings into the container."""
    work = facts.spec.work
    if work.kind is not Kind.TENSORBOARD or not (work.logdir or "").startswith("/"):
        return
    wanted = posixpath.normpath(work.logdir or "") + "/"
    if not any(wanted.startswith(f"{posixpath.normpath(mount.target).rstrip('/')}/") for mount in facts.spec.mounts):
        yield Finding(
            "logdir-not-mounted",
            Severity.WARN,
            "--logdir",
            f"Nothing is mounted at {shown(work.logdir or '')}, so TensorBoard finds no runs there.",
            f"Mount their folder: -v ./runs:{shown(work.logdir or '')}:ro.",
        )


def root_owned(facts: Facts) -> Iterator[Finding]:
    """Root of the container writes into a folder of somebody else."""
    if _user(facts) not in _ROOT or facts.spec.caller is not None or facts.info.rootless or not facts.info.local:
        return
    if facts.uid == 0 or any("userns" in option for option in facts.info.security_options):
        return
    mounts = [mount for mount in _writable(facts) if facts.folder(mount.source).filesystem not in _NETWORK]
    if mounts:
        yield Finding(
            "root-owned",
            Severity.WARN,
            "--user",
            f"The container runs as root, so what it writes into {shown(mounts[0].source)} belongs to root.",
            "Run it as you: --user me.",
            Change("user", "me"),
        )


def no_passwd(facts: Facts) -> Iterator[Finding]:
    """A bare number has no name and no home in most images."""
    user = _user(facts).partition(":")[0]
    if facts.spec.caller is not None or facts.spec.user is None or not user.isdigit() or user == "0":
        return
    yield Finding(
        "no-passwd",
        Severity.WARN,
        "--user",
        f"User {user} may have no entry in the image's /etc/passwd: programs that ask for its name or home then fail "
        "(getpass, torch's compile cache, ssh).",
        "Write --user me, which brings a name and a home." if user == str(facts.uid) else "Set -e HOME=/tmp -e USER=…",
        Change("user", "me") if user == str(facts.uid) else None,
    )


def selinux(facts: Facts) -> Iterator[Finding]:
    """SELinux lets a container into no folder that is not labelled for it."""
    mounts = _binds(facts)
    if facts.selinux and mounts:
        path = shown(mounts[0].source)
        yield Finding(
            "selinux",
            Severity.WARN,
            "--volume",
            f"SELinux is enforced here, and a container may be kept out of {path} ('Permission denied').",
            f"Label it once: sudo chcon -Rt container_file_t {path}.",
        )


def root_squash(facts: Facts) -> Iterator[Finding]:
    """NFS makes root of the container nobody."""
    caller = facts.spec.caller
    if _user(facts) not in _ROOT or (caller is not None and caller.uid != 0):
        return
    for mount in _writable(facts):
        if facts.folder(mount.source).filesystem in _NETWORK:
            yield Finding(
                "root-squash",
                Severity.WARN,
                "--user",
                f"{shown(mount.source)} is on the network, where the server usually makes root nobody: writing fails.",
                "Run it as you: --user me." if facts.uid else "Launch it as its owner, or by --user UID:GID.",
                Change("user", "me") if facts.uid else None,
            )
            return


RULES: tuple[Rule, ...] = (
    paths, colon, dangerous, nothing_mounted, logdir, root_owned, no_passwd, selinux, root_squash,
)  # fmt: skip
"""In the order in which they are told."""

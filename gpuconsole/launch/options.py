"""The options of a launch as texts, and the spec they amount to: every wrong one is named at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from gpuconsole.core.errors import ExitCode
from gpuconsole.core.text import parse_size
from gpuconsole.engine.model import GpuPath, Mount
from gpuconsole.engine.request import Tmpfs
from gpuconsole.launch import fields, limits
from gpuconsole.launch.changes import Change
from gpuconsole.launch.fields import PathProblem, Surroundings, shown
from gpuconsole.launch.places import parse_device, parse_group, parse_host, parse_mount, parse_secret, parse_tmpfs
from gpuconsole.launch.spec import (
    Caller,
    FieldProblem,
    Force,
    LaunchSpec,
    PullPolicy,
    SpecInvalid,
    Variable,
    VariableSource,
)
from gpuconsole.launch.together import check_together
from gpuconsole.launch.variables import parse_variable, read_env_file
from gpuconsole.launch.wish import parse_gpus
from gpuconsole.launch.work import (
    Work,
    parse_kind,
    parse_logdir,
    parse_processes,
    parse_rendezvous,
    parse_word,
)

_T = TypeVar("_T")
_LONG_QUOTE = re.compile(r"'([^']{60})[^']{20,}'")


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """What was typed; a field is None or empty when its option was not given."""

    image: str
    command: tuple[str, ...] = ()
    entrypoint: str | None = None
    name: str | None = None
    gpus: str | None = None
    gpu_path: str | None = None
    volumes: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    env_files: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    working_dir: str | None = None
    user: str | None = None
    """None is the caller where a folder of theirs is mounted, else the image's own."""
    hostname: str | None = None
    shm_size: str | None = None
    ipc: str | None = None
    network: str | None = None
    memory: str | None = None
    cpus: str | None = None
    ulimits: tuple[str, ...] = ()
    restart: str | None = None
    auto_remove: bool = False
    init: bool = True
    interactive: bool | None = None
    mounts: tuple[str, ...] = ()
    tmpfs: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    group_add: tuple[str, ...] = ()
    extra_hosts: tuple[str, ...] = ()
    read_only: bool = False
    privileged: bool = False
    kind: str | None = None
    processes: str | None = None
    nodes: str | None = None
    rendezvous: str | None = None
    rendezvous_id: str | None = None
    logdir: str | None = None
    pull: str = "missing"
    force: tuple[str, ...] = ()


class _Collector:
    """Reads options one after the other and keeps what is wrong with each."""

    def __init__(self) -> None:
        self.problems: list[FieldProblem] = []

    def wrong(
        self, field: str, message: str, *, exit_code: ExitCode = ExitCode.USAGE, change: Change | None = None
    ) -> None:
        self.problems.append(FieldProblem(field, _LONG_QUOTE.sub(r"'\1…'", message), exit_code, change))

    def read(self, field: str, text: str | None, parse: Callable[[str], _T]) -> _T | None:
        """What ``parse`` makes of ``text``; None when it was not given or is wrong."""
        if text is None:
            return None
        try:
            if reason := fields.not_text(text):
                raise ValueError(f"it has {reason}, which the engine does not take")
            return parse(text)
        except PathProblem as error:
            self.wrong(field, str(error), exit_code=error.exit_code)
        except ValueError as error:
            self.wrong(field, str(error))
        return None

    def each(self, field: str, texts: Iterable[str], parse: Callable[[str], _T]) -> tuple[_T, ...]:
        """The same for an option that is given several times."""
        return tuple(value for text in texts if (value := self.read(field, text, parse)) is not None)


def read_options(options: LaunchOptions, around: Surroundings) -> LaunchSpec:
    """The spec that ``options`` amount to.

    Raises:
        SpecInvalid: With every field that cannot be used.
    """
    collect = _Collector()
    read, each = collect.read, collect.each
    spec = LaunchSpec(
        image=read("IMAGE", options.image, fields.parse_image) or "",
        command=each("COMMAND", options.command, str),
        entrypoint=_entrypoint(read("--entrypoint", options.entrypoint, str)),
        name=read("--name", options.name, fields.parse_name),
        gpus=read("--gpus", options.gpus, parse_gpus),
        gpu_path=read("--gpu-path", options.gpu_path, _gpu_path),
        mounts=_of_type(places := _places(collect, options, around), Mount),
        ports=each("--publish", options.ports, fields.parse_port),
        variables=_variables(collect, options, around),
        env_files=tuple(around.absolute(path) for path in options.env_files),
        labels=tuple(dict(each("--label", options.labels, fields.parse_label)).items()),
        working_dir=read("--workdir", options.working_dir, fields.parse_working_dir),
        user=None if (user := read("--user", options.user, limits.parse_user)) in (limits.ME, limits.IMAGE) else user,
        caller=_caller(user, places, around),
        work=_work(collect, options),
        tmpfs=(*_of_type(places, Tmpfs), *each("--tmpfs", options.tmpfs, parse_tmpfs)),
        secrets=each("--secret", options.secrets, lambda text: parse_secret(text, around)),
        devices=each("--device", options.devices, parse_device),
        group_add=tuple(dict.fromkeys(each("--group-add", options.group_add, parse_group))),
        extra_hosts=each("--add-host", options.extra_hosts, parse_host),
        read_only=options.read_only,
        privileged=options.privileged,
        hostname=read("--hostname", options.hostname, fields.parse_hostname),
        shm_bytes=read("--shm-size", options.shm_size, parse_size),
        ipc_mode=read("--ipc", options.ipc, fields.parse_ipc),
        network=read("--network", options.network, fields.parse_network),
        memory_bytes=read("--memory", options.memory, limits.parse_memory),
        cpus=read("--cpus", options.cpus, limits.parse_cpus),
        ulimits=each("--ulimit", options.ulimits, limits.parse_ulimit),
        restart_policy=read("--restart", options.restart, limits.parse_restart),
        auto_remove=options.auto_remove,
        init=options.init,
        interactive=options.interactive,
        pull=read("--pull", options.pull, _choice(PullPolicy)) or PullPolicy.MISSING,
        force=frozenset(each("--force", options.force, _choice(Force))),
        written=options,
        folder=around.cwd,
    )
    check_together(collect.wrong, spec, kind_known=_kind_known(collect))
    if collect.problems:
        raise SpecInvalid(collect.problems)
    return spec


def _places(collect: _Collector, options: LaunchOptions, around: Surroundings) -> tuple[Mount | Tmpfs, ...]:
    """What ``--volume`` and ``--mount`` put into the container."""

    def volume(text: str) -> Mount | Tmpfs:
        # A profile's path with a ":" in it comes in the other form.
        return parse_mount(text, around) if text.startswith("type=") else fields.parse_volume(text, around)

    volumes = collect.each("--volume", options.volumes, volume)
    return (*volumes, *collect.each("--mount", options.mounts, lambda text: parse_mount(text, around)))


def _of_type(places: Iterable[Mount | Tmpfs], kind: type[_T]) -> tuple[_T, ...]:
    return tuple(place for place in places if isinstance(place, kind))


def _caller(user: str | None, mounts: Iterable[Mount | Tmpfs], around: Surroundings) -> Caller | None:
    """The caller where they are to be the container's user: when it is said, and when a folder of theirs is in it."""
    binds = [mount for mount in mounts if isinstance(mount, Mount) and mount.kind == "bind"]
    if user != limits.ME and (user is not None or not binds or not around.engine_is_local):
        return None
    groups = {around.group_of(mount.source) for mount in binds} & set(around.groups) - {around.gid}
    return Caller(around.uid, around.gid, around.user, tuple(sorted(group for group in groups if group)))


def _work(collect: _Collector, options: LaunchOptions) -> Work:
    read = collect.read
    return Work(
        kind=read("--kind", options.kind, parse_kind),
        processes=read("--nproc-per-node", options.processes, parse_processes),
        nodes=read("--nnodes", options.nodes, parse_processes),
        rendezvous=read("--rdzv-endpoint", options.rendezvous, parse_rendezvous),
        rendezvous_id=read("--rdzv-id", options.rendezvous_id, parse_word),
        logdir=read("--logdir", options.logdir, parse_logdir),
    )


def _choice(choices: type[_T]) -> Callable[[str], _T]:
    def parse(text: str) -> _T:
        try:
            return choices(text)  # type: ignore[call-arg]
        except ValueError as error:
            known = ", ".join(str(choice) for choice in choices)  # type: ignore[attr-defined]
            raise ValueError(f"{text!r} is not known; known: {known}") from error

    return parse


def _gpu_path(text: str) -> GpuPath | None:
    if text == "auto":
        return None
    if text == GpuPath.NONE:
        raise ValueError("write --gpus none for a container without GPUs")
    try:
        return GpuPath(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not known; known: auto, cdi, hook, runtime") from error


def _entrypoint(text: str | None) -> tuple[str, ...] | None:
    # An empty text empties the image's entrypoint; the engine's API spells that as one empty word.
    return None if text is None else (text,)


def _variables(collect: _Collector, options: LaunchOptions, around: Surroundings) -> tuple[Variable, ...]:
    """Files first, then ``-e``; the last one of a name wins, as docker has it."""
    found: dict[str, Variable] = {}
    for path in options.env_files:
        entries = collect.read("--env-file", around.absolute(path), read_env_file) or ()
        for name, value in entries:
            if value is None:
                value = around.environment.get(name)
            if value is None:
                continue
            if reason := fields.not_text(value):
                told = f"{shown(name)}, which {shown(path)} takes from this shell, has {reason} in it"
                collect.wrong("--env-file", told)
            found[name] = Variable(name, value, VariableSource.FILE)
    for variable in collect.each("--env", options.environment, lambda text: parse_variable(text, around.environment)):
        found[variable.name] = variable
    return tuple(found.values())


def _kind_known(collect: _Collector) -> bool:
    """Whether the kind was read, so that what stands beside it can be judged."""
    return all(problem.field != "--kind" for problem in collect.problems)

"""Engines' words about values that cannot be, and which option of a launch they are about."""

from __future__ import annotations

from gpuconsole.core.errors import Conflict, EngineRefused, UsageError
from gpuconsole.engine.docker.refusal_rules import rule

_RESOURCES = (
    *("cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks", "sigpending"),
    *("msgqueue", "nice", "rtprio", "rttime"),
)
"""Names of the kernel's resource limits, each at its number."""
_ROOT = r"/[0-9a-f]{64}(?:/merged)?"
"""The end of the path where an engine keeps the root folder of a container."""

VALUE_RULES = (
    rule(
        r"invalid container name(?: \((.*?)\))?|names must match",
        UsageError,
        "The text{ 1} is no name for a container.",
        "Use at least two letters, digits, dots, dashes or underlines, beginning with a letter or digit.",
    ),
    rule(
        r"volume name is too short|includes invalid characters for a local volume name",
        UsageError,
        "A text is no name for a volume.",
        "Use at least two letters, digits, dots, dashes or underlines; a folder is written ./NAME.",
    ),
    rule(
        r"conflicting options: (.+)",
        UsageError,
        "Two options exclude each other: {1}.",
        "Leave one of them out.",
    ),
    rule(
        r"invalid (network|IPC|PID) mode: (.+)",
        UsageError,
        "The engine knows no such {1} mode: {2}.",
        "Correct it; 'gpuconsole launch --help' shows the forms.",
    ),
    rule(
        r"container (\S+): non-shareable IPC",
        Conflict,
        "Container {1} does not let others use its shared memory.",
        "It must be launched with --ipc shareable.",
    ),
    rule(
        r"AutoRemove.*restart policy",
        UsageError,
        "A container cannot be removed at its end and restarted at its end.",
        "Leave out --rm or --restart.",
    ),
    rule(
        r"minimum memory limit allowed is (\S+)",
        UsageError,
        "The memory limit is below the engine's minimum of {1}.",
        "Give more, as in --memory 8g.",
    ),
    rule(
        r"OOM-killed \(memory limit too low\?\)",
        EngineRefused,
        "The container was killed at its start: its memory limit is too low.",
        "Give more, as in --memory 8g.",
    ),
    rule(
        r"as there are only (\d+) CPUs",
        UsageError,
        "The engine's machine has {1} CPUs, and more were asked for.",
        "Give at most {1} to --cpus.",
    ),
    rule(
        r"cannot unmarshal number (\S+) into Go (?:struct field (?:\S+\.)?([^.\s]+)|value) of type",
        UsageError,
        "The number {1} is larger than the engine can take.",
        "Give a smaller one.",
    ),
    rule(
        r"uids and gids must be in range 0-(\d+)",
        UsageError,
        "The user or group id is above {1}, the largest there is.",
        "Give a smaller number, as in --user 1000:1000.",
    ),
    rule(
        r"cannot mkdir: (.+?) is not a directory|lstat \S*" + _ROOT + r"(/\S+): not a directory"
        r"|chdir to cwd \(?\"?(/[^\":]*)\"?\)?.*not a directory",
        UsageError,
        "The directory to work in, {1}, is or leads through a file of the image.",
        "Give a folder to --workdir.",
    ),
    rule(
        r"^mkdir (/[^:]+): (?:no such file or directory|operation not permitted|invalid argument)",
        UsageError,
        "The directory to work in, {1}, cannot be made in the container.",
        "Give another folder to --workdir.",
    ),
    rule(
        _ROOT
        + r"(/[^\s\"]*)\" cannot be mounted because|"
        + _ROOT
        + r"(/(?:proc|sys)[^\s:]*): .*read-only file system",
        UsageError,
        "Nothing can be mounted at {1} of a container.",
        "Choose another place on the container's side of --volume.",
    ),
    *(
        rule(
            rf"setting rlimit type {number}\b",
            UsageError,
            f"The engine's machine does not allow the limit asked for by --ulimit {name}.",
            "Give smaller numbers, within what 'sysctl fs.nr_open' says."
            if name == "nofile"
            else "Give smaller numbers, or leave it out.",
        )
        for number, name in enumerate(_RESOURCES)
    ),
    rule(
        r"too many open files",
        EngineRefused,
        "Too many files are open: more than --ulimit nofile allows in the container, or its machine.",
        "Give a larger --ulimit nofile, or leave it out.",
    ),
    rule(
        r"no command specified|no command or entrypoint provided",
        UsageError,
        "The container would have nothing to run: neither its image nor the request names a command.",
        "Give a command after --.",
    ),
    rule(
        r"cannot set both Count and DeviceIDs",
        UsageError,
        "A number of GPUs and particular GPUs were asked for together.",
        "Ask for one of the two.",
    ),
    rule(
        r"invalid reference format|invalid tag format|could not parse reference",
        UsageError,
        "This is no name of an image.",
        "Write it like pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime.",
    ),
)

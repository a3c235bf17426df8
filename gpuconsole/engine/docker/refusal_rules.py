"""Engines' words and what they mean: the tables behind :mod:`gpuconsole.engine.docker.refusals`.

The words are those of Docker 20.10 to 29 and of Podman, without the wrappers around them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuconsole.core.errors import (
    Conflict,
    ConsoleError,
    EngineRefused,
    EngineUnavailable,
    NotFound,
    Refused,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """Words of an engine, and what they mean.

    In message and hint ``{1}`` is the first group that matched, and ``{ 1}`` the same after a blank if there is one.
    """

    words: re.Pattern[str]
    error: type[ConsoleError]
    message: str
    hint: str


def rule(words: str, error: type[ConsoleError], message: str, hint: str = "") -> Rule:
    """A row of the table."""
    return Rule(re.compile(words, re.IGNORECASE), error, message, hint)


PROGRAM_RULES = (
    rule(
        r"(?:exec: \"|stat )/sbin/docker-init\"?: no such file or directory",
        Conflict,
        "The engine's init cannot be started in the container: a mount hides /sbin.",
        "Pass --no-init, or mount something smaller.",
    ),
    rule(
        r"exec: \"([^\"]+)\": .*(?:executable file not found|no such file or directory|not a directory)"
        r"|stat ([^:\s]+): no such file or directory",
        NotFound,
        "There is no program {1} in the container.",
        "Look at the command and the image's entrypoint; of a script, at its first line as well.",
    ),
    rule(
        r"exec: \"([^\"]+)\": .*(?:permission denied|is a directory)",
        Refused,
        "The program {1} in the container may not be run.",
        "Its mode needs the x bit.",
    ),
)
PLACE_RULES = (
    rule(
        r"(?:Bind for|for host port|bind host port(?: for)?|listen (?:tcp|udp)[46]?) (\[[^\]]*\]|[^\s:]*):(\d+)"
        r".*(?:already allocated|already in use)",
        Conflict,
        "Port {2} on {1} is already in use.",
        "Choose another host port, or see who has it: ss -ltnp 'sport = :{2}'.",
    ),
    rule(
        r"(?:Bind for|bind host port(?: for)?|listen (?:tcp|udp)[46]?) \S*?:(\d+).*permission denied",
        Refused,
        "The engine may not open port {1}.",
        "Choose one above 1023.",
    ),
    rule(
        r"cannot assign requested address|(?:listen|bind).* (\S+):\d+.*assign",
        NotFound,
        "The engine's machine does not have the address the port is to be published on.",
        "Publish on 127.0.0.1.",
    ),
    rule(
        r"name \"?/?([^\s\"]+)\"? is already in use by (?:container )?\"?([0-9a-f]{12})?",
        Conflict,
        "The name {1} is taken by container {2}.",
        "Choose another name, or remove that container: gpuconsole rm {1}.",
    ),
    rule(
        r"bind source path does not exist: ([^;]+)|statfs ([^:;]+): no such file or directory",
        NotFound,
        "The folder to mount, {1}, does not exist on the engine's machine.",
        "Create it, or correct the path.",
    ),
    rule(
        r"(?:creating mount source path|mkdir) '?([^':]+)'?:.*(permission denied|read-only file system)",
        Refused,
        "The engine cannot use {1} as a mount: {2}.",
        "Mount a folder on a local disk that root may read; NFS homes and snap confinement refuse.",
    ),
    rule(
        r"trying to mount a directory onto a file|not a directory.*mount|mount.*not a directory",
        EngineRefused,
        "A folder was to be mounted on a file, or a file on a folder.",
        "Look at both sides of the mount; mounting the parent folder is simplest.",
    ),
    rule(
        r"no space left on device",
        EngineRefused,
        "The engine's disk is full.",
        "'docker system df' shows what takes the space; 'docker image prune' frees what nothing uses.",
    ),
)
OBJECT_RULES = (
    rule(
        r"no such image:? (\S+)|(\S+): image not known|unable to find image '([^']+)'",
        NotFound,
        "There is no local image {1}.",
        "Pull it first, or look at the names 'gpuconsole images' lists.",
    ),
    rule(
        r"no such container:? (\S+)|no container with name or ID \"([^\"]+)\"",
        NotFound,
        "There is no container {1}.",
        "'gpuconsole ps' lists the names.",
    ),
    rule(
        r"multiple IDs found with provided prefix:? (\S+)|more than one result.*?(\S+)",
        NotFound,
        "More than one container's id begins with {1}.",
        "Give more of the id, or the name.",
    ),
    rule(r"no such volume:? (\S+)|get (\S+): no such volume", NotFound, "There is no volume {1}."),
    rule(r"network (\S+) not found", NotFound, "There is no network {1}.", "'docker network ls' lists them."),
    rule(r"no such exec", NotFound, "The process in the container is gone.", "The container was probably restarted."),
    rule(
        r"container-init binary not found",
        NotFound,
        "The engine's machine has no init program for containers.",
        "Install catatonit there, or leave the init out.",
    ),
    rule(
        r"exec format error",
        EngineRefused,
        "The image is built for another kind of processor.",
        "Pull the one for this machine.",
    ),
    rule(
        r"unable to find user (\S+?):|no matching entries in (?:passwd|group) file",
        NotFound,
        "The image does not know the user asked for.",
        "Give numbers, as in --user 1000:1000.",
    ),
)
STATE_RULES = (
    rule(r"is not running|is stopped|can only .* running", Conflict, "The container is not running.", "Start it."),
    rule(
        r"already paused",
        Conflict,
        "The container is paused already.",
        "Let it go on with 'gpuconsole pause --resume'.",
    ),
    rule(r"is not paused", Conflict, "The container is not paused.", "There is nothing to resume."),
    rule(
        r"is paused|unpause the container",
        Conflict,
        "The container is paused.",
        "Let it go on with 'gpuconsole pause --resume'.",
    ),
    rule(
        r"remove a (?:running|paused) container|container is running: stop|cannot remove .*(?:running|paused)",
        Conflict,
        "The container is running.",
        "Stop it first, or remove it with --force.",
    ),
    rule(
        r"removal of container .* already in progress|marked for removal",
        Conflict,
        "The container is being removed.",
        "It is gone in a moment.",
    ),
    rule(
        r"is restarting, wait until",
        Conflict,
        "The container keeps restarting.",
        "Its log says why; stop it first.",
    ),
)
ACCESS_RULES = (
    rule(
        r"client version (\S+) is too (?:old|new)\..* API version is (\S+?)[,.]?(?:\s|$)",
        EngineRefused,
        "The engine refuses version {1} of its interface; its limit is {2}.",
        "Upgrade gpuconsole, or the engine.",
    ),
    rule(
        r"HTTP request to an HTTPS server",
        EngineUnavailable,
        "The engine listens with TLS there.",
        "Set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the folder of ca.pem, cert.pem and key.pem.",
    ),
)

"""Preflight of what runs: the image and its entrypoint, names and ports, secrets, ways out of the container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from itertools import pairwise

from gpuconsole.engine.request import PortRequest
from gpuconsole.launch.changes import Change
from gpuconsole.launch.fields import LOOPBACK
from gpuconsole.launch.preflight import Facts, Finding, Rule, Severity
from gpuconsole.launch.spec import LaunchSpec

_WRAPPERS = ("tini", "dumb-init", "docker-init", "catatonit", "env")
"""Entrypoints that run what stands behind them, and else what they are given."""
_SHELLS = ("sh", "bash")
_PASSES_ON = ("nvidia_entrypoint.sh", "docker-entrypoint.sh", "ros_entrypoint.sh", "_entrypoint.sh", "start.sh")
"""Scripts of widespread images that run what they are given: NGC, Docker's official ones, ROS, micromamba, Jupyter."""
_SCRIPTS = (".sh", "entrypoint")
"""How a name ends of what often runs what it is given, and often does not."""
_OPEN_TOKENS = ("token=", "password=")
_OPEN_OPTIONS = (".token", ".password")


def image(facts: Facts) -> Iterator[Finding]:
    """An image that will not run here, one whose tag moves, one that cannot be resolved."""
    if facts.unfit:
        yield Finding(
            "image-verdict",
            Severity.WARN,
            "IMAGE",
            facts.unfit.message,
            "'gpuconsole catalog' lists those that run here.",
            facts.unfit.change,
        )
    if facts.moving:
        told = facts.moving
        yield Finding(
            "image-latest", Severity.HINT, "IMAGE", told.message, "'gpuconsole pin' keeps this one.", told.change
        )
    if facts.unresolved:
        yield Finding("image-unresolved", Severity.WARN, "IMAGE", facts.unresolved)


def names(facts: Facts) -> Iterator[Finding]:
    """The name or a port is taken."""
    if facts.name_taken is not None:
        told, made_anew = facts.name_taken, Change("name", None)
        yield Finding("name-taken", Severity.REFUSE, "--name", told.message, told.hint, made_anew)
    for taken in facts.ports_taken:
        yield Finding("port-taken", Severity.REFUSE, "--publish", taken.message, taken.hint, taken.change)


def public_ports(facts: Facts) -> Iterator[Finding]:
    """A port that everybody on the network reaches."""
    for port in facts.request.ports:
        if not ip_address(port.host_ip).is_loopback:
            number = port.host_port or port.container_port
            yield Finding(
                "port-public",
                Severity.WARN,
                "--publish",
                f"Port {number} is open to the network, as written; Docker's rules come before those of ufw.",
                f"Leave the address out, and reach it by ssh -L {number}:localhost:{number}.",
                republished(facts.spec, port, host_ip=LOOPBACK),
            )


def republished(
    spec: LaunchSpec, port: PortRequest, *, host_ip: str | None = None, host_port: int | None = None
) -> Change | None:
    """The port elsewhere, in place of how it was written; None when that is not known.

    Args:
        spec: The launch.
        port: One of its ports.
        host_ip: The address of the host; None keeps it.
        host_port: The port of the host, 0 leaves it to the engine; None keeps it.
    """
    written = spec.written.ports if spec.written is not None else ()
    item = next((text for text, each in zip(written, spec.ports, strict=False) if each == port), "")
    if not item:
        return None
    address = port.host_ip if host_ip is None else host_ip
    number = port.host_port if host_port is None else host_port
    place = f"[{address}]:" if ":" in address else f"{address}:" if address != LOOPBACK else ""
    parts = f"{place}{number or ''}:" if place or number else ""
    protocol = "" if port.protocol == "tcp" else f"/{port.protocol}"
    return Change("ports", f"{parts}{port.container_port}{protocol}", instead=item)


def jupyter(facts: Facts) -> Iterator[Finding]:
    """A notebook server that lets everybody in, which is a shell for everybody."""
    words = facts.request.command or ()
    if not any("jupyter" in word for word in words):
        return
    apart = any(name.lower().endswith(_OPEN_OPTIONS) and value == "" for name, value in pairwise(words))
    if apart or any(_is_empty(word) for word in " ".join(words).split()):
        yield Finding(
            "open-jupyter",
            Severity.REFUSE,
            "COMMAND",
            "Jupyter is started without token and password: whoever reaches its port has a shell in the container.",
            "Use --kind jupyter, which makes a token, or pass --force open-jupyter if this is meant.",
            forceable=True,
        )


def _is_empty(word: str) -> bool:
    name, separator, value = word.partition("=")
    named = f"{name.lower()}{separator}".endswith(_OPEN_TOKENS)
    return bool(named and value.strip("'\"") == "")


def entrypoint(facts: Facts) -> Iterator[Finding]:
    """The image's entrypoint takes the command for arguments of its own, or nobody knows whether it does."""
    if facts.image is None or facts.spec.entrypoint is not None or not facts.spec.command:
        return
    words, first = facts.image.entrypoint, facts.spec.command[0]
    program = _program(words)
    if not program or program.rpartition("/")[2] in _PASSES_ON:
        return
    given = f"The image starts {program}, which gets '{first} …' as its arguments"
    unknown = program.endswith(_SCRIPTS)
    yield Finding(
        "entrypoint",
        Severity.WARN,
        "--entrypoint",
        f"{given}; whether it runs them is not known." if unknown else f"{given} instead of running it.",
        "--entrypoint '' runs the command itself, without what the script sets up."
        if unknown
        else "Take it away with --entrypoint ''.",
        Change("entrypoint", ""),
    )


def _program(words: Sequence[str]) -> str:
    """What of an entrypoint gets the command in the end; empty when that is run as it is."""
    if not words:
        return ""
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name in _WRAPPERS:
        rest = rest[rest.index("--") + 1 :] if "--" in rest else [word for word in rest if not _is_option(word)]
        return _program(rest)
    if name in _SHELLS and "-c" not in rest:  # else what follows becomes $0 and $1, and is not run
        return _program([word for word in rest if not _is_option(word)])
    return words[0]


def _is_option(word: str) -> bool:
    return word.startswith("-") or "=" in word


def secrets(facts: Facts) -> Iterator[Finding]:
    """A secret in plain sight: whoever lists processes or asks the engine reads it."""
    for option, names in facts.secrets_written.items():
        told = f"{', '.join(names)} {'holds' if len(names) == 1 else 'hold'} a secret in plain sight"
        yield Finding(
            "secret-in-sight",
            Severity.WARN,
            option,
            f"{told[0].upper() if option == 'COMMAND' else told[0]}{told[1:]}: the shell's history, a list of "
            "processes, a profile in git or the container's description may show it.",
            "Give it by file (--secret NAME=FILE), or by its name alone from this shell (-e NAME).",
        )


def privileged(facts: Facts) -> Iterator[Finding]:
    """Every device and every right: what it does as root, it does to the machine."""
    if not facts.spec.privileged:
        return
    gpus = " All GPUs can be used in it, whichever are chosen." if len(facts.gpus) > len(facts.choice.units) else ""
    yield Finding(
        "privileged",
        Severity.REFUSE,
        "--privileged",
        f"A privileged container has every device and every right of the machine: it is no wall any more.{gpus}",
        "Give what is needed by --device, --group-add or -v, or pass --force privileged if this is meant.",
        Change("privileged", None),
        forceable=True,
    )


RULES: tuple[Rule, ...] = (privileged, names, jupyter, image, public_ports, entrypoint, secrets)
"""In the order in which they are told."""

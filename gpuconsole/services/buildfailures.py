"""Why a build failed, from what its last step wrote: in words, with the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.core.errors import Conflict, ConsoleError, EngineRefused, NotFound, Refused
from gpuconsole.engine.buildfailures import StepFailed
from gpuconsole.images.dockerfile import Recipe

_SHOWN = 20
"""Lines that are kept as the detail."""
_KILLED = 137


class PackagesUnreached(EngineRefused):
    """The build could not get at its packages: the steps before are kept, since the next try goes on from them."""


@dataclass(frozen=True, slots=True)
class _Sign:
    """Words in the log, and what they mean. In the message ``{1}`` is what the first group matched."""

    words: re.Pattern[str]
    error: type[ConsoleError]
    message: str
    hint: str


def _sign(words: str, error: type[ConsoleError], message: str, hint: str) -> _Sign:
    return _Sign(re.compile(words, re.IGNORECASE), error, message, hint)


_NO_SUCH = "The package index{from} has no {1} for this Python and processor."
_NO_SUCH_HINT = "Look whether it has this CUDA build; of a mirror, name the build's folder by --torch-index-url."
# The first that is found anywhere in the last step's lines counts, so causes stand before what follows from them.
_SIGNS = (
    _sign(
        r"no space left on device|\[Errno 28\]|not enough free space|You don't have enough free space",
        Conflict,
        "The engine's disk became full during the build.",
        "Make room with 'gpuconsole image prune', then build again: it takes about 12 GiB.",
    ),
    _sign(
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|certificate is not trusted",
        EngineRefused,
        "The build does not trust the certificate of the package index.",
        "A proxy that opens TLS needs its certificate in the base: build on an image that has it, by --base.",
    ),
    _sign(
        r"(?:is not a trusted or secure host)",
        EngineRefused,
        "pip refuses the package index, since it is neither on this machine nor reached by https.",
        "Name it by https, or serve it on this machine and add --network host.",
    ),
    _sign(
        r"\b(401 Client Error|403 Client Error|401 Unauthorized|403 Forbidden|HTTP error 40[13])",
        Refused,
        "The package index does not give the packages out.",
        "It may ask for a login, which gpuconsole never puts into a build: name an index that asks for none.",
    ),
    _sign(
        r"satisfies the requirement (\S+) \(from versions: (?!none)",
        NotFound,
        _NO_SUCH,
        _NO_SUCH_HINT,
    ),
    _sign(
        r"Temporary failure (?:in name resolution|resolving)|Could not resolve|Name or service not known"
        r"|NameResolutionError|nodename nor servname|Failed to establish a new connection|Connection refused"
        r"|Network is unreachable|No route to host|ReadTimeoutError|ConnectTimeoutError|Read timed out"
        r"|Connection (?:reset|aborted|broken)|ConnectionResetError|IncompleteRead|ProtocolError|timed out"
        r"|Could not connect to|Unable to connect to|Failed to fetch|Max retries exceeded|Proxy ?Error"
        r"|5\d\d Server Error|Could not fetch URL",
        PackagesUnreached,
        "The build cannot reach the packages it needs{from}.",
        "Build again: finished steps are kept. If it stays so, look at network, DNS and proxy of the engine's "
        "machine; --network host builds with that machine's own network.",
    ),
    _sign(
        r"THESE PACKAGES DO NOT MATCH THE HASHES|hashes? (?:are|is) required|Checksum mismatch|hash sum mismatch",
        EngineRefused,
        "A package that arrived is not what its index promises.",
        "Build again; if it stays so, the index, or a proxy on the way, is damaged.",
    ),
    _sign(
        r"No matching distribution found for ([^\s;]+)",
        NotFound,
        _NO_SUCH,
        _NO_SUCH_HINT,
    ),
    _sign(
        r"Package '?([\w.+-]+)'? has no installation candidate|Unable to locate package ([\w.+-]+)",
        NotFound,
        "The base's system has no package {1}.",
        "Build on an Ubuntu or Debian that is still kept, by --base.",
    ),
    _sign(
        r"has neither python3 nor apt-get",
        NotFound,
        "The base has no Python, and no apt-get to install it with.",
        "Build on an image that has Python 3 with venv, or on an Ubuntu or Debian, by --base.",
    ),
    _sign(
        r"ensurepip is not available|No module named '?(?:venv|ensurepip)'?|returned non-zero exit status 1.*ensurepip",
        NotFound,
        "The base's Python cannot make a virtual environment.",
        "Its module venv or ensurepip is missing: build on another image by --base.",
    ),
    _sign(
        r"AssertionError: \('([^']*)', '?([^')]*)'?\)",
        EngineRefused,
        "What was installed is torch {1} for CUDA {2}, not {torch}.",
        "The package index gave another build: name PyTorch's own, or a mirror of it, by --torch-index-url.",
    ),
    _sign(
        r"exec format error|exec /bin/sh: exec format",
        NotFound,
        "The base is made for another processor than the engine's machine has.",
        "Build on an image for this processor, by --base.",
    ),
    _sign(
        r"ResolutionImpossible|conflicting dependencies|Cannot install .* because these package versions",
        EngineRefused,
        "The packages do not go together.",
        "The index may hold other versions than PyPI: leave --index-url out, or complete the mirror.",
    ),
)


def explained(error: ConsoleError, lines: Sequence[str], recipe: Recipe) -> ConsoleError:
    """The failure of a build with its cause; ``error`` itself where there is nothing to add.

    Args:
        error: What the engine said.
        lines: The last lines of the build.
        recipe: What was built.
    """
    if not isinstance(error, StepFailed):
        return _of_the_base(error)
    last = _last_step(lines)
    detail = "\n".join([*last[-_SHOWN:], error.detail])
    text = "\n".join(last[1:])
    for sign in _SIGNS:
        match = sign.words.search(text)
        if match is not None:
            return sign.error(_filled(sign.message, match, recipe), hint=sign.hint, detail=detail)
    if str(_KILLED) in error.message:
        return Conflict(
            "A step of the build was killed, which is what happens when memory runs out.",
            hint="Make memory free on the engine's machine, then build again.",
            detail=detail,
        )
    said = next((line for line in reversed(last[1:]) if line.lower().startswith(("error", "e:"))), "")
    message = f"{error.message[:-1]}: {said}" if said else error.message
    return StepFailed(message, hint="The log says more: add --debug.", detail=detail)


def _of_the_base(error: ConsoleError) -> ConsoleError:
    """A step that could not even be started."""
    text = f"{error.message} {error.detail}"
    if "/bin/sh" in text and ("no such file" in text or "not found" in text):
        return NotFound(
            "The base has no /bin/sh, so nothing can be installed in it.",
            hint="Build on an Ubuntu or Debian, or on an image that has Python 3, by --base.",
            detail=error.detail,
        )
    return error


def _last_step(lines: Sequence[str]) -> list[str]:
    """The lines of the step that failed, its instruction first."""
    start = max((number for number, line in enumerate(lines) if line.startswith("Step ")), default=0)
    return list(lines[start:])


def _filled(template: str, match: re.Match[str], recipe: Recipe) -> str:
    groups = [group for group in match.groups() if group]
    words = {
        "from": f" from {recipe.index_url}" if recipe.index_url else "",
        "torch": f"{recipe.torch}+{recipe.build} for CUDA {recipe.cuda}",
        **{str(number): group for number, group in enumerate(groups, 1)},
    }
    return re.sub(r"\{(\w+)\}", lambda place: words.get(place[1], "none"), template)

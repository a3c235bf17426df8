"""Secrets masked in what is shown of a container: environment, command lines, labels.

Better a value too many than one too few: what only looks like a secret is masked as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MASK = "********"

_WORDS = (
    r"(?:KEYS?|TOKENS?|SECRETS?|PASS|PASSWORDS?|PASSWD|PASSPHRASE|PASSCODE|PWD|CREDENTIALS?|CREDS?|AUTH|COOKIES?"
    r"|DSN|WEBHOOK|JWT|BEARER)"
)
_SECRET_NAME = re.compile(rf"(?:{_WORDS}|AUTHORIZATION|CONNECTION_STRING)(?![A-Z])")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HARMLESS_NAMES = frozenset({"PWD", "OLDPWD"})
_NUMBER = re.compile(r"^\d{1,7}$")

_URL_PASSWORD = re.compile(r"(?P<head>\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'\"]*:)[^\s/@'\"]+(?=@)")
# Tokens that can be told by their look, whatever they are called.
_KNOWN_TOKENS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16}|nvapi-[A-Za-z0-9_-]{16,}"
    r"|AIza[A-Za-z0-9_-]{30,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)"
)
_HEADER = re.compile(r"(?i)\b(?P<head>(?:bearer|basic)\s+)(?P<value>[A-Za-z0-9._~+/=-]{8,})")
_VALUE = r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s'\";&|]+)"
_ASSIGNMENT = re.compile(rf"(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)(?P<between>[\"']?\s*(?:=|:(?!//))\s*){_VALUE}")
_OPTION = re.compile(rf"(?P<name>(?<!\S)--?[A-Za-z][A-Za-z0-9_.-]*)(?P<between>\s+)(?!-){_VALUE}")


def is_secret_name(name: str) -> bool:
    """Whether a variable, option or label of this name holds a secret: ``HF_TOKEN``, ``--api-key``, ``dbPassword``."""
    upper = _CAMEL.sub("_", name).upper().replace("-", "_").replace(".", "_")
    return upper not in _HARMLESS_NAMES and _SECRET_NAME.search(upper) is not None


def mask_value(name: str, value: str) -> str:
    """``value`` as it may be shown under ``name``."""
    if value and is_secret_name(name) and not _is_amount(name, value):
        return MASK
    return mask_text(value)


def _is_amount(name: str, value: str) -> bool:
    """``max_tokens = 512`` counts tokens and is none."""
    return "TOKEN" in name.upper() and _NUMBER.match(value) is not None


def mask_text(text: str) -> str:
    """Free text, such as a command line, with what looks like a secret masked."""
    text = _URL_PASSWORD.sub(lambda match: match["head"] + MASK, text)
    text = _KNOWN_TOKENS.sub(MASK, text)
    text = _HEADER.sub(lambda match: match["head"] + MASK, text)
    return _OPTION.sub(_masked_pair, _ASSIGNMENT.sub(_masked_pair, text))


def _masked_pair(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    if value in ('""', "''") or _is_amount(name, value):
        return match[0]
    if not is_secret_name(name.lstrip("-")):  # url=http://host/?token=…
        return f"{name}{match['between']}{_ASSIGNMENT.sub(_masked_pair, value)}"
    return f"{name}{match['between']}{MASK}"


def mask_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """A command's arguments; the one after ``--token`` is masked too."""
    masked: list[str] = []
    option: str | None = None
    for argument in arguments:
        if option is not None and not argument.startswith("-"):
            masked.append(mask_value(option, argument))
        else:
            masked.append(mask_text(argument))
        option = argument.lstrip("-") if argument.startswith("-") and "=" not in argument else None
    return tuple(masked)


def mask_environment(environment: Iterable[tuple[str, str | None]]) -> tuple[tuple[str, str | None], ...]:
    """Variables in their order, secrets masked; one without a value keeps having none."""
    return tuple((name, None if value is None else mask_value(name, value)) for name, value in environment)

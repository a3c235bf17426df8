"""Secrets masked in what is shown of containers and processes: environments, command lines, labels, addresses.

Better a value too many than one too few: what only looks like a secret is masked as well. Numbers that count
something stay, and so does the rest of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

MASK = "********"

_WORDS = (
    r"(?:KEYS?|TOKENS?|SECRETS?|PASS|PASSWORDS?|PASSWD|PASSPHRASE|PASSCODE|PWD|CREDENTIALS?|CREDS?|AUTH|COOKIES?"
    r"|DSN|WEBHOOK|JWT|BEARER)"
)
_SECRET_NAME = re.compile(rf"(?:{_WORDS}|AUTHORIZATION|CONNECTION_STRING)(?![A-Z])")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HARMLESS_NAMES = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
# A name that counts or measures: max_tokens, token-count, pad_token_id, KEY_LENGTH, auth-timeout.
_COUNTS = re.compile(
    r"(?:^|_)(?:TOKENS|MAX|MIN|NUM|N|COUNT|COUNTS|LEN|LENGTH|LIMIT|SIZE|DIM|BATCH|BUDGET|TOTAL|PER|RATE|TTL|AGE"
    r"|TIMEOUT|SECONDS|MINUTES|BITS|BYTES|INDEX|TOKEN_IDS?)(?:_|$)"
)
_DIGITS = r"[+-]?\d{1,12}(?:\.\d*)?(?:[eE][+-]?\d{1,3})?[kKmMgG]?"
_NUMBER = re.compile(rf"{_DIGITS}(?:,\s*{_DIGITS})*")

_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL)
# Tokens that can be told by their look, whatever they are called.
_KNOWN_TOKENS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|[rs]k_(?:live|test)_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{16,}|A[KS]IA[A-Z0-9]{16}"
    r"|nvapi-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|dckr_pat_[A-Za-z0-9_-]{16,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|gsk_[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|hvs\.[A-Za-z0-9_-]{20,}"
    r"|(?<!-)eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)"
)
_HEADER = re.compile(r"(?i)\b(?P<head>(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}")
_AUTHORIZATION = re.compile(r"(?i)(?P<head>\bauthorization[\"']?\s*[:=]\s*[\"']?(?:[a-z]+\s+)?)[^\s\"']+")

# The password of an address may hold "@" and "/" itself: it ends at the last "@". A number before a slash is a port.
_ADDRESS = re.compile(
    r"(?P<scheme>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://)"
    r"(?:(?P<user>[^\s/:@'\"]*):(?!\d{1,5}(?:[/?#]|(?![^\s'\"])))(?P<password>[^\s'\"]{0,1024})|(?P<alone>[^\s/:@'\"]+))@"
)
_BARE_ADDRESS = re.compile(r"(?P<head>(?<![\w./@:-])[\w.-]+:)(?<!mailto:)(?!//)[^\s'\"]{1,256}(?=@(?!sha256:)[\w.-])")
_A_NAME = re.compile(r"[a-z][a-z._-]{0,15}")
_TOKEN_LIKE = re.compile(r"(?=.*\d)[\w.-]{16,}")

_QUOTED = r"\\+[\"'].*?(?:\\+[\"']|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)|'[^']*(?:'|\Z)"
_LOOSE = r"[^\s'\";&|]+"
_VALUE = re.compile(
    rf"\[[^\]]*\]|(?:{_QUOTED})(?:(?![\s,:;&|}}\])])(?:{_QUOTED}|{_LOOSE}))*|{_LOOSE}(?:(?<![,:{{\[(])(?:{_QUOTED}|{_LOOSE}))*",
    re.DOTALL,
)
_NAMED = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]+)"
    r"(?P<between>\\*[\"']?\s*(?:=|:(?!//))\s*|[\"']\s*,\s*(?=[\"'])|\s+(?!-))"
)
_MOUNTED = re.compile(r"/|(?:r[ow]|[zZ])(?![^\s,])")
"""What follows the folder in ``/data/keys:/keys:ro``."""
_CLOSING = re.compile(r"[,}\])]+$")

# Programs whose password has an option of one letter only.
_LETTERS = {
    "sshpass": "p", "mysql": "p", "mysqldump": "p", "mariadb": "p", "mongo": "p", "mongosh": "p", "redis-cli": "a",
    "ldapsearch": "w", "curl": "u",
}  # fmt: skip
_BY_LETTER = re.compile(
    r"(?P<head>(?<![\w-])(?:"
    + "|".join(rf"{program}\b[^;|&\n]{{0,512}}?\s-{letter}" for program, letter in _LETTERS.items())
    + rf")\s*)(?:{_VALUE.pattern})"
)
_SCRIPT_FOLLOWS = re.compile(r"-[a-z]*c")
_WHOLE = re.compile(r"(?P<name>-{0,2}[A-Za-z_][\w.-]*)=(?P<value>.*)", re.DOTALL)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a variable, option or label of this name holds a secret: ``HF_TOKEN``, ``--api-key``, ``dbPassword``."""
    upper = _upper(name)
    return upper not in _HARMLESS_NAMES and _SECRET_NAME.search(upper) is not None


def _upper(name: str) -> str:
    return _CAMEL.sub("_", name).upper().replace("-", "_").replace(".", "_").strip("_")


def mask_value(name: str, value: str) -> str:
    """``value`` as it may be shown under ``name``."""
    if value and is_secret_name(name) and not _is_amount(name, value):
        return MASK
    return mask_text(value)


def _is_amount(name: str, value: str) -> bool:
    """``max_tokens = 512`` counts tokens and is none; ``token = 12345`` is one."""
    return _NUMBER.fullmatch(value.strip("\"\\'")) is not None and _COUNTS.search(_upper(name)) is not None


def mask_text(text: str) -> str:
    """Free text, such as a command line, with what looks like a secret masked."""
    text = _PEM.sub(MASK, text)
    text = _ADDRESS.sub(_masked_address, text)
    text = _BARE_ADDRESS.sub(_headed, text)
    text = _KNOWN_TOKENS.sub(MASK, text)
    text = _HEADER.sub(_headed, text)
    text = _AUTHORIZATION.sub(_headed, text)
    return _mask_named(_BY_LETTER.sub(_headed, text))


def _headed(match: re.Match[str]) -> str:
    return f"{match['head']}{MASK}"


def _masked_address(match: re.Match[str]) -> str:
    """``scheme://user:password@``, with the token that either of them may be."""
    if (alone := match["alone"]) is not None:
        known = _A_NAME.fullmatch(alone) or not (match["scheme"].startswith("http") or _TOKEN_LIKE.fullmatch(alone))
        return match[0] if known else f"{match['scheme']}{MASK}@"
    user, password = match["user"], match["password"]
    if user and (password in ("", "x-oauth-basic") or _TOKEN_LIKE.fullmatch(user)):
        user = MASK
    return f"{match['scheme']}{user}:{MASK if password else ''}@"


def _mask_named(text: str) -> str:
    """Values after a name that says what they are, however the two are written together."""
    pieces: list[str] = []
    done = at = 0
    while (found := _NAMED.search(text, at)) is not None:
        at = found.end()
        if not _says_what_follows(text, found):
            continue
        value = _VALUE.match(text, at)
        if value is None:
            continue
        tail = _CLOSING.search(value[0])
        end = value.start() + tail.start() if tail and not value[0].startswith("[") else value.end()
        core = text[value.start() : end]
        at = end
        bare = core.strip("\\\"'")
        if bare and not _is_amount(found["name"], bare):
            pieces += [text[done : value.start()], MASK]
            done = end
    return "".join([*pieces, text[done:]])


def _says_what_follows(text: str, found: re.Match[str]) -> bool:
    """Whether a name and what is between it and the next word announce a secret."""
    name, between = found["name"], found["between"]
    if not is_secret_name(name) or not (name.startswith("-") or "=" in between or ":" in between):
        return False
    if between == ":" and text[max(0, found.start() - 1)] == "/":
        return _MOUNTED.match(text, found.end()) is None
    return not (between[-1].isspace() and text.startswith("-", found.end()))  # --token= --port 80


def mask_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """A command's arguments; the one after ``--token`` is masked too, and all of the one that is ``--token=…``."""
    return _masked_arguments(tuple(arguments))


@lru_cache(maxsize=1024)
def _masked_arguments(arguments: tuple[str, ...]) -> tuple[str, ...]:
    masked: list[str] = []
    before = letter = ""
    for argument in arguments:
        masked.append(_masked_argument(argument, before, letter))
        letter = _LETTERS.get(argument.rpartition("/")[2], letter)
        before = argument
    return tuple(masked)


def _masked_argument(argument: str, before: str, letter: str) -> str:
    """``argument`` behind ``before``, of a program whose option ``letter`` is a password."""
    if letter and not argument.startswith("--"):
        if before == f"-{letter}":
            return MASK
        if argument.startswith(f"-{letter}") and len(argument) > 2:
            return f"-{letter}{MASK}"
    if before.startswith("-") and "=" not in before and not argument.startswith("-") and is_secret_name(before):
        return argument if not argument or _is_amount(before, argument) else MASK
    whole = None if _SCRIPT_FOLLOWS.fullmatch(before) else _WHOLE.fullmatch(argument)
    if whole is not None and is_secret_name(whole["name"]):
        return f"{whole['name']}={mask_value(whole['name'], whole['value'])}"
    return mask_text(argument)


def mask_environment(environment: Iterable[tuple[str, str | None]]) -> tuple[tuple[str, str | None], ...]:
    """Variables in their order, secrets masked; one without a value keeps having none."""
    return tuple((name, None if value is None else mask_value(name, value)) for name, value in environment)

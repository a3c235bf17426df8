"""Secrets masked in what is shown of containers and processes: environments, command lines, labels, addresses.

Better a value too many than one too few: what only looks like a secret is masked as well. Numbers that count
something stay, and so does the rest of the text.
"""

from __future__ import annotations

from gpuconsole.core.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    _Asked = TypeVar("_Asked")
    _Found = TypeVar("_Found")

else:
    re = Later("re")

MASK = "********"
_MOST_KNOWN = 1024

_WORDS = (
    r"(?:KEYS?|TOKENS?|SECRETS?|PASS|PASSWORDS?|PASSWD|PASSPHRASE|PASSCODE|PWD|CREDENTIALS?|CREDS?|AUTH|COOKIES?"
    r"|DSN|WEBHOOK|JWT|BEARER)"
)
# Short words are secrets only as words of their own: not COMPAT, not PIN_MEMORY.
_SHORT = r"(?<![A-Z])(?:PAT|SALT|SIG|SIGNATURE|PIN$)"
_SECRET_NAME = rf"(?:{_WORDS}|{_SHORT}|AUTHORIZATION|CONNECTION_STRING)(?![A-Z])"
_IN_SECRET_NAMES = (
    "KEY", "TOKEN", "SECRET", "PASS", "PWD", "CRED", "AUTH", "COOKIE", "DSN", "WEBHOOK", "JWT", "BEARER", "PAT", "SALT",
    "SIG", "PIN", "CONNECTION",
)  # fmt: skip
"""One of these is in every name that the pattern finds; most names have none, and making the pattern takes its time."""
_CAMEL = r"(?<=[a-z0-9])(?=[A-Z])"
_HARMLESS_NAMES = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
# A name that counts or measures: max_tokens, token-count, pad_token_id, KEY_LENGTH, auth-timeout.
_COUNTS = (
    r"(?:^|_)(?:TOKENS|MAX|MIN|NUM|N|COUNT|COUNTS|LEN|LENGTH|LIMIT|SIZE|DIM|BATCH|BUDGET|TOTAL|PER|RATE|TTL|AGE"
    r"|TIMEOUT|SECONDS|MINUTES|BITS|BYTES|INDEX|TOKEN_IDS?)(?:_|$)"
)
_DIGITS = r"[+-]?\d{1,12}(?:\.\d*)?(?:[eE][+-]?\d{1,3})?[kKmMgG]?"
_NUMBER = rf"{_DIGITS}(?:,\s*{_DIGITS})*"

_PEM = r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)"
# Tokens that can be told by their look, whatever they are called.
_KNOWN_TOKENS = (
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|[rs]k_(?:live|test)_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{16,}|A[KS]IA[A-Z0-9]{16}"
    r"|nvapi-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|dckr_pat_[A-Za-z0-9_-]{16,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|gsk_[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|hvs\.[A-Za-z0-9_-]{20,}"
    r"|(?<!-)eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)"
)
_IN_KNOWN_TOKENS = (
    "hf_", "sk-", "k_live_", "k_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-",
    "akia", "asia", "nvapi-", "aiza", "ya29.", "dckr_pat_", "npm_", "pypi-", "gsk_", "r8_", "hvs.", "eyj",
)  # fmt: skip
_HEADER = r"(?i)\b(?P<head>(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}"
_AUTHORIZATION = r"(?i)(?P<head>\bauthorization[\"']?\s*[:=]\s*[\"']?(?:[a-z]+\s+)?)[^\s\"']+"

_WORD = r"[^\s'\"]+"
# Within one word that ends with "@": the password of an address may hold "@" and "/" itself, and ends at the last "@".
# A number before a slash is a port.
_ADDRESS = (
    r"(?P<scheme>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://)"
    r"(?:(?P<user>[^\s/:@'\"]*):(?!\d{1,5}(?:[/?#]|(?![^\s'\"])))(?P<password>[^\s'\"]*)|(?P<alone>[^\s/:@'\"]+))@"
)
_BARE_ADDRESS = r"(?P<head>(?<![\w./@:-])[\w.-]+:)(?<!mailto:)(?!//)[^\s'\"]{1,256}(?=@(?!sha256:)[\w.-])"
_A_NAME = r"[a-z][a-z._-]{0,15}"
_LIKE_A_TOKEN = r"(?=.*\d)[\w.-]{16,}"  # noqa: S105  # a pattern

_QUOTED = r"\\+[\"'].*?(?:\\+[\"']|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)|'[^']*(?:'|\Z)"
_LOOSE = r"[^\s'\";&|]+"
_VALUE = (
    rf"(?s:\[[^\]]*\]|(?:{_QUOTED})(?:(?![\s,:;&|}}\])])(?:{_QUOTED}|{_LOOSE}))*"
    rf"|{_LOOSE}(?:(?<![,:{{\[(])(?:{_QUOTED}|{_LOOSE}))*)"
)
_NAMED = (
    r"(?<![\w.-])(?P<name>[\w.-]+)"
    r"(?P<between>\\*[\"']?\s*(?:=|:(?!//))\s*|[\"']\s*,\s*(?=[\"'])|\s+(?!-))"
)
_MOUNTED = r"/|(?:r[ow]|[zZ])(?![^\s,])"
"""What follows the folder in ``/data/keys:/keys:ro``."""
_CLOSING = r"[,}\])]+$"

# Programs whose password has an option of one letter only.
_LETTERS = {
    "sshpass": "p", "mysql": "p", "mysqldump": "p", "mariadb": "p", "mongo": "p", "mongosh": "p", "redis-cli": "a",
    "ldapsearch": "w", "curl": "u",
}  # fmt: skip
_BY_LETTER = (
    r"(?P<head>(?<![\w-])(?:"
    + "|".join(rf"{program}\b[^;|&\n]{{0,512}}?\s-{letter}" for program, letter in _LETTERS.items())
    + rf")\s*){_VALUE}"
)


def is_secret_name(name: str) -> bool:
    """Whether a variable, option or label of this name holds a secret: ``HF_TOKEN``, ``--api-key``, ``dbPassword``."""
    whole = name.upper()
    if not any(word in whole for word in _IN_SECRET_NAMES):
        return False
    known = _known_names.get(name)
    if known is None:
        upper = _upper(name)
        known = upper not in _HARMLESS_NAMES and re.search(_SECRET_NAME, upper) is not None
        _keep(_known_names, name, known)
    return known


def _upper(name: str) -> str:
    return re.sub(_CAMEL, "_", name).upper().replace("-", "_").replace(".", "_").strip("_")


def mask_value(name: str, value: str) -> str:
    """``value`` as it may be shown under ``name``."""
    if value and is_secret_name(name) and not _is_amount(name, value):
        return MASK
    return mask_text(value)


def _is_amount(name: str, value: str) -> bool:
    """``max_tokens = 512`` counts tokens and is none; ``token = 12345`` is one."""
    return re.fullmatch(_NUMBER, value.strip("\"\\'")) is not None and re.search(_COUNTS, _upper(name)) is not None


def mask_text(text: str) -> str:
    """Free text, such as a command line, with what looks like a secret masked."""
    lower = text.lower()
    for signs, pattern, replacement in _RULES:
        if any(sign in lower for sign in signs):
            text = re.sub(pattern, replacement, text)
    return _mask_named(text) if any(word in lower for word in _NAMING) else text


def _headed(match: re.Match[str]) -> str:
    return f"{match['head']}{MASK}"


def _masked_word(match: re.Match[str]) -> str:
    """A word with the addresses in it masked; what is after its last "@" cannot be one.

    So nothing is looked for where it cannot be: a text full of addresses takes no longer than another.
    """
    head, at, tail = match[0].rpartition("@")
    return re.sub(_ADDRESS, _masked_address, head + at) + tail if "://" in head else match[0]


def _masked_address(match: re.Match[str]) -> str:
    """``scheme://user:password@``, with the token that either of them may be."""
    if (alone := match["alone"]) is not None:
        known = re.fullmatch(_A_NAME, alone) or not (
            match["scheme"].startswith("http") or re.fullmatch(_LIKE_A_TOKEN, alone)
        )
        return match[0] if known else f"{match['scheme']}{MASK}@"
    user, password = match["user"], match["password"]
    if user and (password in ("", "x-oauth-basic") or re.fullmatch(_LIKE_A_TOKEN, user)):
        user = MASK
    return f"{match['scheme']}{user}:{MASK if password else ''}@"


_RULES: tuple[tuple[tuple[str, ...], str, str | Callable[[re.Match[str]], str]], ...] = (
    (("-----begin",), _PEM, MASK),
    (("://",), _WORD, _masked_word),
    (("@",), _BARE_ADDRESS, _headed),
    (_IN_KNOWN_TOKENS, _KNOWN_TOKENS, MASK),
    (("bearer", "basic"), _HEADER, _headed),
    (("authorization",), _AUTHORIZATION, _headed),
    (tuple(_LETTERS), _BY_LETTER, _headed),
)
"""What a text with such a secret has in it, in small letters; how it looks; and what takes its place.

Patterns are compiled when the first text asks for them: all of them would take ``status`` 20 ms.
"""
_NAMING = ("key", "token", "secret", "pass", "pwd", "cred", "auth", "cookie", "dsn", "webhook", "jwt", "bearer",
           "connection", "pat=", "salt", "sig=", "signature", "pin=")  # fmt: skip


def _mask_named(text: str) -> str:
    """Values after a name that says what they are, however the two are written together."""
    pieces: list[str] = []
    done = at = 0
    named, value_at = re.compile(_NAMED), re.compile(_VALUE)
    while (found := named.search(text, at)) is not None:
        at = found.end()
        if not _says_what_follows(text, found):
            continue
        value = value_at.match(text, at)
        if value is None:
            continue
        tail = re.search(_CLOSING, value[0])
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
        return re.match(_MOUNTED, text[found.end() :]) is None
    return not (between[-1].isspace() and text.startswith("-", found.end()))  # --token= --port 80


def mask_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """A command's arguments; the one after ``--token`` is masked too, and all of the one that is ``--token=…``."""
    whole = tuple(arguments)
    known = _known_commands.get(whole)
    if known is None:
        known = _masked_arguments(whole)
        _keep(_known_commands, whole, known)
    return known


_known_names: dict[str, bool] = {}
_known_commands: dict[tuple[str, ...], tuple[str, ...]] = {}
"""What was found before; a console asks for the same again and again."""


def _keep(known: dict[_Asked, _Found], asked: _Asked, found: _Found) -> None:
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[asked] = found


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
    name, sign, value = argument.partition("=")
    if sign and is_secret_name(name) and not _script_follows(before) and _is_name(name):
        return f"{name}={mask_value(name, value)}"
    return mask_text(argument)


def _script_follows(option: str) -> bool:
    """``-c``, or others of one letter before it in one word."""
    letters = option[1:]
    return option[:1] == "-" and letters.endswith("c") and all("a" <= letter <= "z" for letter in letters)


def _is_name(text: str) -> bool:
    """A variable's, or an option's with its dashes."""
    bare = text[text.startswith("-") + text.startswith("--") :]
    begins = bare[:1].isascii() and (bare[:1].isalpha() or bare[:1] == "_")
    return begins and all(char.isalnum() or char in "_.-" for char in bare)


def mask_environment(environment: Iterable[tuple[str, str | None]]) -> tuple[tuple[str, str | None], ...]:
    """Variables in their order, secrets masked; one without a value keeps having none."""
    return tuple((name, None if value is None else mask_value(name, value)) for name, value in environment)

"""Secret values in what is printed, named in their place: ``"${HF_TOKEN}"`` for a shell, ``${HF_TOKEN}`` elsewhere.

What is printed so does the same where the variable is set, and shows the secret to nobody.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

# What a terminal obeys, and marks that show a text other than it is.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTEST = 3
"""Characters of a value that is looked for within other text; a shorter one would be found everywhere."""


@dataclass(frozen=True, slots=True)
class References:
    """Which values are not to be printed, and the variables of the shell that hold them."""

    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secret value → the variable."""
    by_name: frozenset[str] = frozenset()
    """Variables of the container that were written with a secret in them: only their names are printed."""

    @classmethod
    def of(cls, secrets: Mapping[str, str], by_name: Iterable[str] = ()) -> References:
        """Of the variables that hold secrets: name → value. One that a shell could not name stays out."""
        return cls({value: name for name, value in secrets.items() if value and _NAME.fullmatch(name)},
                   frozenset(by_name))  # fmt: skip

    def pieces(self, text: str) -> Iterator[tuple[str, str | None]]:
        """``text`` in pieces: each with the variable that stands for it, or None where it is printed as it is."""
        if (whole := self.names.get(text)) is not None:
            yield text, whole
            return
        # The longest first: a secret may begin with another one.
        known = sorted((value for value in self.names if len(value) >= _SHORTEST), key=len, reverse=True)
        found = re.split("(" + "|".join(map(re.escape, known)) + ")", text) if known else [text]
        for number, piece in enumerate(found):
            if piece:
                yield piece, self.names[piece] if number % 2 else None

    def holds(self, text: str) -> bool:
        """Whether a secret is in ``text``."""
        return any(name is not None for _, name in self.pieces(text))

    def used(self, texts: Iterable[str]) -> tuple[str, ...]:
        """The variables that stand for something in ``texts``, each once."""
        return tuple(dict.fromkeys(name for text in texts for _, name in self.pieces(text) if name is not None))

    def masked(self, text: str, mask: str) -> str:
        """``text`` with ``mask`` in the place of each secret."""
        return "".join(piece if name is None else mask for piece, name in self.pieces(text))

    def written(self, text: str, plain: Callable[[str], str]) -> str:
        """``text`` for a file that replaces ``${NAME}``; ``plain`` writes what is no secret."""
        return "".join(plain(piece) if name is None else f"${{{name}}}" for piece, name in self.pieces(text))


NO_REFERENCES = References()


def quote(word: str, references: References = NO_REFERENCES) -> str:
    r"""``word`` for a shell. Control characters become ``$'\n'`` (bash, zsh, ksh, busybox): one line, no harm."""
    if not references.names or not word:
        return _quoted(word)
    return "".join(_quoted(piece) if name is None else f'"${{{name}}}"' for piece, name in references.pieces(word))


def needs_bash(words: Iterable[str]) -> bool:
    """Whether a word is quoted in a way that not every shell knows: dash, which is ``sh`` on Debian, does not."""
    return any(_CONTROL.search(word) for word in words)


def _quoted(word: str) -> str:
    if not _CONTROL.search(word):
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + _CONTROL.sub(_escape, escaped) + "'"


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    names = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return names.get(char) or "".join(f"\\{byte:03o}" for byte in char.encode())

"""Which secrets of a launch are named and not printed: those of the shell, and those that were written out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.launch.references import References, quote
from gpuconsole.launch.spec import LaunchSpec, VariableSource
from gpuconsole.services.secrets import MASK, is_secret_name, mask_arguments, mask_value

if TYPE_CHECKING:
    from gpuconsole.services.planning import LaunchPlan

_ORDINARY = re.compile(r"[a-z]+|[A-Z]+|[A-Z][a-z]+|\d{1,6}|[~./].*|(?:[a-z]+[_-])*[a-z]+")
"""Words, small numbers and paths: found in many places where they are no secret."""
_SHORTEST = 8
"""Characters of a value of the shell that is taken for a secret wherever it is found."""


def secrets_of_shell(environment: Mapping[str, str], used: Iterable[str] = ()) -> dict[str, str]:
    """Variables of the shell that hold secrets, name → value.

    Args:
        environment: The shell's.
        used: Variables that a profile took; whatever a secret one of them holds counts, however it looks.
    """
    certain = set(used)
    return {
        name: value
        for name, value in environment.items()
        if value
        and mask_value(name, value) != value
        and (is_secret_name(name) or len(value) >= _SHORTEST)
        and (name in certain or (len(value) >= _SHORTEST and not _ORDINARY.fullmatch(value)))
    }


def references_of_shell(environment: Mapping[str, str], used: Iterable[str] = ()) -> References:
    """What is named in a text that is kept or shown, where no launch is known yet; as :func:`secrets_of_shell`."""
    return References.of(secrets_of_shell(environment, used))


def references_of(spec: LaunchSpec, environment: Mapping[str, str]) -> References:
    """What is named in the printed forms of a launch.

    Args:
        spec: The launch.
        environment: The shell that it was written in, and its forms are pasted into.
    """
    known = references_of_shell(environment, spec.taken)
    by_name = (
        each.name
        for each in spec.variables
        if each.source is not VariableSource.SHELL
        and mask_value(each.name, each.value) != each.value
        and not known.holds(each.value)
    )
    return References(known.names, frozenset(by_name))


def kept_words(plan: LaunchPlan, *, foreground: bool = False) -> tuple[str, ...]:
    """The words of a plan's ``docker run`` line for a place that is kept: values left out, secrets masked."""
    hidden = references_of(plan.spec, os.environ)
    words = plan.docker_run(foreground=foreground, hide_values=True, references=hidden).words
    return mask_arguments([hidden.masked(word, MASK) for word in words])


HIDDEN = "(hidden)"
"""Stands in a line that is shown for a secret, unquoted: a shell refuses the whole line as bad syntax."""
_PLACE = re.compile("\ue001(\\d+)\ue002")
"""Stands for a secret that is named, while what looks like others is masked around it."""


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A ``docker run`` line for a screen."""

    words: tuple[str, ...]
    """Quoted for a shell."""
    exported: tuple[str, ...] = ()
    """Variables that it takes from the shell, which does not have them yet: their values look like secrets."""
    hides: bool = False
    """:data:`HIDDEN` stands in it, so that it does not run as it is."""
    needs_bash: bool = False
    """Not every shell reads it."""


def shown_line(plan: LaunchPlan) -> ShownLine:
    """The line that ``--dry-run`` prints, with what looks like a secret masked also where that cannot be named."""
    references = references_of(plan.spec, os.environ)
    run = plan.docker_run(references=references)
    named: list[str] = []

    def placed(text: str) -> str:
        found = ""
        for piece, name in references.pieces(text):
            found += piece if name is None else f"\ue001{len(named)}\ue002"
            named.extend([] if name is None else [name])
        return found

    def quoted(text: str) -> str:
        pieces = re.split(f"({re.escape(MASK)}|{_PLACE.pattern.replace('(', '(?:')})", text)
        parts = []
        for piece in pieces:
            if (place := _PLACE.fullmatch(piece)) is not None:
                parts.append(f'"${{{named[int(place[1])]}}}"')
            elif piece or not text:
                parts.append(HIDDEN if piece == MASK else quote(piece))
        return "".join(parts)

    before = [mask_arguments([f"{name}={placed(value)}"])[0].partition("=") for name, value in run.assigned]
    words = [f"{name}={quoted(value)}" for name, _, value in before]
    words += [quoted(word) for word in mask_arguments([placed(word) for word in run.words])]
    exported = left_to_shell(plan.spec, references, files_too=False)
    return ShownLine(tuple(words), exported, any(HIDDEN in word for word in words), run.needs_bash)


def left_to_shell(spec: LaunchSpec, references: References, *, files_too: bool) -> tuple[str, ...]:
    """Variables of the container that its printed form takes from the shell, which does not have them yet.

    Args:
        spec: The launch.
        references: What is named in it.
        files_too: Also those of its environment files, where the form does not name the files.
    """
    sources = (VariableSource.WRITTEN, VariableSource.FILE) if files_too else (VariableSource.WRITTEN,)
    return tuple(each.name for each in spec.variables if each.name in references.by_name and each.source in sources)

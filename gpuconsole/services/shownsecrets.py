"""Which secrets of a launch are named and not printed: those of the shell, and those that were written out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gpuconsole.launch.references import References
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


def left_to_shell(spec: LaunchSpec, references: References, *, files_too: bool) -> tuple[str, ...]:
    """Variables of the container that its printed form takes from the shell, which does not have them yet.

    Args:
        spec: The launch.
        references: What is named in it.
        files_too: Also those of its environment files, where the form does not name the files.
    """
    sources = (VariableSource.WRITTEN, VariableSource.FILE) if files_too else (VariableSource.WRITTEN,)
    return tuple(each.name for each in spec.variables if each.name in references.by_name and each.source in sources)

"""A profile as options of a launch: what it extends below it, variables put in, paths from its file."""

from __future__ import annotations

import csv
import io
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuconsole.core.config import nearest
from gpuconsole.core.text import plain_line
from gpuconsole.launch.expansion import expand, names_alone
from gpuconsole.launch.layering import Fields, overlay
from gpuconsole.launch.profilefile import Mistake, ProfileSource, refuse_mistakes

_NAMES = {
    "env": "environment", "workdir": "working_dir", "rm": "auto_remove", "tty": "interactive",
    "nproc_per_node": "processes", "nnodes": "nodes", "rdzv_endpoint": "rendezvous", "rdzv_id": "rendezvous_id",
}  # fmt: skip
"""Field of a profile → field of the options, where the two are called differently."""
_OF_PROFILE_ALONE = ("extends", "description")
_PAIRS = {"env": "=", "secrets": "=", "labels": "=", "ulimits": "=", "extra_hosts": "="}
_OPTIONS = {
    "image": "IMAGE", "command": "COMMAND", "volumes": "--volume", "mounts": "--mount", "ports": "--publish",
    "env": "--env", "env_files": "--env-file", "secrets": "--secret", "labels": "--label", "ulimits": "--ulimit",
    "devices": "--device", "extra_hosts": "--add-host",
}  # fmt: skip
"""Field of a profile → option of the command line, where the name does not tell."""


_MOST_LAYERS = 100
"""Profiles that one can extend, each counted as often as it is reached: those that fork and meet again grow fast."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one profile says itself, as options."""

    source: ProfileSource
    profile: str
    fields: Fields
    used: frozenset[str] = frozenset()
    """Variables of the environment whose values are in it, and those it passes on."""


@dataclass(frozen=True, slots=True)
class ResolvedProfile:
    """A profile with all that it extends."""

    name: str
    source: ProfileSource
    layers: tuple[Layer, ...]
    """The lowest first, the profile itself last."""
    description: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the options that it gives."""
        found: dict[str, Any] = {}
        for layer in self.layers:
            found = overlay(found, layer.fields)
        return found

    def place(self, option: str) -> str | None:
        """Where the field behind an option of the command line is written; None when no profile of it writes it."""
        for layer in reversed(self.layers):
            written = layer.source.profiles[layer.profile]
            name = next((name for name in written if option_of(name) == option), None)
            if name is not None:
                line = layer.source.line(layer.profile, name)
                return f"{layer.source.shown}{f', line {line}' if line else ''}"
        return None


def option_of(name: str) -> str:
    """The option of the command line that a profile's field stands for."""
    return _OPTIONS.get(name) or f"--{name.replace('_', '-')}"


def find_source(name: str, sources: Sequence[ProfileSource]) -> ProfileSource | None:
    """The first file that has a profile of this name, with mistakes or not."""
    for source in sources:
        if name in source.profiles or any(each.profile == name for each in source.mistakes):
            return source
    return None


def resolve(name: str, sources: Sequence[ProfileSource], environment: Mapping[str, str]) -> ResolvedProfile:
    """The profile as options.

    Args:
        name: Which; ``sources`` have it.
        sources: The project's file, then the user's.
        environment: For ``${NAME}``.

    Raises:
        BadFile: It, or one it extends, has mistakes; all of them are named.
    """
    source = find_source(name, sources)
    assert source is not None  # noqa: S101  # asked for by who has found it
    work = _Resolving(sources, environment)
    layers = work.layers(name, source, (), frozenset())
    for each in {one.path: one for one in work.seen}.values():
        refuse_mistakes(each, work.mistakes.get(each.path, ()))
    description = source.profiles[name].get("description")
    return ResolvedProfile(name, source, layers, plain_line(description, limit=200) if description else None)


@dataclass(slots=True)
class _Resolving:
    sources: Sequence[ProfileSource]
    environment: Mapping[str, str]
    mistakes: dict[Path, list[Mistake]] = field(default_factory=dict)
    seen: list[ProfileSource] = field(default_factory=list)

    def wrong(self, source: ProfileSource, *mistakes: Mistake) -> None:
        known = self.mistakes.setdefault(source.path, [])
        known += [each for each in mistakes if each not in known]

    def layers(
        self, name: str, source: ProfileSource, chain: tuple[tuple[Path, str], ...], hidden: frozenset[str]
    ) -> tuple[Layer, ...]:
        """The profile's own layer, with those of what it extends below.

        Args:
            name: The profile.
            source: Its file.
            chain: Who asks for it, the first one first.
            hidden: Single values that one above replaces: a variable in them need not be set.
        """
        if len(self.seen) >= _MOST_LAYERS:
            first = chain[0][1] if chain else name
            self.wrong(self.seen[0], Mistake(first, "extends", f"it comes to more than {_MOST_LAYERS} profiles"))
            return ()
        self.seen.append(source)
        self.wrong(source, *source.mistakes_of(name))
        written = source.profiles.get(name)
        if written is None:
            return ()
        chain = (*chain, (source.path, name))
        extends = written.get("extends") or []
        below: tuple[Layer, ...] = ()
        covered = hidden | {key for key, value in written.items() if not isinstance(value, list | dict)}
        for parent in [extends] if isinstance(extends, str) else extends:
            below += self._parent(parent, name, source, chain, covered)
        return (*below, self._own(name, source, written, hidden))

    def _parent(
        self, parent: str, name: str, source: ProfileSource, chain: tuple[tuple[Path, str], ...], hidden: frozenset[str]
    ) -> tuple[Layer, ...]:
        # The user's own profiles never build on what a project brings.
        reachable = [source, *(each for each in self.sources if not each.of_project and each is not source)]
        found = find_source(parent, reachable)
        if found is not None and (found.path, parent) not in chain:
            return self.layers(parent, found, chain, hidden)
        if found is None:
            known = [each for one in reachable for each in one.profiles if each != name]
            words = f"there is no profile {plain_line(repr(parent), limit=60)}{nearest(parent, known)}"
        else:
            circle = [each for _, each in chain[chain.index((found.path, parent)) :]]
            words = f"it goes in a circle: {' → '.join([*circle, parent])}"
        self.wrong(source, Mistake(name, "extends", words, source.line(name, "extends")))
        return ()

    def _own(self, name: str, source: ProfileSource, written: Mapping[str, Any], hidden: frozenset[str]) -> Layer:
        used: set[str] = set()
        fields: dict[str, Any] = {}
        for key, value in written.items():
            if key in _OF_PROFILE_ALONE or (key in hidden and not isinstance(value, list | dict)):
                continue
            try:
                fields[_NAMES.get(key, key)] = self._value(key, value, source, used)
            except ValueError as error:
                self.wrong(source, Mistake(name, key, plain_line(str(error)), source.line(name, key)))
        return Layer(source, name, fields, frozenset(used))

    def _value(self, key: str, value: Any, source: ProfileSource, used: set[str]) -> Any:
        if isinstance(value, bool):
            return value
        if key == "command":
            # Split first: a value with blanks in it stays one word.
            words = _split(value) if isinstance(value, str) else value
            return tuple(expand(word, self.environment, used) for word in words)
        if isinstance(value, dict):
            pairs = (self._pair(key, name, each, used) for name, each in value.items())
            return tuple(from_folder(key, pair, source.folder) for pair in pairs)
        if isinstance(value, list):
            texts = tuple(expand(str(each), self.environment, used) for each in value)
            if key == "env":
                used |= {text for text in texts if "=" not in text}
            return tuple(from_folder(key, text, source.folder) for text in texts)
        return expand(str(value), self.environment, used)

    def _pair(self, key: str, name: str, value: object, used: set[str]) -> str:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        found = expand(text, self.environment, used)
        if key == "env" and names_alone(text) == name:
            return name  # by its name alone it stays out of the command line that is shown
        return f"{name}={found}"


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ValueError("a quote is not closed; write it as a list of words") from error


_FROM_FOLDER: Mapping[str, Callable[[str, Path], str]]


def from_folder(key: str, text: str, folder: Path) -> str:
    """``text``, of the field ``key`` of a profile or of the options, with a relative path in it from the root."""
    relocate = _FROM_FOLDER.get(key)
    return relocate(text, folder) if relocate else text


def _path(path: str, folder: Path) -> str:
    return path if path.startswith(("/", "~")) else os.path.normpath(folder / path)


def _volume(text: str, folder: Path) -> str:
    source, colon, rest = text.partition(":")
    if not colon or source.startswith(("/", "~")) or not (source.startswith(".") or "/" in source):
        return text
    path = _path(source, folder)
    if ":" not in path:
        return f"{path}:{rest}"
    target, _, option = rest.partition(":")
    read_only = ("readonly",) if option == "ro" else ()
    return _csv(("type=bind", f"source={path}", f"target={target}", *read_only))


def _mount(text: str, folder: Path) -> str:
    parts = next(csv.reader([text]), [])
    if "type=bind" not in parts:
        return text
    moved = []
    for part in parts:
        word, equals, value = part.partition("=")
        moved.append(f"source={_path(value, folder)}" if word in ("source", "src") and equals else part)
    return _csv(moved)


def _csv(parts: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(parts)
    return line.getvalue()


def _secret(text: str, folder: Path) -> str:
    name, _, path = text.partition("=")
    return f"{name}={_path(path, folder)}"


_FROM_FOLDER = {"volumes": _volume, "mounts": _mount, "env_files": _path, "secrets": _secret}

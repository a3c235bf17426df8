"""Options of a launch as a profile's fields: what is saved, and what ``--format toml`` prints."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.references import NO_REFERENCES, References
from gpuconsole.launch.tomltext import Value

_NAMES = {
    "environment": "env", "working_dir": "workdir", "auto_remove": "rm", "interactive": "tty",
    "processes": "nproc_per_node", "nodes": "nnodes", "rendezvous": "rdzv_endpoint", "rendezvous_id": "rdzv_id",
}  # fmt: skip
_ORDER = (
    "image",
    "kind",
    "command",
    "entrypoint",
    "gpus",
    "gpu_path",
    "volumes",
    "mounts",
    "tmpfs",
    "workdir",
    "ports",
    "env",
)
"""What is read first stands first; the rest follows in the order of the options."""
_PAIRS = ("secrets", "labels", "ulimits", "extra_hosts")
_LEFT_OUT = ("force",)
"""What a file must not say for the person who launches."""
_DEFAULTS = {"pull": "missing"}


def profile_table(options: LaunchOptions, references: References = NO_REFERENCES) -> dict[str, Value]:
    """The profile that gives these options, with what ``references`` name from the shell; defaults are left out."""
    found: dict[str, Value] = {}
    for field in fields(LaunchOptions):
        value: Any = getattr(options, field.name)
        if field.name in _LEFT_OUT or value == field.default or value == _DEFAULTS.get(field.name) or value == ():
            continue
        if value is None or value == "":
            continue
        found[_NAMES.get(field.name, field.name)] = _field(field.name, value, references)
    if options.entrypoint == "":
        found["entrypoint"] = ""
    known = {name: found[name] for name in _ORDER if name in found}
    return known | found


def _field(name: str, value: Any, references: References) -> Value:
    if name == "environment":
        return _environment(value, references)

    def text(written: str) -> str:
        return references.written(written, escaped)

    if name in _PAIRS:
        split = re.compile("[:=]" if name == "extra_hosts" else "=")
        pairs = [split.split(each, maxsplit=1) for each in value]
        return {pair[0]: text(pair[1]) if len(pair) > 1 else "" for pair in pairs}
    if isinstance(value, tuple):
        return [text(each) for each in value]
    if isinstance(value, bool):
        return value
    return int(value) if name in ("gpus", "nodes", "processes") and str(value).isdecimal() else text(str(value))


def _environment(texts: tuple[str, ...], references: References) -> Value:
    """As a table; a variable of the shell by its own name."""
    found: dict[str, str | int | float | bool] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        by_name = not equals or name in references.by_name
        found[name] = f"${{{name}}}" if by_name else references.written(value, escaped)
    return found


def escaped(text: str) -> str:
    """``text`` so that no variable is put into it."""
    return text.replace("${", "$${")

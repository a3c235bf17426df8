"""An engine's "no" as one of our errors."""

from __future__ import annotations

import re

from gpuconsole.core.errors import Conflict, ConsoleError, EngineRefused, NotFound, Refused
from gpuconsole.core.text import plain
from gpuconsole.engine.docker.errors import clean_daemon_error
from gpuconsole.engine.docker.gpu_rules import GPU_RULES
from gpuconsole.engine.docker.refusal_rules import (
    ACCESS_RULES,
    OBJECT_RULES,
    PLACE_RULES,
    PROGRAM_RULES,
    STATE_RULES,
    Rule,
)
from gpuconsole.engine.docker.registry_rules import REGISTRY_RULES
from gpuconsole.engine.docker.value_rules import VALUE_RULES

_START_RULES = GPU_RULES + VALUE_RULES + PROGRAM_RULES + PLACE_RULES + OBJECT_RULES + STATE_RULES + ACCESS_RULES
_BY_STATUS: dict[int, tuple[type[ConsoleError], str]] = {
    400: (EngineRefused, "Look at what was asked for."),
    401: (Refused, "Log in with 'docker login'."),
    403: (Refused, "The engine's administrator decides who may do this."),
    404: (NotFound, "Look at the name."),
    409: (Conflict, "Look at its state with 'gpuconsole ps'."),
    429: (EngineRefused, "Wait, then try again."),
    501: (EngineRefused, "This engine cannot do that."),
}


def refusal(status: int, text: str) -> ConsoleError:
    """What the engine's answer ``text`` with HTTP status ``status`` means."""
    return _meaning(text, _START_RULES, status)


def pull_refusal(status: int, text: str) -> ConsoleError:
    """What the failure ``text`` of a pull means; 500 stands for one that came inside the stream."""
    return _meaning(text, PLACE_RULES + ACCESS_RULES + REGISTRY_RULES + VALUE_RULES, status)


def _meaning(text: str, rules: tuple[Rule, ...], status: int) -> ConsoleError:
    clause, raw = clean_daemon_error(text), plain(text).strip()
    for rule in rules:
        match = rule.words.search(clause)
        if match is not None:
            return rule.error(_filled(rule.message, match), hint=_filled(rule.hint, match), detail=raw)
    error, hint = _BY_STATUS.get(status, (EngineRefused, "'journalctl -u docker -n 20' may say more."))
    sentence = clause[:1].upper() + clause[1:] if clause else f"The engine refused without saying why (HTTP {status})"
    return error(sentence if sentence.endswith((".", "!", "?")) else f"{sentence}.", hint=hint, detail=raw)


def _filled(template: str, match: re.Match[str]) -> str:
    """``template`` with the groups that matched in their places."""
    groups = [_LONG_ID.sub(r"\1", group.strip(" .:'\"")) for group in match.groups() if group]

    def group(place: re.Match[str]) -> str:
        position = int(place[2]) - 1
        return place[1] + groups[position] if position < len(groups) else ""

    return _PLACE.sub(group, template)


_LONG_ID = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_PLACE = re.compile(r"\{( ?)(\d)\}")

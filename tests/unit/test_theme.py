"""Colours of our own cells: with no widget behind them, each must be a colour by itself, and stand out."""

from __future__ import annotations

import pytest
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from gpuconsole.tui import theme

ALL = [*theme.THEMES, *BUILTIN_THEMES.values()]
OURS = [each for each in theme.THEMES if not each.ansi]
ON_BACKGROUND = ["tone-strong", "tone-ok", "tone-info", "tone-watch", "tone-risk", "tone-critical", "tone-accent"]


def colours(each: Theme) -> dict[str, str]:
    return theme.tokens(each) | {name: each.variables[name] for name in theme.tokens(each) if name in each.variables}


def contrast(one: str, other: str) -> float:
    """As WCAG has it."""

    def luminance(colour: Color) -> float:
        parts = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized)
        return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    high, low = sorted((luminance(Color.parse(one)), luminance(Color.parse(other))), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_no_colour_of_ours_waits_for_what_is_behind_it(each: Theme) -> None:
    for name, value in colours(each).items():
        if value != "transparent":
            parsed = Color.parse(value)  # fails for "auto", which is white where nothing is known to be behind
            assert parsed.a == 1 or parsed.ansi is not None, f"{name} of {each.name} is {value}"


@pytest.mark.parametrize("each", OURS, ids=lambda each: each.name)
def test_our_colours_can_be_read(each: Theme) -> None:
    found = colours(each)
    background = each.background or ""
    for name in ON_BACKGROUND:
        assert contrast(found[name], background) >= 4.5, f"{name} of {each.name} is {found[name]}"
    assert contrast(found["tone-dim"], background) >= 4.5
    assert contrast(found["cursor-foreground"], found["cursor-background"]) >= 4.5

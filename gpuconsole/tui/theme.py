"""Themes: the only place with colours. A state is always a word and a glyph too, never colour alone."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass

from textual.color import Color
from textual.theme import Theme

_TOKENS = {
    "tone-dim": "{foreground} 60%",
    "tone-strong": "{foreground}",
    "tone-ok": "{text-success}",
    "tone-info": "{text-primary}",
    "tone-watch": "{text-warning}",
    "tone-risk": "{text-warning}",
    "tone-critical": "{text-error}",
    "tone-accent": "{text-accent}",
    "bar-background": "{panel}",
    "cursor-background": "{primary} 35%",
    "cursor-foreground": "{foreground}",
    "blurred-background": "{panel}",
}
"""Our own variables, and what they are unless a theme says otherwise: a theme's own colours in braces.

None may be one that Textual makes to fit what is behind it (``text``, ``text-muted``, ``boost``): the cells of our own
widgets have no widget behind them, and on a light background it would be white.
"""


def tokens(theme: Theme) -> dict[str, str]:
    """Our variables for a theme that need not know them. Textual resolves no variable inside another's default."""
    colours = theme.to_color_system().generate()
    values = {name: re.sub(r"\{([a-z-]+)\}", lambda match: colours[match[1]], each) for name, each in _TOKENS.items()}
    return {name: _opaque(value, colours["background"]) for name, value in values.items()}


def _opaque(value: str, background: str) -> str:
    """A see-through colour as it looks on the background: a style of its own for some cells is never blended."""
    colour, _, share = value.partition(" ")
    if not share or "ansi" in value + background:
        return colour  # the terminal's own colours cannot be blended
    return Color.parse(background).blend(Color.parse(colour), float(share.rstrip("%")) / 100).hex


_ANSI_TOKENS = {
    "tone-dim": "ansi_bright_black",
    "tone-strong": "ansi_default",
    "tone-ok": "ansi_green",
    "tone-info": "ansi_cyan",
    "tone-watch": "ansi_yellow",
    "tone-risk": "ansi_yellow",
    "tone-critical": "ansi_red",
    "tone-accent": "ansi_cyan",
    "bar-background": "ansi_default",
    "cursor-background": "ansi_blue",
    "cursor-foreground": "ansi_bright_white",
    "blurred-background": "ansi_default",
}

DARK = Theme(
    name="gpuconsole-dark",
    primary="#5fafd7",
    secondary="#87afaf",
    accent="#afd787",
    success="#87d787",
    warning="#ffaf5f",
    error="#ff6c6b",
    foreground="#d7dce2",
    background="#14171b",
    surface="#14171b",
    panel="#20252b",
    boost="#20252b",
    dark=True,
    variables={"tone-dim": "#8a939d", "tone-watch": "#ffd75f", "tone-risk": "#ffaf5f", "tone-critical": "#ff6c6b"},
)
LIGHT = Theme(
    name="gpuconsole-light",
    primary="#005f87",
    secondary="#3a6b6b",
    accent="#4e7a00",
    success="#2e7d32",
    warning="#b05a00",
    error="#b3261e",
    foreground="#1c2126",
    background="#fbfbf8",
    surface="#fbfbf8",
    panel="#e9ebe6",
    boost="#e9ebe6",
    dark=False,
    variables={"tone-dim": "#5f6972", "tone-watch": "#8a6500", "tone-risk": "#b05a00", "tone-critical": "#b3261e"},
)
CONTRAST = Theme(
    name="gpuconsole-contrast",
    primary="#00d7ff",
    secondary="#ffffff",
    accent="#ffff00",
    success="#00ff5f",
    warning="#ffd700",
    error="#ff5f5f",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1c1c1c",
    boost="#303030",
    dark=True,
    variables={"tone-dim": "#d0d0d0", "cursor-background": "#ffffff", "cursor-foreground": "#000000"},
)
ANSI = Theme(
    name="gpuconsole-ansi",
    primary="ansi_blue",
    secondary="ansi_cyan",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    accent="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    ansi=True,
    variables=_ANSI_TOKENS
    | {
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "border-blurred": "ansi_bright_black",
        "block-cursor-foreground": "ansi_black",
        "block-cursor-background": "ansi_white",
        "input-cursor-background": "ansi_white",
        "input-cursor-foreground": "ansi_black",
        "input-selection-background": "ansi_bright_blue",
        "input-selection-foreground": "ansi_black",
        "screen-selection-background": "ansi_bright_blue",
        "screen-selection-foreground": "ansi_black",
    },
)
THEMES = (DARK, LIGHT, CONTRAST, ANSI)


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs the console draws with."""

    full: str
    parts: str
    """Eighths of a bar, empty first."""
    empty: str
    spark: str
    """Heights of a history line, lowest first."""
    ok: str
    watch: str
    risk: str
    critical: str
    idle: str
    unknown: str
    pointer: str
    ellipsis: str
    ring: str
    """Beside what rings when it ends."""
    absent: str
    """Before what is not here, and would come."""
    busy: str
    """Beside what is being checked, measured or pulled."""


UNICODE = Glyphs("█", " ▏▎▍▌▋▊▉", " ", " ▁▂▃▄▅▆▇█", "✓", "◆", "▲", "✖", "·", "?", "▸", "…", "♪", "↓", "●")
ASCII = Glyphs("#", " .:-=+*#", " ", " .:-=+*##", "+", "*", "^", "X", ".", "?", ">", "~", "!", "v", "@")


def glyphs(encoding: str | None = None, *, ascii_only: bool | None = None) -> Glyphs:
    """The signs this terminal can show: plain ASCII where its encoding has no others, or where it is asked for."""
    if ascii_only is not None:
        return ASCII if ascii_only else UNICODE
    name = (encoding or getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    plain = os.environ.get("GPUCONSOLE_ASCII") or os.environ.get("TERM") == "linux"
    return UNICODE if name.startswith("utf") and not plain else ASCII


_PREFIX = "gpuconsole-"


def names() -> tuple[str, ...]:
    """Our themes as a person calls them."""
    return tuple(each.name.removeprefix(_PREFIX) for each in THEMES)


def full_name(name: str) -> str:
    """What Textual calls the theme ``name``."""
    return f"{_PREFIX}{name}"


def default_theme() -> str:
    """The theme to start with: what the terminal says of itself, else dark."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if background in ("7", "15"):
        return LIGHT.name
    if os.environ.get("TERM", "") in ("linux", "xterm", "screen", "vt100", "vt220"):
        return ANSI.name
    return DARK.name

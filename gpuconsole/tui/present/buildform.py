"""The form of a build: what each field can be, and what was typed comes to."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, UsageError
from gpuconsole.core.text import plain_line
from gpuconsole.tui.present import verdict as verdicts
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.services.buildorders import Chosen

Line = tuple[Cell, ...]
FIELDS = (
    ("torch", "torch", "the newest that runs here; down lists them"),
    ("cuda", "CUDA", "what suits this driver; down lists those of that torch"),
    ("base", "Base", "nvidia/cuda, as gpuconsole knows it"),
    ("tag", "Name", "made from the versions"),
)
"""Key, label, what it is when nothing is typed."""


def choices(key: str, text: str, torch: str, *, everything: bool) -> list[tuple[str, str]]:
    """What a field can be, the newest first, with a word on each.

    Args:
        key: Of the field.
        text: What stands in it.
        torch: What stands in the field of torch.
        everything: Not only what begins with ``text``.
    """
    from gpuconsole.images.torchbuilds import shipped_builds

    builds = shipped_builds()
    if key == "torch":
        found = [(each.torch, f"CUDA {', '.join(each.cudas)}") for each in reversed(builds.releases)]
    elif key == "cuda":
        try:
            release = builds.release(torch.strip() or None)
        except UsageError:
            return []
        found = [(cuda, f"with torch {release.torch}") for cuda in reversed(release.cudas)]
    else:
        return []
    return [(value, told) for value, told in found if everything or value.startswith(text.strip())]


def outcome(chosen: Chosen, glyphs: Glyphs, width: int) -> list[Line]:
    """What it comes to: versions, base, name, and whether it will run here."""
    recipe = chosen.recipe
    versions = f"torch {recipe.torch} · CUDA {recipe.cuda} · torchvision {recipe.vision} · torchaudio {recipe.audio}"
    lines = _wrapped(versions, width, "strong")
    lines += _wrapped(f"on {recipe.base}, with JupyterLab and TensorBoard, as {chosen.name}", width)
    cell = verdicts.word_cell(chosen.verdict.word, glyphs)
    first, *rest = textwrap.wrap(verdicts.why(chosen.verdict), max(20, width - len(cell.text) - 2)) or [""]
    lines.append((cell, Cell(f"  {first}", "dim")))
    return [*lines, *((Cell(" " * (len(cell.text) + 2)), Cell(part, "dim")) for part in rest)]


def problem(error: ConsoleError, width: int) -> list[Line]:
    """Why it cannot be, and what there is."""
    lines = _wrapped(_in_the_form(error.message), width, "critical")
    return lines + (_wrapped(f"→ {_in_the_form(error.hint)}", width) if error.hint else [])


def _in_the_form(sentence: str) -> str:
    """A sentence of the command line with the form's words for its options."""
    for key, label, _ in FIELDS:
        sentence = sentence.replace(f"--{key}", label)
    return plain_line(sentence)


def _wrapped(text: str, width: int, tone: Tone = "") -> list[Line]:
    return [(Cell(part, tone),) for part in textwrap.wrap(text, max(20, width), break_on_hyphens=False)]

"""What stands below the launch form's fields: the docker line, how far a launch is, why it failed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import duration, plain_line, shorten, size
from gpuconsole.engine.model import Image
from gpuconsole.images.facts import ImageFacts, image_facts
from gpuconsole.services.images import ImageView
from gpuconsole.services.launching import Launched
from gpuconsole.services.launchruns import LaunchNews
from gpuconsole.services.planning import LaunchPlan
from gpuconsole.services.preflight import warnings
from gpuconsole.services.shownsecrets import HIDDEN, ShownLine, shown_line
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.gpu import bar
from gpuconsole.tui.present.layers import layer_line, layer_order
from gpuconsole.tui.present.verdict import word_cell
from gpuconsole.tui.theme import UNICODE, Glyphs

if TYPE_CHECKING:
    from gpuconsole.services.shelf import Shelf

Lines = list[tuple[Cell, ...]]
_JOINED = "\ue000"
"""Stands for a space at which no row may end."""


def wrapped(text: str, width: int, tone: Tone = "", *, indent: str = "") -> Lines:
    """``text`` in lines of at most ``width`` cells, one cell from the edge."""
    parts = textwrap.wrap(
        text, max(20, width - 2), break_on_hyphens=False, subsequent_indent=indent, drop_whitespace=True
    )
    return [(Cell(f" {part}", tone),) for part in parts]


def docker_lines(plan: LaunchPlan, width: int, tone: Tone = "info") -> Lines:
    """The ``docker run`` line in rows, and what to know before it is copied.

    An option and its value stay together where a row has room for both.
    """
    line = shown_line(plan)
    pieces: list[str] = []
    for word in line.words:
        before = pieces[-1] if pieces else ""
        fits = len(before) + len(word) < width - 6
        if before.startswith("--") and _JOINED not in before and not word.startswith("-") and fits:
            pieces[-1] = f"{before}{_JOINED}{word}"
        else:
            pieces.append(word)
    rows = wrapped(" ".join(pieces), width, tone, indent="  ")
    lines = [tuple(Cell(cell.text.replace(_JOINED, " "), cell.tone) for cell in row) for row in rows]
    return lines + [row for words in _line_words(line) for row in wrapped(words, width, "dim")]


def _line_words(line: ShownLine) -> Iterable[str]:
    """What to know before the line is copied."""
    if line.exported:
        names = plain_line(", ".join(line.exported))
        yield f"Not shown, since it looks like a secret: {names}. Copied, the line takes it from the shell: export it."
    if line.hides:
        yield f"{HIDDEN} stands for what looks like a secret: copied, the line does not run as it is."
    if line.needs_bash:
        yield "Copied, the line needs bash, zsh, ksh or busybox for the line breaks in it; sh may not read them."


def plan_lines(plan: LaunchPlan, *, to_pull: bool, width: int, also: Iterable[tuple[Cell, ...]] = ()) -> Lines:
    """The docker line, which GPUs and why, and what may not be meant; not what preflight says beside the fields.

    Args:
        plan: The launch.
        to_pull: Its image is not here.
        width: Cells of a line.
        also: What could not be said beside the fields.
    """
    lines = docker_lines(plan, width)
    beside = warnings(plan.findings, plan.spec.force)
    if to_pull:
        lines += wrapped(f"{plan.spec.image} is not here: it will be pulled.", width, "watch")
    lines += also
    notes = (note for note in plan.notes if note not in beside)
    lines += [line for note in notes for line in wrapped(plain_line(note), width, "watch")]
    lines += [line for reason in plan.reasons for line in wrapped(plain_line(reason), width, "dim")]
    return lines


def failure_lines(error: ConsoleError, width: int) -> Lines:
    """What happened, and what to do."""
    lines = wrapped(plain_line(error.message), width, "critical")
    return lines + (wrapped(plain_line(error.hint), width) if error.hint else [])


def ended_lines(launched: Launched, width: int, keys: Keymap = USUAL) -> Lines:
    """A container that ended badly at once, with the last it said."""
    ending = launched.ending
    words = "has ended" if ending is None else ending.words
    lines = wrapped(f"{launched.name} {words}.", width, "critical")
    if ending is not None and ending.restarts is not None:
        logs = keys.name("container.logs")
        lines += wrapped(f"It goes on so until it is stopped; {logs} shows its output on the main screen.", width)
    elif launched.plan.request.auto_remove:
        lines += wrapped("It was removed, as ticked.", width)
    else:
        words = "It is kept: {container.logs} shows its output on the main screen, {container.remove} removes it."
        lines += wrapped(keys.fill(words), width)
    said = ending.last_lines if ending is not None else ()
    return lines + [(Cell(f" | {shorten(plain_line(line), max(10, width - 4))}", "dim"),) for line in said]


def progress_lines(news: LaunchNews, glyphs: Glyphs, *, width: int, rows: int) -> Lines:
    """Where a launch is: in words, the whole of a pull, and its layers, those at work first."""
    share = news.share
    lines: Lines = []
    if share is not None:
        lines.append((Cell(f" {bar(share, max(10, width - 10), glyphs)} {share:4.0%}", "accent"),))
    lines += wrapped(f"{news.words[:1].upper()}{news.words[1:]}{glyphs.ellipsis}", width, "accent")
    if news.pull is None:
        return lines
    room = rows - len(lines)
    layers = sorted(news.pull.each, key=layer_order)
    shown = layers if len(layers) <= room else layers[: max(0, room - 1)]
    lines += [layer_line(layer, glyphs, width) for layer in shown]
    if len(shown) < len(layers):
        lines.append((Cell(f" and {len(layers) - len(shown)} more layers", "dim"),))
    return lines


def facts_words(facts: ImageFacts) -> str:
    """``torch 2.9.0, CUDA 12.8``; empty when nothing is known."""
    words = []
    if facts.torch:
        words.append(f"torch {facts.torch.value}")
    if facts.cpu_only:
        words.append("CPU only")
    elif facts.cuda:
        words.append(f"CUDA {facts.cuda.value}")
    return ", ".join(words)


def image_words(image: Image | None) -> str:
    """What is known of the chosen image."""
    return "" if image is None else facts_words(image_facts(image))


def image_choices(
    images: Sequence[ImageView], words: str, *, now: float, shelf: Shelf | None = None, glyphs: Glyphs = UNICODE
) -> Iterable[tuple[str, str]]:
    """Names of images that have ``words`` in them, each with what is known of it.

    Local ones first, the newest first; then those of the catalog that would be pulled, without any word only the
    recommended ones.

    Args:
        images: The local ones.
        words: What was typed.
        now: Seconds since the epoch.
        shelf: What could be pulled; None when that is not known.
        glyphs: The signs to draw with.
    """
    wanted = words.lower().split()
    for view in sorted(images, key=lambda each: each.image.created_at or 0, reverse=True):
        for tag in view.image.tags:
            if all(word in tag.lower() for word in wanted):
                age = f"{duration(now - view.image.created_at)} old" if view.image.created_at else ""
                facts = [_warning(view, glyphs), facts_words(view.facts), size(view.image.size_bytes), age]
                yield tag, ", ".join(part for part in facts if part)
    for entry in shelf.catalog if shelf is not None else ():
        name = entry.image.reference
        if all(word in name.lower() for word in wanted) and (wanted or entry.recommended):
            yield name, f"{word_cell(entry.verdict.word, glyphs).text}, to pull"


def _warning(view: ImageView, glyphs: Glyphs) -> str:
    """The verdict on a local image, where it is not simply that it runs."""
    if view.verdict is None or view.verdict.word.value in ("runs", "unknown"):
        return ""
    return word_cell(view.verdict.word, glyphs).text

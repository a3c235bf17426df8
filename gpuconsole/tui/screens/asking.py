"""What is asked before something is changed: a plain question about one's own, the name typed for another user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.core.text import shorten, size
from gpuconsole.images.reference import shorter
from gpuconsole.services.imagenames import written_name
from gpuconsole.services.secrets import mask_text
from gpuconsole.tui.screens.question import Question

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuconsole.engine.model import Container
    from gpuconsole.host.model import Holder
    from gpuconsole.services.imageremoval import Removal
    from gpuconsole.services.profilefilling import Filling
    from gpuconsole.services.profilereach import Reach

_LISTED = 6
_BENCH, _LAUNCH = "bench of ", "launch of "
_LONGEST_NAME = 64
"""Characters of a container's name in a question: Docker takes any number."""
_SHOWN = 300
"""Characters of a command line in a question."""


def about_container(verb: str, container: Container, owner: str | None) -> Question:
    """Whether ``verb`` is to be done to a container; ``owner`` is another user, None when it is one's own."""
    long = len(container.name) > _LONGEST_NAME  # nobody types it, and it would push the answers off the screen
    word = container.short_id if long else container.name
    return Question(
        title=f"{verb} {shorten(container.name, _LONGEST_NAME)}?",
        body=_consequences(verb, container),
        verb=verb,
        word=word if owner else None,
        word_is=f"its id, {word}," if long else "its name",
        warning=f"It belongs to {owner}." if owner else "",
    )


def about_process(holder: Holder, owner: str | None) -> Question:
    """Whether a process is to be ended; ``owner`` is another user, None when it is one's own."""
    whose = holder.user or holder.uid
    of = f" of {whose}" if whose is not None else ""
    inside = f", in {holder.container_name}" if holder.container_name else ""
    command = shorten(mask_text(holder.command), _SHOWN) if holder.command else "–"
    return Question(
        title=f"End process {holder.pid}?",
        body=f"pid {holder.pid}{of} on GPU {holder.gpu_index}{inside}:\n{command}",
        verb="End",
        word=str(holder.pid) if owner else None,
        word_is="its number",
        warning=f"It belongs to {owner}." if owner else "",
    )


def about_launch(behind: str) -> Question:
    """Whether a launch under way is to be stopped; ``behind`` is the key that leaves it to go on."""
    return Question(
        title="Stop this launch?",
        body="What was made is taken back. Layers of the image that are complete stay.\n"
        f"{behind} instead leaves it to go on behind.",
        verb="Stop it",
    )


def about_reach(filling: Filling, found: Sequence[Reach]) -> Question:
    """Whether to launch with what a project's profile takes from outside of its folder."""
    return Question(
        f"Launch {filling.name} with that?",
        f"The profile {filling.name} of {filling.profile.source.shown}, which came with this folder,\n"
        + "\n".join(f"  {reach.words}" for reach in found)
        + "\nYes counts for now, and as long as this stays so.",
        "Launch it",
    )


def about_leaving(going: Sequence[str]) -> Question:
    """Whether to leave although that ends launches, pulls, builds and benchmarks, a phrase each."""
    listed = [shorten(each, 60) for each in going[:_LISTED]]
    if len(going) > _LISTED:
        listed.append(f"and {len(going) - _LISTED} more")
    ends = f"Leaving ends {'it' if len(going) == 1 else 'them'}."
    if any(each.startswith(_LAUNCH) for each in going):
        ends += " What a launch has made is taken back."
    if any(not each.startswith((_BENCH, _LAUNCH)) for each in going):
        ends += " Layers that are complete stay; the next time goes on."
    if any(each.startswith(_BENCH) for each in going):
        ends += " What a benchmark has measured until now is kept."
    return Question("Leave while this goes on?", "\n".join((*listed, "", ends)), "Leave")


def about_unfit(name: str, why: str, instead: str | None) -> Question:
    """Whether to pull an image that will not run here."""
    would = f"\n{instead} would run." if instead else ""
    return Question("Pull what will not run here?", f"{shorter(name)}\n{why}.{would}", "Pull it")


def about_unpin(reference: str, lock: str) -> Question:
    """Whether a pin is to go."""
    return Question(
        "Take the pin away?",
        f"{shorter(reference)}\n{lock} holds it no more: launches take what the name leads to, and it may be removed.",
        "Unpin",
    )


def about_removal(removal: Removal) -> Question:
    """Whether an image is to be removed."""
    others = f"\nIt goes with all its names: {', '.join(removal.names)}" if len(removal.names) > 1 else ""
    return Question(
        "Remove this image?",
        f"{shorter(removal.name)}\nIt frees {size(removal.freed_bytes)} at most: layers that other images share stay."
        f"{others}",
        "Remove",
    )


def about_file(path: Path) -> Question:
    """Whether a file that is there is to be written over."""
    return Question(f"Write over {path}?", "The file is there already; what is in it goes.", "Write over")


def _consequences(verb: str, container: Container) -> str:
    image = written_name(container)
    if verb == "Remove":
        running = "It runs: it will be killed. " if container.running else ""
        return f"{running}What was written inside it goes; mounted folders and named volumes stay.\n{image}"
    if verb in ("Stop", "Restart"):
        return f"SIGTERM now, SIGKILL after 10 s.\n{image}"
    if verb in ("Check", "Bench"):
        return f"Programs are run inside it, and use its GPUs for a moment.\n{image}"
    return image

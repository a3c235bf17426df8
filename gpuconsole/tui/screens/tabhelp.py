"""What the main screen's help says of the list that is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuconsole.tui.theme import Glyphs

_WORDS = {
    "gpus": (
        "The GPUs, and who holds memory on each. Arrows go from one to another, enter opens the one under the cursor "
        "with its past, {gpu.bench} measures it, {thing.ring} rings when it is free.\n{RINGS}"
    ),
    "containers": (
        "The containers: their GPUs, what they hold and use, how they are. CHECK is how the last check of each went. "
        "{BUSY} and a word beside a name is what is being done with it now.\n{RINGS}"
    ),
    "images": (
        "The images that are here and, marked by {ABSENT}, those of the catalog that could be pulled. RUNS HERE is "
        "whether one works with this driver and these GPUs, and WHY; PIN whether a lock file holds it. CHECK is how "
        'the last check of it went; "seen" is that none was made of it, but one in a container of it told what is '
        "inside.\n{BUSY} and a word beside a name is what is being done with it now."
    ),
    "processes": (
        "The processes that hold memory on a GPU, with the container and the user of each; what a driver or another "
        "user's rights hide is a dash. {process.kill} ends one, after a question.\n{RINGS}"
    ),
    "runs": (
        "Checks, benchmarks, launches, pulls and builds, the newest first, those of earlier consoles too. Enter opens "
        "one with all it told, {run.cancel} ends one that is under way. Leaving the console ends what it carries out, "
        "which stands here then as cancelled; containers go on.\nA launch is up as long as its container is, and then "
        "tells how that ended. The last 20 stand here, also those of the command line; 'gpuconsole runs' lists all.\n"
        "Checks and benchmarks of one GPU come one after "
        "another, also those of other consoles and users of this machine: one that waits says for whom.\n{RINGS}"
    ),
}
_EVERYWHERE = (
    "Tab goes between the GPUs and the list; {tabs.containers} {tabs.images} {tabs.processes} {tabs.runs} choose the "
    "list. {BUSY} and a number beside Runs is how many runs are under way."
)
_RINGS = "What is marked {RING} rings once, as long as this console is open: the marks go with it."


def words_of(part: str, glyphs: Glyphs) -> str:
    """The help of a list, or of ``gpus``; keys stand in it as their actions."""
    text = f"{_WORDS[part]}\n\n{_EVERYWHERE}"
    for name, words in {"RINGS": _RINGS, "BUSY": glyphs.busy, "ABSENT": glyphs.absent, "RING": glyphs.ring}.items():
        text = text.replace(f"{{{name}}}", words)
    return text

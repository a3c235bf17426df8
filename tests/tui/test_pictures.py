"""The README's pictures are of the console as it is: drawn again from the recording, they are the same to the byte."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "screenshots"


def program() -> ModuleType:
    """``screenshots/make.py``, which is no part of the package."""
    if (known := sys.modules.get("gpuconsole_pictures")) is not None:
        return known
    spec = importlib.util.spec_from_file_location("gpuconsole_pictures", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


MAKE = program()
needs_recording = pytest.mark.skipif(not MAKE.RECORDING.exists(), reason="no recording of a real GPU is here yet")


@needs_recording
@pytest.mark.parametrize(
    ("scene", "size"),
    [*((scene, (80, 24)) for scene in MAKE.SCENES), (MAKE.SCENES[0], (120, 36)), (MAKE.SCENES[0], (200, 50))],
    ids=lambda value: value if isinstance(value, tuple) else value.name,
)
async def test_a_picture_is_what_would_be_drawn_now(scene: object, size: tuple[int, int]) -> None:
    recording = MAKE.load(MAKE.RECORDING)
    with MAKE.fixed_surroundings():
        drawn = await MAKE.draw(recording, scene, size)
    kept = (FOLDER / f"{scene.name}-{size[0]}x{size[1]}.svg").read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert words_of(drawn) == words_of(kept), "draw them again: python3 screenshots/make.py"
    assert drawn == kept, "draw them again: python3 screenshots/make.py"


def words_of(svg: str) -> list[str]:
    """What stands in a picture, so that a difference can be read."""
    return [element.text or "" for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]


@needs_recording
def test_every_picture_is_there_in_both_forms_and_small() -> None:
    names = {f"{scene.name}-{width}x{height}" for scene in MAKE.SCENES for width, height in MAKE.SIZES}
    for suffix in ("svg", "png"):
        assert {path.stem for path in FOLDER.glob(f"*.{suffix}")} == names
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.suffix in (".svg", ".png")) < 1_500_000


def test_pictures_the_readme_shows_are_there_and_say_what_they_show() -> None:
    shown = re.findall(r"!\[([^\]]*)\]\((screenshots/[^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    for words, path in shown:
        assert (ROOT / path).is_file(), path
        assert len(words) > 20, path
    assert bool(shown) == MAKE.RECORDING.exists()


def test_cells_become_a_picture_that_says_what_stands_there() -> None:
    from rich.segment import Segment
    from rich.style import Style

    row = [
        Segment("a<b&", Style(color="#ff0000", bold=True)), Segment("█▄▌ ", Style(color="#00ff00")), Segment("日本"),
        Segment("x", Style(color="#000000", bgcolor="#ffffff", reverse=True)),
    ]  # fmt: skip
    text = MAKE.picture([row], (12, 1), fill="#cccccc", back="#101010", alt="two < three")
    root = ElementTree.fromstring(text)
    assert words_of(text) == ["a<b&", "日本", "x"]
    assert 'x="96.32"' in text, "a sign two cells wide takes two cells"
    assert text.count("<path") == 1
    assert [element.text for element in root if element.tag.endswith("title")] == ["two < three"]
    assert text == MAKE.picture([row], (12, 1), fill="#cccccc", back="#101010", alt="two < three")

"""Keys of the user's own: what can be, what is refused and why, and that every place shows them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from textual.binding import BindingsMap
from textual.command import CommandPalette

from gpuconsole.core.config import Config, config_path
from gpuconsole.tui import actions
from gpuconsole.tui.keymap import Keymap, canonical
from gpuconsole.tui.keymapcheck import _bindings, _held, _ids, _places, check
from gpuconsole.tui.present.helping import key_name
from gpuconsole.tui.screens.help import HelpScreen
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.screens.reading import ReadingScreen
from tests.rig.nvml import NvmlBox
from tests.tui.console import console, shown, until


def words(**keys: str | tuple[str, ...]) -> dict[str, str]:
    """What is wrong with these keys (``container__stop="x"``)."""
    given = {name.replace("__", "."): (each,) if isinstance(each, str) else each for name, each in keys.items()}
    return {each.field.removeprefix("keys."): each.words for each in check(Config(keys=given))}


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("x", "x"), ("X", "X"), ("?", "question_mark"), ("/", "slash"), ("^x", "ctrl+x"), ("Ctrl+X", "ctrl+x"),
        ("C-x", "ctrl+x"), ("esc", "escape"), ("F5", "f5"), ("PgDn", "pagedown"), ("question_mark", "question_mark"),
        (" ", "space"), ("shift+F3", "shift+f3"), (",", "comma"),
    ],
)  # fmt: skip
def test_a_key_is_written_as_people_write_it(written: str, key: str) -> None:
    assert canonical(written) == key


def test_what_can_be(tmp_path: Path) -> None:
    assert words(container__stop="X", app__quit=("Q", "f10"), logs__save="f3", launch__start="ctrl+x") == {}
    assert words(container__logs="s", container__shell="l") == {}, "two can change places"
    assert words(container__stop="x") == {}, "as it is already"


@pytest.mark.parametrize("name", ["ctrl+a", "ctrl+b", "^a", "C-b", "Ctrl+A"])
@pytest.mark.parametrize("action", ["app__quit", "container__stop", "launch__start", "logs__save"])
def test_the_prefix_keys_are_refused_with_the_reason(name: str, action: str) -> None:
    assert "prefix key" in words(**{action: name})[action.replace("__", ".")]


@pytest.mark.parametrize(
    ("action", "key", "said"),
    [
        ("container__stop", "j", "j is Down on the list already"),
        ("container__stop", "l", "container.logs"),
        ("container__stop", "q", "app.quit"),
        ("container__stop", "tab", "already"),
        ("container__stop", "enter", "already"),
        ("gpu__span", "K", "process.kill on a GPU's screen"),
        ("logs__save", "w", "logs.wrap on the output"),
        ("screen__back", "z", "gpu.span"),
        ("container__stop", "^i", "a terminal sends tab for ctrl+i"),
        ("container__stop", "foo", "there is no key 'foo'"),
        ("container__stop", "escpe", "did you mean 'escape'?"),
        ("container__stop", "", "there is no key"),
        ("container__stop", "\x1b[2J", "there is no key '"),
        ("launch__start", "l", "typed into the form's fields"),
        ("container__stopp", "X", "there is no such action; did you mean 'container.stop'?"),
    ],
)
def test_what_cannot_be_is_said(action: str, key: str, said: str) -> None:
    told = words(**{action: key})[action.replace("__", ".")]
    assert said in told
    assert "\x1b" not in told


def test_no_key_at_all_and_one_key_for_two_are_refused() -> None:
    assert "a key at least" in words(container__stop=())["container.stop"]
    told = words(container__stop="Z", list__mine="Z")
    assert told == {
        "container.stop": "Z is list.mine on the list already",
        "list.mine": "Z is container.stop on the list already",
    }


def test_every_action_can_be_given_another_key_and_the_usual_ones_are_no_mistake() -> None:
    assert {each.id for each in actions.ALL} <= set(_ids())
    assert check(Config(keys={each.id: tuple(each.key.split(",")) for each in actions.ALL})) == []


@pytest.mark.parametrize("place", list(_places()))
def test_another_key_for_one_action_takes_none_from_another(place: str) -> None:
    def held(bindings: BindingsMap, but: str) -> set[tuple[str, str]]:
        return {(key, one.action) for key, each in bindings.key_to_bindings.items() for one in each if one.id != but}

    for each in _places()[place]:
        usual = each._merge_bindings()
        for name in {one.id for one in _bindings([each]) if one.id}:
            changed = usual.copy()
            changed.apply_keymap(Keymap({name: ("f24",)}).textual())
            assert held(changed, name) == held(usual, name)
            assert "f24" in changed.key_to_bindings


@pytest.mark.parametrize("place", _places())
def test_no_screen_of_ours_binds_a_prefix_key_or_one_key_to_two_things(place: str) -> None:
    held = _held([cls for cls in _places()[place] if "gpuconsole" in cls.__module__], Keymap())
    own = {
        key: {name for name in found if found[name].id and not name.startswith(("app.", "screen."))}
        for key, found in held.items()
    }
    # What is done with a container, an image, a process, a run and a GPU never applies at once; the rest always.
    kinds = [("container.",), ("image.", "images."), ("process.",), ("run.",), ("gpu.",)]
    others = tuple(prefix for kind in kinds for prefix in kind)
    for kind in kinds:
        twice = [
            key
            for key, names in own.items()
            if len([name for name in names if name.startswith(kind) or not name.startswith(others)]) > 1
        ]
        assert twice == []
    assert not held.keys() & set(actions.FORBIDDEN_KEYS)


async def test_the_new_keys_work_and_every_place_shows_them(nvml: NvmlBox, tmp_path: Path) -> None:
    config = Config(
        keys={"launch.new": ("N",), "app.quit": ("f10",), "app.help": ("h",), "tabs.runs": ("f8",)},
        theme="light", refresh_s=3.0, ascii=True,
    )  # fmt: skip
    app = console(f"unix://{tmp_path}/none.sock", tmp_path, config=config)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.link is not None)
        assert app.theme == "gpuconsole-light"
        assert app.glyphs.full == "#"
        assert app.pace_s == 3.0
        await pilot.pause()
        last = shown(app).splitlines()[-1]
        assert "N New" in last
        assert "h Help" in last
        await pilot.press("4", "n", "q")
        assert isinstance(app.screen, MainScreen)
        assert app.screen.tab == "containers"
        await pilot.press("f8")
        assert app.screen.tab == "runs"
        await pilot.pause()
        assert "N launches one" in " ".join(shown(app).split())
        await pilot.press("plus")
        assert app.pace_s == 2.0
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert isinstance(app.screen, ReadingScreen)
        text = app.screen._text
        assert any(line.split()[:2] == ["N", "New"] for line in text.splitlines())
        assert "1 2 3 F8 choose the list" in text
        assert not any(line.startswith("q ") for line in text.splitlines())
        await pilot.press("escape", "colon", *"new")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await until(pilot, lambda: "N  Launch a container" in shown(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        await pilot.press("f10")
    assert app.return_code == 0


def test_the_paces_that_can_be_chosen_begin_wherever_one_is(tmp_path: Path) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path, config=Config(refresh_s=0.7))
    screen = MainScreen()
    screen._parent = app
    seen = []
    for step in (1, 1, -1, -1, -1, -1):
        screen.action_pace(step)
        seen.append(app.pace_s)
    assert seen == [1.0, 2.0, 1.0, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('theme = "drak"\n[keys]\ncontainer.stop = "^b"\n', ["line 1, theme", "did you mean 'dark'?", "prefix key"]),
        ("refresh = 99\n", ["line 1, refresh", "from 0.5 to 10"]),
        ("theme = \n", ["is not TOML"]),
    ],
)
def test_a_bad_configuration_ends_before_the_terminal_is_taken(text: str, said: list[str]) -> None:
    path = config_path()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 400, 0, 0))
    done = subprocess.run(
        [sys.executable, "-m", "gpuconsole"], stdin=its, stdout=its, stderr=its, check=False, timeout=60
    )  # fmt: skip
    os.set_blocking(ours, False)
    told = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(its)
    assert done.returncode == 8
    for each in (*said, str(path), "→"):
        assert each in told
    assert "Traceback" not in told
    assert "\x1b[?1049h" not in told


def test_names_of_keys_are_those_on_the_keyboard() -> None:
    assert [key_name(canonical(each)) for each in ("?", "^x", "f5", "esc", ",")] == ["?", "^x", "F5", "esc", ","]


def test_the_actions_named_in_the_readme_are_those_there_are() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    listed = text[text.index("The actions: ") :].partition("\n\n")[0]
    assert re.findall(r"`([a-z_.]+)`", listed) == [action.id for action in actions.ALL]

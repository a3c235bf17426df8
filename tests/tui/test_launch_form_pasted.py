"""What is pasted into the launch form: every line has its place, or a word says that it was left out."""

from __future__ import annotations

from collections.abc import Callable

from textual import events

from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.present import launchform
from gpuconsole.tui.screens.launch import LaunchScreen
from tests.tui.console import until
from tests.tui.looking import feed, still

__all__ = ["still"]


async def test_each_pasted_line_has_its_place(still: Callable[..., ConsoleApp]) -> None:
    app = still()
    async with app.run_test(size=(120, 50)) as pilot:
        await feed(pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen._began, what="the form")
        assert isinstance(app.screen, LaunchScreen)
        fields = app.screen.fields

        async def paste(key: str, text: str) -> None:
            fields.go_to(key)
            await pilot.pause()
            app.post_message(events.Paste(text))
            await pilot.pause()

        def told(words: str) -> bool:
            return any(words in each.message for each in app._notifications)

        fields.set("volumes", "/z:/z")
        await paste("command", "python train.py \\\r  --lr 0.1 \\\r  --epochs 3\r")
        assert fields.value("command") == "python train.py --lr 0.1 --epochs 3"
        for field in launchform.FIELDS:
            if field.shape is launchform.Shape.WORDS and field.key != "command":
                app.screen.add_class("-more")
                fields.set(field.key, "")
                await paste(field.key, "a=1\nb=2\n")
                assert fields.value(field.key) == "a=1 b=2", field.key
        fields.set("volumes", "\n/z:/z")
        lines = [f"/{n}:/{n}" for n in range(3)]
        await paste("volumes", "\n".join(lines))
        await until(pilot, lambda: fields.value("volumes").splitlines()[1:3] == lines[1:], what="a line each")
        await paste("volumes", "\n".join(f"/more{n}:/x" for n in range(300)))
        await until(pilot, lambda: told("were left out"), what="the word")
        assert len(fields.value("volumes").splitlines()) == launchform.MOST_VOLUMES
        await paste("name", "\rtrain\rother\r")
        assert fields.value("name") == "train"
        await until(pilot, lambda: told("Only the first of 2"), what="the word")

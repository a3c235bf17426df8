"""How the launch form looks with all of it in use: filled by a profile, saved as one, and what is told once after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.profilefile import ProfileSource
from gpuconsole.launch.profiles import ResolvedProfile
from gpuconsole.services.access import Access
from gpuconsole.services.profilefilling import Filling
from gpuconsole.tui.screens.launchaccess import AccessScreen
from gpuconsole.tui.screens.launchsaving import SaveProfile
from gpuconsole.tui.widgets.lines import Lines
from tests.tui.console import until
from tests.tui.formseen import weighed
from tests.tui.looking import still
from tests.tui.test_looks import Compare, Make, canned_weight, launch, main, same, settled

__all__ = ["canned_weight", "still"]
FILLED = {
    "profile": "train", "image": "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", "gpus": "2", "kind": "torchrun",
    "command": "train.py --config llama-8b.yaml --resume auto", "workdir": "/workspace", "tmpfs": "/scratch:size=64g",
    "volumes": "/home/ada/llama:/workspace\n/data:/data:ro", "environment": "WANDB_MODE=offline",
    "rendezvous": "node-1:29500", "rendezvous_id": "llama", "nodes": "2", "network": "host", "memory": "64g",
}  # fmt: skip
PROFILE = Filling(
    ResolvedProfile("train", ProfileSource(Path("gpuconsole.toml"), "./gpuconsole.toml", True), ()), LaunchOptions("a")
)
ACCESS = Access(
    "JupyterLab",
    "http://127.0.0.1:8888/lab?token=oiBrFxYchAL1JoHHq9uPqcrlYsKMSAiL",
    "/home/ada/.local/state/gpuconsole/jupyter/761f69c06a6c8fca/jupyter_token",
    "ssh -N -L 8888:127.0.0.1:8888 ada@ws-07",
)


async def filled(pilot: Pilot[Any]) -> None:
    """What a profile says, and where it goes beyond the first page the rest is open."""
    await launch(pilot)
    app: Any = pilot.app
    app.screen.take_filling(PROFILE)
    app.screen.fields.fill(FILLED)
    app.screen.show_more()
    await weighed(pilot, app)
    assert app.screen._weight.plan
    await settled(pilot)


async def rare(pilot: Pilot[Any]) -> None:
    """The same, at what is rarely needed."""
    await filled(pilot)
    app: Any = pilot.app
    app.screen.fields.go_to("entrypoint")
    await settled(pilot)


async def saving(pilot: Pilot[Any]) -> None:
    """The name is taken."""
    await launch(pilot)
    app: Any = pilot.app
    await pilot.press("f3")
    await until(pilot, lambda: isinstance(app.screen, SaveProfile) and app.focused is not None)
    app.screen._taken = app.screen._place
    app.screen._tell("./gpuconsole.toml has a profile pytorch already. Save once more to replace it.")
    await settled(pilot)


async def access(pilot: Pilot[Any]) -> None:
    """Where to point a browser."""
    await main(pilot)
    app: Any = pilot.app
    app.push_screen(AccessScreen(ACCESS, "notes"))
    await until(
        pilot,
        lambda: (
            isinstance(app.screen, AccessScreen)
            and app.screen.query("#told")
            and app.screen.query_one("#told", Lines).lines
        ),
    )
    await settled(pilot)


LOOKS = {
    "filled-80x24": (filled, (80, 24)),
    "rare-80x24": (rare, (80, 24)),
    "saving-80x24": (saving, (80, 24)),
    "access-80x24": (access, (80, 24)),
}


@pytest.mark.parametrize("name", LOOKS)
def test_the_form(snap_compare: Compare, still: Make, name: str) -> None:
    look, size = LOOKS[name]
    assert same(snap_compare, still(), look, size)

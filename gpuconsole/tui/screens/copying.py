"""What of a thing can be copied: names, ids, lines to type; to the clipboard, or shown bare to be marked."""

from __future__ import annotations

import shlex
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from gpuconsole.core.text import shorten
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.services import tmux
from gpuconsole.services.catalog import CatalogView
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.imagenames import written_name
from gpuconsole.services.images import ImageView
from gpuconsole.services.runs import Run
from gpuconsole.services.secrets import mask_arguments, mask_text
from gpuconsole.services.tunnels import Server, tunnel
from gpuconsole.tui import actions, sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present.cell import Cell, Column, Row
from gpuconsole.tui.screens.lending import terminal_lent
from gpuconsole.tui.widgets.grid import Grid
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp

_MUCH = 100_000
"""Characters above which many terminals ignore what is sent to their clipboard."""
_COLUMNS = (Column("what", "WHAT", 14), Column("text", "TEXT", 12, grow=1))


@dataclass(frozen=True, slots=True)
class Copy:
    """One text that can be copied."""

    what: str
    text: str


def copy(app: ConsoleApp, text: str) -> None:
    """Put ``text`` into the terminal's clipboard, and into tmux's buffer, without waiting for tmux."""
    app.copy_to_clipboard(text)
    threading.Thread(target=tmux.copy, args=(text,), name="tmux-buffer", daemon=True).start()


Copyable = ContainerView | ImageView | CatalogView | Holder | Run | GpuView


def copies_of(thing: Copyable, *, server: Server) -> tuple[Copy, ...]:
    """What of ``thing`` can be copied; secrets masked.

    Args:
        thing: The thing.
        server: How the engine's machine is reached, for lines to type on another one.
    """
    if isinstance(thing, ContainerView):
        found = _of_container(thing, server)
    elif isinstance(thing, ImageView):
        found = _of_image(thing)
    elif isinstance(thing, CatalogView):
        found = _of_catalog(thing)
    elif isinstance(thing, Holder):
        found = _of_process(thing)
    elif isinstance(thing, GpuView):
        found = _of_gpu(thing)
    else:
        found = [("how it went", thing.headline), ("of", thing.subject), ("its id", thing.subject_id),
                 ("report, JSON", thing.document)]  # fmt: skip
    return tuple(Copy(what, text) for what, text in found if text)


def _of_container(view: ContainerView, server: Server) -> list[tuple[str, str | None]]:
    container = view.container
    name = shlex.quote(container.name)
    tunnels = [(f"port {port.container_port}", tunnel(port, server)) for port in container.ports]
    return [
        ("name", container.name),
        ("id", container.id),
        *tunnels,
        ("docker exec", f"docker exec -it {name} bash"),
        ("docker logs", f"docker logs -f --tail 100 {name}"),
        ("image", written_name(container)),
        ("digest", view.image_digest),
        ("command", shlex.join(mask_arguments((*container.entrypoint, *container.command)))),
    ]


def _of_image(view: ImageView) -> list[tuple[str, str | None]]:
    image = view.image
    return [
        *(("name", tag) for tag in image.tags),
        *(("by digest", digest) for digest in image.digests),
        ("id", image.id),
        ("docker run", f"docker run --rm -it --gpus all {shlex.quote(image.name)}"),
    ]


def _of_catalog(view: CatalogView) -> list[tuple[str, str | None]]:
    reference = view.image.reference
    return [
        ("name", reference),
        ("digest", view.image.digest),
        ("to pull", f"gpuconsole pull {shlex.quote(reference)}"),
        ("docker pull", f"docker pull {shlex.quote(reference)}"),
    ]


def _of_process(holder: Holder) -> list[tuple[str, str | None]]:
    return [
        ("pid", str(holder.pid)),
        ("command", mask_text(holder.command) if holder.command else None),
        ("container", holder.container_name),
        ("container id", holder.container_id),
        ("GPU", holder.gpu_uuid),
        ("user", holder.user),
    ]


def _of_gpu(view: GpuView) -> list[tuple[str, str | None]]:
    uuid = view.gpu.uuid
    return [
        ("UUID", uuid),
        ("docker run", f"--gpus device={uuid}" if uuid else None),
        ("CUDA", f"CUDA_VISIBLE_DEVICES={uuid}" if uuid else None),
        ("name", view.gpu.name),
        ("PCI address", view.gpu.pci_bus_id),
        *(("MIG instance", mig.uuid) for mig in view.gpu.migs),
    ]


class _Copies(Grid):
    """What can be copied."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "Copy", tooltip="Copy it", id="thing.open")]


class CopyScreen(ModalScreen[None]):
    """A list of texts; enter copies one."""

    CSS_PATH = sheets.of("copying")
    app: ConsoleApp
    HELP = (
        "Enter copies. Where the terminal has no clipboard, {copy.plain} shows the text bare, "
        "to be marked with the mouse."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings(actions.COPYING),
        actions.BACK.binding(),
    ]

    def __init__(self, copies: tuple[Copy, ...]) -> None:
        super().__init__()
        self._copies = copies

    def compose(self) -> ComposeResult:
        """Title and list."""
        with Vertical(id="copying"):
            yield Lines(id="title")
            yield _Copies(_COLUMNS, titles=False, id="copies")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Show them."""
        title = (
            Cell(" Copy", "strong"),
            Cell(self.app.keys.fill("   enter copies, {copy.plain} shows it bare"), "dim"),
        )
        self.query_one("#title", Lines).show([title])
        rows = (
            Row(str(place), (Cell(each.what, "dim"), Cell(shorten(each.text.replace("\n", " ⏎ "), 500))))
            for place, each in enumerate(self._copies)
        )
        self.query_one(Grid).show(tuple(rows))
        self.query_one(Grid).focus()

    def _chosen(self) -> Copy | None:
        place = self.query_one(Grid).cursor_index
        return self._copies[place] if place >= 0 else None

    def on_grid_chosen(self) -> None:
        """Enter on a row: copy it, and go back."""
        if chosen := self._chosen():
            copy(self.app, chosen.text)
            much = " It is long: many terminals take less." if len(chosen.text) > _MUCH else ""
            self.app.notify(f"Copied: {shorten(chosen.what, 40)}.{much}", markup=False, timeout=3)
            leave(self)

    def action_plain(self) -> None:
        """Show it bare."""
        if chosen := self._chosen():
            show_bare(self.app, chosen)

    def action_back(self) -> None:
        """Back."""
        leave(self)


def show_bare(app: ConsoleApp, what: Copy) -> None:
    """Give the terminal back and print the text: there it can be marked, also over several rows, as in a shell."""
    try:
        with terminal_lent(app):
            sys.__stdout__.write(f"\x1b[2J\x1b[H{what.text}\n\n[enter goes back to the console] ")  # type: ignore[union-attr]
            sys.__stdout__.flush()  # type: ignore[union-attr]
            sys.__stdin__.readline()  # type: ignore[union-attr]
    except SuspendNotSupported:
        from gpuconsole.tui.screens.reading import ReadingScreen

        app.push_screen(ReadingScreen(what.what, what.text))

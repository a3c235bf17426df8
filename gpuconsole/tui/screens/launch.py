"""The launch form: one screen, from defaults to a running container in one key."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widgets import Button

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.tui import actions, sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import launchform
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.screens.launchbeginning import Beginning
from gpuconsole.tui.screens.launchfields import LaunchFields
from gpuconsole.tui.screens.launchrunning import WHOLE
from gpuconsole.tui.widgets.completer import Choices
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Tick

if TYPE_CHECKING:
    from gpuconsole.services.profilefilling import Filling
    from gpuconsole.tui.app import ConsoleApp


class LaunchScreen(Beginning):
    """Asks what to launch, launches it, and joins it.

    Args:
        image: The image to begin with; None proposes one.
    """

    CSS_PATH = sheets.of("launch")
    app: ConsoleApp
    HELP = (
        "{launch.start}, or enter on Launch, starts the container. Tab and the arrows go through the fields; down "
        "opens what a field can be, tab or enter takes it. Space ticks a GPU. Below is the docker command it makes.\n"
        "A profile fills the fields; what is then written over it counts. {launch.save} saves what the fields say as "
        "one. {launch.more} opens the rest of what docker can be told.\n"
        "What is likely to fail stands under its field: {launch.mend} changes the field in focus, else the first that "
        "can be mended; {launch.force} lifts a refusal; {launch.undo} takes either back.\n"
        "What was launched from a folder is what the form starts with there the next time, without secrets and without "
        "what lifts a refusal; {launch.clear} clears it."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings((*actions.LAUNCH, actions.BACK)),
        Binding("tab", "app.focus_next", "Next field", tooltip="So does down; up goes back"),
        Binding("down", "app.focus_next", "Next field", show=False),
        Binding("up", "app.focus_previous", "Field before", show=False),
    ]

    class Began(Message):
        """What was launched from here before is known."""

        def __init__(self, values: dict[str, str], filling: Filling | ConsoleError | None) -> None:
            super().__init__()
            self.values = values
            self.filling = filling
            """The profile in it, or why that cannot be read."""

    def __init__(self, image: str | None = None) -> None:
        super().__init__()
        self._image = image
        self._begun_with: dict[str, str] = {}
        self._with_image = False
        """Launch as soon as an image is proposed."""
        self._image_open = False
        """An image may still be proposed: the focus waits on the button."""

    def compose(self) -> ComposeResult:
        """Fields, ticks and button, what it amounts to, keys."""
        yield Lines(id="top")
        yield LaunchFields(id="fields")
        with Horizontal(id="ticks"):
            yield Button("Launch", id="launch", compact=True)
            yield Tick("attach", id="join", value=True)
            yield Tick("terminal", id="terminal", value=True)
            yield Tick("remove at end", id="remove")
            yield Tick("when free", id="free")
        yield VerticalScroll(Lines(id="below"), id="room", can_focus=False)
        yield KeyLine(id="keys")
        yield Choices(id="choices")

    def on_mount(self) -> None:
        """Ask what was launched from here before."""
        if self.app.readonly:
            self.app.notify("Nothing is launched with --readonly.", severity="error", markup=False)
            leave(self)
            return
        folder = launchform.current_folder()
        words = f" in {plain_line(folder)}" if folder else ""
        self.query_one("#top", Lines).show([(Cell(" Launch a container", "strong"), Cell(words, "dim"))])
        self.query_one("#launch", Button).focus()
        self._show_gpus()
        self.watch(self.app, "host_view", self._show_gpus, init=False)
        self.watch(self.app, "images", self._propose_image, init=False)
        self.watch(self.app, "link", self._hear_link, init=False)
        self.app.desk.judge_images()  # its field completes what could be pulled, with the verdict
        desk = self.app.desk

        def recall() -> None:
            values = dict(desk.drafts.unsent or (desk.drafts.last(folder) if folder else {}))
            filling: Filling | ConsoleError | None = None
            if name := values.get("profile"):
                from gpuconsole.services.profilefilling import fill_from

                try:
                    filling = fill_from(desk.session, name)
                except ConsoleError as error:
                    filling = error
            elif desk.drafts.unsent:
                filling = desk.drafts.unsent_filling  # what it takes is asked about, named or not
            self.post_message(self.Began(values, filling))

        threading.Thread(target=recall, name="draft", daemon=True).start()

    def on_resize(self, event: events.Resize) -> None:
        """Fit what is below."""
        if self._began:
            self._show_gpus()
            self.call_after_refresh(self._show_weight)

    # --- what it starts with ---

    @on(Began)
    def _begin(self, news: Began) -> None:
        values, typed = dict(news.values), self.fields.typed()  # by somebody who did not wait
        ticked = values.pop("ticks", "")
        self._fill(values, news.filling, whole=WHOLE in ticked.split())
        for key, text in typed.items():
            self.fields.set(key, text)
        self.tick_as(ticked)
        self._begun_with = self.everything()
        self._began = True
        self.show_more()
        self._image_open = not self.fields.value("image") and self._may_propose()
        if not self.fields.value("image") and not self._image_open:
            self.fields.go_to("image")
        self._weigh()
        if self._launch_soon:
            self._launch_soon = False
            self.action_launch()

    def _fill(self, values: dict[str, str], filling: Filling | ConsoleError | None, *, whole: bool) -> None:
        """Fill the fields with what was launched or typed before, else with what is proposed.

        Args:
            values: What stood in the fields.
            filling: The profile in it, or why that cannot be read.
            whole: The fields said what the profile says; so they say what it says now.
        """
        app = self.app
        values, filling = self.still_there(values, filling)
        if not values or (whole and isinstance(filling, ConsoleError)):
            values = self.proposed_values() | values
        if self._image is not None:
            values["image"] = self._image
        elif not values.get("image"):
            values["image"] = launchform.proposed_image(app.images or ())
        self.fields.fill(values)
        if isinstance(filling, ConsoleError):
            self.profile_is_wrong(values["profile"], filling)
        elif filling is not None and whole:
            self.fill_from(filling)
            if self._image is not None:
                self.fields.set("image", self._image)
        elif filling is not None:
            self.take_filling(filling)
            self.put_back()

    def show_more(self) -> None:
        """Open what is rarely needed where something stands in it."""
        if launchform.MORE_KEYS & self.fields.typed().keys():
            self.add_class("-more")

    def _may_propose(self) -> bool:
        """The images are not listed yet, and will be."""
        link = self.app.link
        return self.app.images is None and (link is None or link.connected)

    def waits_for_image(self) -> bool:
        """Whether an image may still be proposed before anything is launched; then it is launched with that one."""
        self._with_image = self._may_propose() and not self.fields.value("image").strip()
        if self._with_image:
            self._stay([(Cell(" Waiting for the engine's list of images; then it is launched.", "accent"),)])
        return self._with_image

    def _propose_image(self) -> None:
        if not self._began or self._may_propose():
            return
        wanted, self._with_image = self._with_image, False
        waited, self._image_open = self._image_open, False
        if self.fields.value("image").strip():
            return  # written meanwhile: whoever did launches it
        if image := launchform.proposed_image(self.app.images or ()):
            self.fields.set("image", image)
            self._begun_with["image"] = image
            if self.focused is not None and self.focused.id == "field-image":
                self.query_one("#launch", Button).focus()
        elif waited and self.focused is not None and self.focused.id == "launch":
            self.fields.go_to("image")
        if wanted:
            self.action_launch()

    def _hear_link(self) -> None:
        """An engine that is away lists no images; what was wanted is refused with that."""
        self._propose_image()
        self._settle()

    # --- keys ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What can be done depends on whether a launch is under way."""
        if action in ("launch", "more", "save_profile"):
            return self._run is None
        if action == "behind":
            return self._run is not None
        return super().check_action(action, parameters)

    def action_more(self) -> None:
        """Show or hide what is rarely needed."""
        self.toggle_class("-more")
        if self.has_class("-more"):
            self.call_after_refresh(self.fields.go_to, "memory")  # once it is there to be scrolled to
        elif self.focused is not None and not self.focused.display:
            self.query_one("#launch", Button).focus()
        self._show_weight()  # what is said of hidden fields stands elsewhere

    def action_back(self) -> None:
        """Ask to stop the launch under way; else go back, and keep what was typed for the next time."""
        if self._run is not None:
            self._ask_to_stop(self._run)
            return
        if self._began:
            now = self.everything()
            self.app.desk.drafts.unsent = now if now != self._begun_with or self.app.desk.drafts.unsent else None
            self.app.desk.drafts.unsent_filling = self._filling
        leave(self)

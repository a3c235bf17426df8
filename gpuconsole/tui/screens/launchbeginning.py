"""What the launch form begins with: what was launched last, what of that is gone, and a key that clears it all."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from textual.widgets import Button

from gpuconsole.core.text import plain_line
from gpuconsole.launch.preflight import Severity
from gpuconsole.services.drafts import UNKEPT
from gpuconsole.tui.present import launchform
from gpuconsole.tui.present.launchfindings import Remark
from gpuconsole.tui.screens.launchrunning import Running
from gpuconsole.tui.widgets.tick import Tick

if TYPE_CHECKING:
    from gpuconsole.core.errors import ConsoleError
    from gpuconsole.services.profilefilling import Filling


class Beginning(Running):
    """A form that begins with what was launched last, and can be cleared."""

    def __init__(self) -> None:
        super().__init__()
        self._image: str | None = None
        """The image to begin with, whatever was launched last."""
        self._gone = ""
        """The profile of the last launch, which is there no more."""
        self._unkept: tuple[str, ...] = ()
        """Variables of the last launch whose values are written nowhere."""
        self._cleared: tuple[dict[str, str], Filling | None, dict[str, str]] | None = None
        """What stood in the form before it was cleared, the profile in it, and what stood in it then."""

    # --- what was launched last ---

    def proposed_values(self) -> dict[str, str]:
        """What stands in the fields where nothing was launched before."""
        app = self.app
        local = app.engine_info is None or app.engine_info.local
        none = app.host_view is not None and not app.host_view.gpus
        return launchform.proposed(launchform.current_folder(), engine_is_local=local, without_gpus=none)

    def still_there(
        self, values: dict[str, str], filling: Filling | ConsoleError | None
    ) -> tuple[dict[str, str], Filling | ConsoleError | None]:
        """What of the last launch is left to begin with; a profile that is gone is in nobody's way.

        Args:
            values: What was remembered.
            filling: The profile in it, or why that cannot be read.
        """
        from gpuconsole.services.profiles import NoProfile

        values = dict(values)
        self._unkept, self._gone = tuple(values.pop(UNKEPT, "").split()), ""
        if isinstance(filling, NoProfile):
            self._gone, filling = values.pop("profile", ""), None
            if not values.keys() - {"image"}:
                values = self.proposed_values() | values
        return values, filling

    def put_back(self) -> None:
        """Values that were not kept and that the profile has stand in the field again, hidden."""
        if self._texts is None or not self._unkept:
            return
        known = shlex.split(self._texts.typed.get("environment", ""))
        back = [word for word in known if word.partition("=")[0] in self._unkept]
        self.fields.set("environment", f"{self.fields.value('environment')} {shlex.join(back)}".strip())

    def also_said(self) -> tuple[Remark, ...]:
        """What of the last launch is not in the fields."""
        said = []
        if self._gone and not self.profile_name:
            told = f"{plain_line(self._gone)} is there no more; the fields are without it."
            said.append(Remark("PROFILE", Severity.HINT, told))
        written = self.fields.value("environment")
        absent = [name for name in self._unkept if name not in _names_in(written)]
        if absent:
            its, it = ("its value", "it") if len(absent) == 1 else ("their values", "them")
            told = f"{plain_line(', '.join(absent))}: {its} was not kept; write {it} anew."
            said.append(Remark("--env", Severity.WARN, told if it == "it" else told.replace(" was ", " were ")))
        return tuple(said)

    # --- cleared ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Clearing, and taking that back."""
        if action == "clear_form":
            return self._run is None and self._began
        if action == "undo" and self._cleared is not None:
            return self._run is None
        return super().check_action(action, parameters)

    def action_clear_form(self) -> None:
        """Write into the fields what stands there where nothing was launched before."""
        if self._run is not None or not self._began:
            return
        before, filling = self.everything(), self._filling
        self._filling = self._texts = self._wrong = None
        self._gone, self._unkept, self._named_anew = "", (), False
        self._made.clear()
        image = self._image or launchform.proposed_image(self.app.images or ())
        self.fields.fill(self.proposed_values() | {"image": image})
        self._untick()
        self.remove_class("-more")
        if self.focused is not None and not self.focused.display:
            self.query_one("#launch", Button).focus()
        self._cleared = (before, filling, self.fields.typed())
        self._tell(f"Cleared: the form is as at first. {self.app.keys.name('launch.undo')} takes it back.")
        self._weigh()
        self.refresh_bindings()

    def _untick(self) -> None:
        for name, value in (("remove", False), ("free", False), ("terminal", True), ("join", True)):
            self.query_one(f"#{name}", Tick).leave_open(value)

    def action_undo(self) -> None:
        """Take the last change back; clearing was one."""
        if self._made or self._cleared is None:
            super().action_undo()
            return
        (before, filling, cleared), self._cleared = self._cleared, None
        if self.fields.typed() != cleared:
            self._tell("The form was written in since it was cleared; it stays as it is.")
        else:
            ticked = before.pop("ticks", "")
            self.fields.fill(before)
            if filling is not None:
                self.take_filling(filling)
            self._untick()
            self.tick_as(ticked)
            self.show_more()
            self._tell("Taken back: the form is as it was.")
            self._weigh()
        self.refresh_bindings()


def _names_in(text: str) -> set[str]:
    """The variables that the field names; one that is still being written counts as well."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return {word.partition("=")[0] for word in words}

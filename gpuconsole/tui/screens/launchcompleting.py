"""What the launch form's fields can become: images, profiles, kinds of work, paths; offered while one types."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events, on
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Input

from gpuconsole.core.errors import ConsoleError
from gpuconsole.tui.present import launchform, launchtext
from gpuconsole.tui.widgets.completer import Choice, Choices, CompletingInput

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp

_LISTS = ("env_files", "secrets")
"""Fields of several paths, apart as a shell has them."""


class Completing(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Fields that complete what is typed into them."""

    app: ConsoleApp
    lifts: tuple[str, ...] = ()
    """Refusals that stand now and can be lifted."""

    class Edited(Message):
        """The person wrote something."""

    class ProfileNamed(Message):
        """A profile's name was chosen, or written to its end; or taken away, and is empty."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class NoProfiles(Message):
        """The profiles cannot be listed."""

        def __init__(self, error: ConsoleError) -> None:
            super().__init__()
            self.error = error

    class Found(Message):
        """What was typed can become this."""

        def __init__(self, field: CompletingInput, text: str, choices: tuple[Choice, ...], *, asked: bool) -> None:
            super().__init__()
            self.field = field
            self.text = text
            self.choices = choices
            self.asked = asked
            """They were asked for by a key: with none, that key goes on to the next field."""

    @on(Input.Changed)
    def _hear(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Edited())
        line = event.input
        if not isinstance(line, CompletingInput):
            return
        self.changed(line)
        if line.name == "profile" and (line.value == line.settled or not line.value.strip()):
            self._name_profile(line)
        # Emptied, it offers nothing by itself: tab after that means to leave it empty.
        if line.completes and line.has_focus and line.value.strip() and line.value != line.settled:
            self._complete(line, everything=False)
        elif line.has_focus:
            self.screen.query_one(Choices).shut()

    def changed(self, line: CompletingInput) -> None:
        """Something else stands in a field: fit what depends on it."""

    @on(Input.Submitted)
    def _go_on(self, event: Input.Submitted) -> None:
        event.stop()
        if event.input.name == "profile":
            self._name_profile(event.input)
        self.screen.focus_next()

    @on(events.DescendantBlur)
    def _left(self, event: events.DescendantBlur) -> None:
        if isinstance(event.widget, CompletingInput) and event.widget.name == "profile":
            self._name_profile(event.widget)

    def _name_profile(self, line: Input) -> None:
        self.post_message(self.ProfileNamed(line.value.strip()))

    @on(CompletingInput.Wanted)
    def _open(self, event: CompletingInput.Wanted) -> None:
        self._complete(event.field, everything=event.everything)

    def _complete(self, line: CompletingInput, *, everything: bool) -> None:
        key, text = line.name or "", line.value
        wanted = "" if everything else text
        if key in launchform.PATHS:
            self._complete_path(line, text, asked=everything)
        elif key == "profile":
            self._complete_profile(line, text, wanted, asked=everything)
        elif key == "image":
            app = self.app
            found = launchtext.image_choices(
                app.images or (), wanted, now=app.now(), shelf=app.shelf, glyphs=app.glyphs
            )
            self._offer(line, list(found), asked=everything)
        else:
            choices = self._to_lift(text) if key == "force" else launchform.field_named(key).choices
            self._offer(line, [(one, "") for one in choices if one.startswith(wanted)], asked=everything)

    def _to_lift(self, text: str) -> tuple[str, ...]:
        """The force field with one more refusal in it, of those that stand now."""
        words = text.split()
        whole = words if text.endswith(" ") or (words and words[-1] in self.lifts) else words[:-1]
        return tuple(" ".join([*whole, slug]) for slug in self.lifts if slug not in whole)

    def _offer(self, line: CompletingInput, found: list[Choice], *, asked: bool) -> None:
        if not line.has_focus:
            return
        if len(found) == 1 and found[0][0] == line.value:
            found = []  # it is that already
        if asked and not found:
            self.screen.focus_next()
        self.screen.query_one(Choices).offer(found, line)

    # --- what must be looked for: on a thread of its own, for a folder on a dead network drive never answers ---

    def _look(self, line: CompletingInput, text: str, look: Callable[[], tuple[Choice, ...]], *, asked: bool) -> None:
        def work() -> None:
            try:
                found = look()
            except OSError:
                found = ()
            except ConsoleError as error:
                self.post_message(self.NoProfiles(error))
                found = ()
            self.post_message(self.Found(line, text, found, asked=asked))

        threading.Thread(target=work, name="completion", daemon=True).start()

    @on(Found)
    def _offer_found(self, found: Found) -> None:
        if found.field.value == found.text:
            self._offer(found.field, list(found.choices), asked=found.asked)

    def _complete_profile(self, line: CompletingInput, text: str, wanted: str, *, asked: bool) -> None:
        session = self.app.desk.session

        def look() -> tuple[Choice, ...]:
            from gpuconsole.services.profilefilling import profiles_to_choose

            return tuple(choice for choice in profiles_to_choose(session) if choice[0].startswith(wanted))

        self._look(line, text, look, asked=asked)

    def _complete_path(self, line: CompletingInput, text: str, *, asked: bool) -> None:
        head, start = "", text
        if line.name in _LISTS:
            head, start = text[: text.rfind(" ") + 1], text[text.rfind(" ") + 1 :]
        if line.name == "secrets":
            name, equals, start = start.partition("=")
            head += name + equals
        if (line.name == "volumes" and ":" in start) or (line.name == "secrets" and not head.endswith("=")):
            self._offer(line, [], asked=asked)
            return

        def look() -> tuple[Choice, ...]:
            from gpuconsole.launch.fields import Surroundings
            from gpuconsole.services.folders import complete_path

            paths = complete_path(start, Surroundings.current())
            # A volume's line is read as it is; in the others a path with a blank in it stands in quotes.
            return tuple((head + (path if line.name == "volumes" else shlex.quote(path)), "") for path in paths)

        self._look(line, text, look, asked=asked)

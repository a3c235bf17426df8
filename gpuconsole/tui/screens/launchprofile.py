"""The launch form's profile: its name fills the fields, and what the fields say can be saved under a name."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from textual import on
from textual.message import Message

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.launch.spec import FieldProblem, SpecInvalid
from gpuconsole.tui.present import launchgpus, launchtyped
from gpuconsole.tui.present.launchtyped import Texts, Ticks
from gpuconsole.tui.screens.launchfields import LaunchFields
from gpuconsole.tui.screens.launchweighing import Weighing
from gpuconsole.tui.widgets.tick import Tick

if TYPE_CHECKING:
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.services.profilefilling import Filling
    from gpuconsole.services.profilesaving import Saved
    from gpuconsole.tui.app import ConsoleApp


class Profiled(Weighing):
    """A form that a profile can fill."""

    app: ConsoleApp

    class ProfileRead(Message):
        """A profile was read, or cannot be."""

        def __init__(self, name: str, found: Filling | ConsoleError) -> None:
            super().__init__()
            self.name = name
            self.found = found

    def __init__(self) -> None:
        super().__init__()
        self._filling: Filling | None = None
        """The profile that the fields began as."""
        self._texts: Texts | None = None
        self._named_anew = False
        """Its name was taken away: named once more, it fills the fields once more."""
        self._wrong: tuple[str, FieldProblem] | None = None
        """A name that was read in vain, and why."""
        self._launch_soon = False
        """Launch as soon as the fields are filled."""

    # --- what it amounts to ---

    @property
    def profile_name(self) -> str:
        """The profile's name, as it stands in its field."""
        return self.fields.value("profile").strip()

    @property
    def profile_is_read(self) -> bool:
        """Whether the fields began as the profile that is named, or none is."""
        name = self.profile_name
        return not name or (self._filling is not None and self._filling.name == name and not self._named_anew)

    @property
    def taken(self) -> frozenset[str]:
        """Variables of the shell whose values the profile has put into the fields."""
        return self._filling.taken if self._filling is not None else frozenset()

    def _ticks(self) -> Ticks:
        terminal = self.query_one("#terminal", Tick)
        return Ticks(
            remove=self.query_one("#remove", Tick).value, terminal=terminal.value if terminal.touched else None
        )

    def _options(self) -> tuple[LaunchOptions, tuple[FieldProblem, ...]]:
        uuids = launchgpus.uuids(self.app.host_view)
        options, problems = launchtyped.options_of(self.fields.typed(), self._ticks(), uuids=uuids, filled=self._texts)
        return options, (*self._profile_problems(), *problems)

    def _profile_problems(self) -> tuple[FieldProblem, ...]:
        wrong = self._wrong
        return () if wrong is None or self.profile_is_read or wrong[0] != self.profile_name else (wrong[1],)

    def is_whole(self) -> bool:
        """Whether the fields say what the profile says, and nothing else."""
        if self._filling is None or not self.profile_name or not self.profile_is_read:
            return False
        return self._options() == (self._filling.options, ())

    # --- a profile is named ---

    @on(LaunchFields.ProfileNamed)
    def _read_profile(self, news: LaunchFields.ProfileNamed) -> None:
        if not news.name:
            self._named_anew = True
        elif self._run is None and news.name == self.profile_name and not self.profile_is_read:
            self.read_profile(news.name)

    def reads_profile(self) -> bool:
        """Whether the profile that is named must be read before anything is launched; it is being read then."""
        if self.profile_is_read or self._profile_problems():
            return False
        self.read_profile(self.profile_name)
        return True

    def read_profile(self, name: str) -> None:
        """Read a profile's file, on a thread of its own: a folder may be on the network."""
        session = self.app.desk.session

        def work() -> None:
            from gpuconsole.services.profilefilling import fill_from

            try:
                self.post_message(self.ProfileRead(name, fill_from(session, name)))
            except ConsoleError as error:
                self.post_message(self.ProfileRead(name, error))

        threading.Thread(target=work, name="profile", daemon=True).start()

    @on(ProfileRead)
    def _take_profile(self, news: ProfileRead) -> None:
        if self._run is not None or news.name != self.profile_name or self.profile_is_read:
            return
        if isinstance(news.found, ConsoleError):
            self._launch_soon = False
            self.profile_is_wrong(news.name, news.found)
            self._weigh()
            return
        filled, shown = self._filling is not None, self.fields.typed()
        self.fill_from(news.found)
        self._weigh()
        soon, self._launch_soon = self._launch_soon, False
        if soon and filled and shown != self.fields.typed():
            # Another profile stood in the fields when the key was pressed: nothing is launched that was not seen.
            key = self.app.keys.name("launch.start")
            self._tell(f"Profile {news.name} fills the fields now; {key} launches it.")
        elif soon:
            self.action_launch()

    def action_launch(self) -> None:
        """Start the container."""
        raise NotImplementedError

    def waits_for_image(self) -> bool:
        """Whether it will be launched once an image is proposed."""
        raise NotImplementedError

    def fill_from(self, filling: Filling) -> None:
        """Fill the fields with what a profile gives; of one without an image the form's own stays."""
        self.take_filling(filling)
        assert self._texts is not None  # noqa: S101  # it was just made
        image = {} if filling.options.image else {"image": self.fields.value("image")}
        self.fields.fill({**self._texts.typed, **image, "profile": filling.name})
        options = filling.options
        self.query_one("#remove", Tick).decide(options.auto_remove)
        terminal = self.query_one("#terminal", Tick)
        if options.interactive is None:
            terminal.leave_open(terminal.value)
        else:
            terminal.decide(options.interactive)
        self.show_more()

    def take_filling(self, filling: Filling) -> None:
        """The fields began as this profile, whatever stands in them now."""
        self._filling, self._texts = filling, launchtyped.texts_of(filling.options, filling.hidden)
        self._wrong, self._named_anew = None, False

    def profile_is_wrong(self, name: str, error: ConsoleError) -> None:
        """The profile that is named cannot be read; that stands beside its field."""
        from gpuconsole.services.profiles import NoProfile

        hint = error.hint or ""
        if isinstance(error, NoProfile):
            hint = self.app.keys.fill("Down lists those there are; {launch.save} saves one.")
        words = plain_line(f"{error.message} {hint}").rstrip(". ")
        self._wrong = (name, FieldProblem("PROFILE", words, error.exit_code))

    def show_more(self) -> None:
        """Open what is rarely needed where something stands in it."""

    @on(LaunchFields.NoProfiles)
    def _tell_no_profiles(self, news: LaunchFields.NoProfiles) -> None:
        self.app.notify(plain_line(f"{news.error.message} {news.error.hint or ''}"), severity="error", markup=False)

    # --- what the fields say is saved ---

    def action_save_profile(self) -> None:
        """Ask for a name, and write what the fields say under it."""
        if not self._began or self._run is not None or self.app.readonly:
            return
        options, problems = launchtyped.options_of(self.fields.typed(), self._ticks(), uuids={}, filled=self._texts)
        if problems:
            self._refuse(problems)
            return
        from gpuconsole.tui.screens.launchsaving import SaveProfile

        proposed = self.profile_name or options.image.rpartition("/")[2].partition(":")[0].partition("@")[0]
        self.app.push_screen(SaveProfile(proposed, options, self.taken), self._saved)

    def _saved(self, outcome: Saved | SpecInvalid | None) -> None:
        if isinstance(outcome, SpecInvalid):
            self._refuse(outcome.problems)
        elif outcome is not None:
            words = " ".join((f"Saved in {outcome.shown}: gpuconsole launch {outcome.name}.", *outcome.notes))
            self.app.notify(words, markup=False, timeout=15 if outcome.notes else 6)

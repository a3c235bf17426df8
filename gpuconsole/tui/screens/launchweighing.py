"""The launch form's other half: what was typed is weighed as it is typed, and what it amounts to is shown."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.timer import Timer

from gpuconsole.launch.spec import FieldProblem
from gpuconsole.services.weighing import Weight, weigh
from gpuconsole.tui.present import launchfindings, launchtext
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.screens.launchfields import LaunchFields
from gpuconsole.tui.screens.launchmending import Mending
from gpuconsole.tui.widgets.gpupicker import GpuPicker
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Tick

if TYPE_CHECKING:
    from gpuconsole.core.errors import ConsoleError
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.services.planning import LaunchPlan
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.present.launchfindings import Remark, Rest

_SETTLE_S = 0.25
"""After so much silence what was typed is weighed."""


class Weighing(Mending):
    """A screen with the form's fields, ticks, and the lines below them."""

    app: ConsoleApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll_below(-1)", "Scroll up", show=False, priority=True),
        Binding("pagedown", "scroll_below(1)", "Scroll down", show=False, priority=True),
    ]

    class Weighed(Message):
        """What was typed amounts to this."""

        def __init__(self, number: int, weight: Weight) -> None:
            super().__init__()
            self.number = number
            self.weight = weight

    def __init__(self) -> None:
        super().__init__()
        self._began = False
        """The fields hold what they start with."""
        self._number = 0
        self._settling: Timer | None = None
        self._weight: Weight | None = None
        self._typed_problems: tuple[FieldProblem, ...] = ()
        self._last: LaunchPlan | None = None
        """What was typed amounted to this before something in it was wrong."""
        self._failure: list[tuple[Cell, ...]] = []
        self._refused = False
        """A launch failed just now: once it is weighed, go to what stands in its way."""
        self._made_name: tuple[str, str] | None = None
        """An image, and the name made from it."""
        self._weighed_gpus: frozenset[str] = frozenset()

    def action_scroll_below(self, step: int) -> None:
        """Scroll what stands below the fields by almost its height."""
        below = self.query_one("#room", VerticalScroll)
        below.scroll_relative(y=step * max(1, below.size.height - 1), animate=False)

    def _show_gpus(self) -> None:
        self.fields.show_gpus(rows_at_most=3 if self.size.height < 30 else 8 if self.size.height < 45 else 16)
        if self._began and self._run is None and self.query_one(GpuPicker).picked != self._weighed_gpus:
            self._settle()  # another GPU is the freest now

    @on(LaunchFields.Edited)
    @on(Tick.Turned)
    def _edited(self) -> None:
        self._failure = []
        self._forget_told()
        self._show_gpus()
        self._settle()

    def _settle(self) -> None:
        """Weigh it once nothing is typed for a moment."""
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(_SETTLE_S, self._weigh)

    @property
    def taken(self) -> frozenset[str]:
        """Variables of the shell whose values a profile has put into the fields."""
        raise NotImplementedError

    def _options(self) -> tuple[LaunchOptions, tuple[FieldProblem, ...]]:
        """What was typed, as options; and what could not even be read."""
        raise NotImplementedError

    def _weigh(self) -> None:
        if not self.is_attached or not self._began or self._run is not None:
            return
        self._number += 1
        number, session, taken = self._number, self.app.desk.session, self.taken
        options, self._typed_problems = self._options()
        self._weighed_gpus = self.query_one(GpuPicker).picked
        name = self._named(options).name if options.name is None else None

        def work_on_it() -> None:
            self.post_message(self.Weighed(number, weigh(session, options, name=name, taken=taken)))

        # Not one of Textual's workers: the engine may hang, or a folder on the network, and nobody waits for them.
        threading.Thread(target=work_on_it, name="weighing", daemon=True).start()

    @on(Weighed)
    def _take_weight(self, news: Weighed) -> None:
        if news.number != self._number or self._run is not None:
            return
        self._weight = weight = news.weight
        self._mended.clear()
        if weight.plan is not None:
            if weight.plan.spec.name is None:
                self._made_name = (weight.plan.spec.image, weight.plan.name)
            self.query_one("#terminal", Tick).propose(weight.plan.request.tty)
            self.query_one("#join", Tick).propose(weight.plan.request.tty)
        self._show_weight()
        if self._refused:
            self._refused = False
            self._go_to_what_stands()

    def _show_weight(self) -> None:
        if self._run is not None or not self.is_attached:
            return
        weight, width = self._weight or Weight(), self.size.width
        below = self._show_remarks(weight)
        pull = "not here: it is pulled" if weight.to_pull else ""
        self.fields.show_facts(launchtext.image_words(weight.image) or pull)
        lines = [*self._told, *self._failure, *self._below([each for each in below if each.remark.stands])]
        also = self._below([each for each in below if not each.remark.stands])
        if weight.failure is not None:
            failure = launchtext.failure_lines(weight.failure, width)
            lines += failure if failure != self._failure else []  # it was why the launch failed, too
        elif weight.plan is not None:
            self._last = weight.plan
            lines += launchtext.plan_lines(weight.plan, to_pull=weight.to_pull, width=width, also=also)
        else:
            lines += also
        if weight.plan is None and self._last is not None:
            lines += launchtext.wrapped("The last line that could be; it does not hold what is marked now.", width)
            lines += launchtext.docker_lines(self._last, width, "dim")
        self.query_one("#below", Lines).show(lines)

    def _show_remarks(self, weight: Weight) -> tuple[Rest, ...]:
        """Say under the fields what is wrong and likely to fail; returns what is to be told below."""
        found = launchfindings.remarks_of(
            (*self._typed_problems, *weight.problems), weight.findings, weight.force, self.app.keys
        )
        self._remarks = tuple(remark for remark in (*found, *self.also_said()) if remark not in self._mended)
        if any(remark.stands and remark.rarely_needed for remark in self._remarks):
            self.add_class("-more")
        below = self.fields.show_remarks(self._remarks, more=self.has_class("-more"), here=self._field_in_focus())
        self.refresh_bindings()
        return below

    def also_said(self) -> tuple[Remark, ...]:
        """What stands beside fields though nothing is wrong there."""
        return ()

    def _below(self, rests: list[Rest]) -> list[tuple[Cell, ...]]:
        return launchfindings.below_lines(rests, self.app.glyphs, self.app.keys, self.size.width)

    def _named(self, options: LaunchOptions) -> LaunchOptions:
        """With the name that the docker line shows."""
        if options.name is None and self._made_name is not None and self._made_name[0] == options.image:
            return replace(options, name=self._made_name[1])
        return options

    def _refuse(self, problems: tuple[FieldProblem, ...]) -> None:
        """Show what must be corrected, and go to the first of it."""
        self._number += 1  # what is being weighed is older
        self._weight, self._typed_problems = Weight(problems=problems), ()
        self._show_weight()
        self._go_to_what_stands()

    def _fail(self, error: ConsoleError) -> None:
        """Tell why it was not launched; everything typed stays, and what is in its way is shown beside its field."""
        self._failure = launchtext.failure_lines(error, self.size.width)
        self._refused = True
        self._show_weight()
        self._weigh()

    def _go_to_what_stands(self) -> None:
        """Go to the field of the first thing that is in the way, if one is."""
        first = next((remark for remark in self._remarks if remark.stands), None)
        if first is None:
            return
        self._failure = [(Cell(" Correct what is marked, and launch again.", "critical"),)]
        self._show_weight()
        if first.field is not None and first.rarely_needed:
            self.call_after_refresh(self.fields.go_to, first.field.key)  # once it is there to be scrolled to
        elif first.field is not None:
            self.fields.go_to(first.field.key)

    def _stay(self, lines: list[tuple[Cell, ...]]) -> None:
        """Tell what went wrong; everything typed stays."""
        self._failure = lines
        self._weight = None
        self._show_weight()

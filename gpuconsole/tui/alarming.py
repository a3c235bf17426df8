"""How alarms are told: bell, toast, tmux, the desktop where the terminal takes it, and the user's own command."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import TYPE_CHECKING

from textual.notifications import Notification, Notify
from textual.widgets._toast import Toast

from gpuconsole.core.errors import ConsoleError
from gpuconsole.gpu.forecast_model import Subject
from gpuconsole.gpu.state import MemoryState
from gpuconsole.services import tmux
from gpuconsole.services.alarmdesk import AlarmDesk, Listed
from gpuconsole.services.alarmfile import AlarmFile
from gpuconsole.services.alarmnames import process_name
from gpuconsole.services.ringing import gpu_key
from gpuconsole.tui import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuconsole.engine.model import Container
    from gpuconsole.host.model import HostView
    from gpuconsole.services.alarmdeaths import Ending
    from gpuconsole.services.alarms import Alarm
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.screens.subject import Thing

_STAYS_S = 10 * 365 * 24 * 3600.0
"""A toast that goes when somebody has seen it."""


class Alarming:
    """Hears of the machine, and tells what rings. For the app's thread.

    Args:
        app: Where it is told.
    """

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._recorded = app.desk.session.recorded
        self._desk = self._new_desk()
        self._looked_at = 0.0
        self._toast: Notification | None = None
        self._asked: set[tuple[str, float | None]] = set()
        """Ends that were explained, or are being: container id and when."""
        self._failures: set[str] = set()
        """Of the user's command: each is told once."""

    def _new_desk(self) -> AlarmDesk:
        # Of a recording nothing is remembered: its processes are not those of this machine.
        return AlarmDesk(least=MemoryState(self._app.config.alarms_from), file=AlarmFile(kept=not self._recorded))

    # --- news ---

    def host_looked(self, view: HostView) -> None:
        """The GPUs were looked at."""
        at = view.snapshot.taken_at
        if self._recorded and at < self._looked_at:  # somebody went back in the recording
            self._desk = self._new_desk()
        self._looked_at = at
        told = self._desk.host_looked(view, self._app.containers)
        self._tell(told)
        self._explain()
        self._keep_toast(fresh=bool(told))

    def take_over(self, desk: AlarmDesk) -> None:
        """Somebody went elsewhere in a recording: this is known of alarms there, and nothing of what was before."""
        self.put_away()
        self._desk, self._asked = desk, set()
        self._looked_at = 0.0
        self._keep_toast(fresh=True)

    def containers_listed(self, views: tuple[ContainerView, ...]) -> None:
        """The containers are these."""
        self._desk.containers_listed(views)
        self._explain()

    def _explain(self) -> None:
        for container in self._desk.to_explain():
            self._asked.add((container.id, container.finished_at))
            self._explain_one(container)

    def _explain_one(self, container: Container, *, quietly: bool = False) -> None:
        from gpuconsole.services.alarmdeaths import explained

        def work() -> None:
            ending = explained(lambda: self._app.desk.session.engine, container)
            self._app.post_message(messages.EndingExplained(ending, quietly=quietly))

        self._behind("death-explainer", work)

    def _behind(self, name: str, work: Callable[[], None]) -> None:
        """Do ``work`` on a thread of its own; what fails there is told, and never printed over the screen."""

        def run() -> None:
            try:
                work()
            except ConsoleError as error:
                self._app.post_message(messages.ActionFailed(error))
            except Exception as error:  # noqa: BLE001 (the thread must not end in silence)
                self._app.post_message(messages.ActionBroke(error))

        threading.Thread(target=run, name=name, daemon=True).start()

    def ending_explained(self, ending: Ending, *, quietly: bool) -> None:
        """Why a container is gone has been found out; ``quietly`` when somebody only wanted to know."""
        if self._recorded and (ending.container_id, ending.finished_at) not in self._asked:
            return  # somebody went elsewhere in the recording meanwhile
        # Of a recording it is told when it was, however late it was found out.
        now = (self._recorded and ending.finished_at) or self._app.now()
        alarm = self._desk.ended(ending, now, quietly=quietly)
        self._tell(() if alarm is None else (alarm,))
        self._keep_toast(fresh=not (quietly or ending.asked_for))

    # --- telling ---

    def _tell(self, alarms: tuple[Alarm, ...]) -> None:
        app = self._app
        if not alarms or self._recorded:  # what was recorded is shown, and calls nobody
            return
        failed = any(each.state is MemoryState.FAILED for alarm in alarms for each in (alarm, *alarm.parts))
        if app.config.bell and (failed or app.config.alarms_bell):  # a trend may be withdrawn: it is told quietly
            app.bell()  # the bare sign: tmux hands it on, and marks the window
        for alarm in alarms:
            self._behind("alarm-teller", partial(self._tell_outside, alarm))

    def _tell_outside(self, alarm: Alarm) -> None:
        """Tell it beyond this screen; on a thread of its own, since others may be slow."""
        from gpuconsole.services.alarmsigns import notification

        tmux.tell(f"gpuconsole: {alarm.sentence}")
        if sign := notification(alarm.sentence, os.environ):
            self._app.post_message(messages.SignReady(sign))
        if self._app.config.alarm_command:
            from gpuconsole.services.alarmcommand import run_command

            try:
                run_command(self._app.config.alarm_command, alarm, self._desk.file)
            except ConsoleError as error:
                self._app.post_message(messages.AlarmCommandFailed(error))

    def command_failed(self, error: ConsoleError) -> None:
        """The user's command did not work; that is told once."""
        if error.message not in self._failures:
            self._failures.add(error.message)
            self._app.post_message(messages.ActionFailed(error))

    def _keep_toast(self, *, fresh: bool) -> None:
        """Let the toast say what asks for somebody now; one that was put away comes back only with news."""
        app, current, toast = self._app, self._desk.current(), self._standing_toast
        if toast is None and not (fresh and current):
            return
        from gpuconsole.tui.present import alarms as present  # most consoles never have one

        title = present.toast_title(current, recorded=self._recorded) if current else ""
        text = present.toast(current, app.keys) if current else ""
        if toast is not None and current and not fresh:
            if (toast.title, toast.message) != (title, text):
                toast.title, toast.message = title, text
                for each in app.screen.query(Toast):
                    each.refresh(layout=True)
            return
        self.put_away()
        if current:
            self._toast = Notification(text, title, "error", _STAYS_S, markup=False)
            app.post_message(Notify(self._toast))

    @property
    def _standing_toast(self) -> Notification | None:
        """The toast, as long as nobody has clicked it away."""
        return self._toast if self._toast is not None and self._toast in self._app._notifications else None

    # --- what is shown and done ---

    def listed(self) -> tuple[Listed, ...]:
        """Everything there is to know."""
        return self._desk.listed()

    def ending_of(self, container: Container) -> Ending | None:
        """Why a container ended, when that was found out; it is asked for as soon as somebody wants to know."""
        if container.exit_code in (None, 0) or container.running:
            return None
        known = self._desk.endings.get(container.id)
        if known is not None and known.finished_at == container.finished_at:
            return known
        if (container.id, container.finished_at) not in self._asked:
            self._asked.add((container.id, container.finished_at))
            self._explain_one(container, quietly=True)
        return None

    def idle_note(self, process: str) -> str:
        """What is noted of a process that holds a GPU for nothing."""
        return self._desk.idle_note(process)

    def put_away(self) -> None:
        """The alarms are being looked at: the toast has done its work."""
        if (toast := self._standing_toast) is not None:
            self._app._unnotify(toast)
        self._toast = None

    def dismiss(self, listed: Listed) -> None:
        """Let it be silent, or ring again."""
        self._app.notify(self._desk.dismiss(listed, self._app.now()), markup=False, timeout=4)
        self._keep_toast(fresh=False)

    def mark_wrong(self, listed: Listed) -> None:
        """Save its samples for judging, and let it be silent."""
        app, view = self._app, self._app.host_view
        if view is None:
            return
        from gpuconsole.services.alarmdesk import Standing
        from gpuconsole.services.alarmevidence import save

        kept, alarm, snapshot = self._desk.evidence.copy(), listed.alarm, view.snapshot

        def work() -> None:
            app.post_message(messages.AlarmSaved(str(save(kept, alarm, snapshot))))

        self._behind("alarm-saver", work)
        if listed.standing in (Standing.RINGS, Standing.QUIET):
            self._desk.dismiss(listed, app.now())
            self._keep_toast(fresh=False)

    def go_to(self, alarm: Alarm) -> None:
        """Show all about what an alarm is about."""
        from gpuconsole.tui.screens.details import open_details

        thing = self._thing(alarm)
        if thing is not None:
            open_details(self._app, thing)
            return
        words = "It is about the whole machine." if alarm.subject is Subject.HOST else "It is not there any more."
        self._app.notify(words, markup=False, timeout=3)

    def _thing(self, alarm: Alarm) -> Thing | None:
        app = self._app
        views = app.host_view.gpus if app.host_view is not None else ()
        key = alarm.key.removeprefix("idle ")
        for view in views:
            for holder in view.holders:
                if process_name(holder).key == key:
                    return holder
            if alarm.subject is Subject.GPU and f"gpu {gpu_key(view)}" == key:
                return view
        for each in app.containers or ():
            if each.container.id == alarm.container_id:
                return each
        return next((view for view in views if view.gpu.index == alarm.gpu), None)

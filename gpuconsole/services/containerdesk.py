"""What is done with containers and GPU processes one at a time: each action is callable from any thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.services.killing import end_process, someone_elses_process

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.host.model import Holder
    from gpuconsole.services.session import Session


class ContainerDesk:
    """The part of the console's services that acts on what runs."""

    session: Session

    @property
    def me(self) -> str:
        """The user whose things are "mine"."""
        raise NotImplementedError

    @property
    def engine_is_local(self) -> bool:
        """The engine is known to be on this machine."""
        raise NotImplementedError

    def start_container(self, container: Container) -> str:
        """Start it; returns what is to be told."""
        self.session.engine.start(container.id)
        return f"Started {container.name}."

    def stop_container(self, container: Container) -> str:
        """SIGTERM, and SIGKILL after ten seconds."""
        self.session.engine.stop(container.id)
        return f"Stopped {container.name}."

    def restart_container(self, container: Container) -> str:
        """Stop it and start it."""
        self.session.engine.restart(container.id)
        return f"Restarted {container.name}."

    def pause_container(self, container: Container) -> str:
        """Freeze it, or let it go on."""
        if container.state.value == "paused":
            self.session.engine.unpause(container.id)
            return f"{container.name} goes on."
        self.session.engine.pause(container.id)
        return f"Paused {container.name}; its GPU memory stays held."

    def remove_container(self, container: Container) -> str:
        """Kill it if it runs, and remove it."""
        from gpuconsole.services.launchends import remember_ending

        remember_ending(self.session.engine, container)
        self.session.engine.remove(container.id, force=container.running)
        return f"Removed {container.name}."

    def owner(self, container: Container) -> str | None:
        """The user it belongs to, when that is not who runs the console; no file of Docker's is read for it."""
        from gpuconsole.services.ownership import someone_elses

        return someone_elses(container, local=self.engine_is_local)

    def process_owner(self, holder: Holder, container: Container | None) -> str | None:
        """The user a process, or the container it is in, belongs to, when that is not who runs the console."""
        other = None if holder.user == self.me else someone_elses_process(holder)
        return other or (self.owner(container) if container is not None else None)

    def end_process(self, holder: Holder, *, others: bool = False) -> str:
        """Send SIGTERM to a GPU process; to another user's only with ``others``."""
        return end_process(holder, others=others)

"""Everything that happens to the console from outside: the table of contents of its life.

Each carries the whole news; of several that wait, only the newest of a kind is handled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from gpuconsole.gpu.state import MemoryState

if TYPE_CHECKING:
    from gpuconsole.core.errors import ConsoleError
    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.host.model import HostView
    from gpuconsole.services.alarmdeaths import Ending
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.feed import EngineLink
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.replay import Sight
    from gpuconsole.services.runs import Run
    from gpuconsole.services.shelf import Shelf


class News(Message):
    """News that makes older news of its kind worthless, unless it is of a recording: there all is remembered."""

    at: float | None = None
    """Of a recording: when it was, in seconds since the epoch."""

    def can_replace(self, message: Message) -> bool:
        """Whether the message waiting before this one need not be handled."""
        return type(message) is type(self) and self.at is None


class HostLooked(News):
    """The GPUs and their holders were looked at."""

    def __init__(self, view: HostView) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        """Not of a look at which something failed: that is told once."""
        failed = any(each.state is MemoryState.FAILED for each in self.view.outlooks)
        return super().can_replace(message) and not failed


class ContainersListed(News):
    """The containers, joined with what is known of them."""

    def __init__(self, views: tuple[ContainerView, ...]) -> None:
        super().__init__()
        self.views = views


class EngineLinked(News):
    """The connection to the engine came, went, or changed."""

    def __init__(self, link: EngineLink) -> None:
        super().__init__()
        self.link = link


class EngineKnown(News):
    """What the engine says of itself."""

    def __init__(self, info: EngineInfo) -> None:
        super().__init__()
        self.info = info


class ImagesListed(News):
    """The local images."""

    def __init__(self, views: tuple[ImageView, ...]) -> None:
        super().__init__()
        self.views = views


class ImagesJudged(News):
    """Which images could be pulled, and who holds which pinned."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self.shelf = shelf


class RunsChanged(News):
    """A check, launch or pull began, went on or ended."""

    def __init__(self, runs: tuple[Run, ...]) -> None:
        super().__init__()
        self.runs = runs


class Sought(Message):
    """Somebody went to another moment of a recording."""

    def __init__(self, sight: Sight) -> None:
        super().__init__()
        self.sight = sight


class ActionFailed(Message):
    """Something the user asked for did not work."""

    def __init__(self, error: ConsoleError) -> None:
        super().__init__()
        self.error = error


class ActionBroke(Message):
    """Something the user asked for met a fault of our own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class ActionDone(Message):
    """Something the user asked for is done."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class EndingExplained(Message):
    """Why a container is gone has been found out."""

    def __init__(self, ending: Ending, *, quietly: bool = False) -> None:
        super().__init__()
        self.ending = ending
        self.quietly = quietly


class SignReady(Message):
    """The terminal is known to show this sign of an alarm."""

    def __init__(self, sign: str) -> None:
        super().__init__()
        self.sign = sign


class AlarmCommandFailed(Message):
    """The user's command for an alarm did not work."""

    def __init__(self, error: ConsoleError) -> None:
        super().__init__()
        self.error = error


class AlarmSaved(Message):
    """The samples of an alarm that is said to be wrong were saved."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

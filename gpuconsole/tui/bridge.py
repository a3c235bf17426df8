"""From the services' threads to the app's messages: the only crossing between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.tui import messages

if TYPE_CHECKING:
    from textual.app import App

    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.host.model import HostView
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.feed import EngineLink
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.replay import Sight
    from gpuconsole.services.runs import Run
    from gpuconsole.services.shelf import Shelf


class Bridge:
    """Hears what the services found, on their threads, and posts it; posting to an app that has ended does nothing."""

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._at: float | None = None

    def played(self, at: float) -> None:
        """The news that follow are of that moment of a recording."""
        self._at = at

    def sought(self, sight: Sight) -> None:
        """Somebody went to another moment of a recording."""
        self._app.post_message(messages.Sought(sight))

    def broke(self, error: Exception) -> None:
        """A recording could not go on."""
        told = messages.ActionFailed(error) if isinstance(error, ConsoleError) else messages.ActionBroke(error)
        self._app.post_message(told)

    def _post(self, news: messages.News) -> None:
        news.at = self._at
        self._app.post_message(news)

    def host_looked(self, view: HostView) -> None:
        """The GPUs were looked at."""
        self._post(messages.HostLooked(view))

    def containers_listed(self, views: tuple[ContainerView, ...]) -> None:
        """The containers changed, or their figures."""
        self._post(messages.ContainersListed(views))

    def engine_linked(self, link: EngineLink) -> None:
        """The connection to the engine changed."""
        self._post(messages.EngineLinked(link))

    def engine_known(self, info: EngineInfo) -> None:
        """The engine said what it is."""
        self._post(messages.EngineKnown(info))

    def images_listed(self, views: tuple[ImageView, ...]) -> None:
        """The images changed."""
        self._post(messages.ImagesListed(views))

    def images_judged(self, shelf: Shelf) -> None:
        """What stands beside the images."""
        self._post(messages.ImagesJudged(shelf))

    def runs_changed(self, runs: tuple[Run, ...]) -> None:
        """A run changed."""
        self._post(messages.RunsChanged(runs))

"""Benchmarks begun from the thing under the cursor: a container, an image, or something to run on a GPU."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpuconsole.host.model import GpuView
from gpuconsole.services.kinds import is_container, is_image
from gpuconsole.tui.screens.imagedoing import ImageDoing

if TYPE_CHECKING:
    from gpuconsole.services.benchtargets import BenchTarget
    from gpuconsole.tui.screens.benchask import BenchOrder
    from gpuconsole.tui.screens.subject import Thing


class BenchDoing(ImageDoing):
    """Checks and benchmarks of what is under the cursor."""

    @property
    def benchable(self) -> Thing | None:
        """What can be measured from here."""
        return self.thing

    def can_check(self) -> bool:
        """Whether a check can be begun: of a container that runs, or an image."""
        thing = self.thing
        return is_image(thing) or (is_container(thing) and thing.container.running)

    def can_bench(self) -> bool:
        """Whether a benchmark can be begun: of a container that runs, an image, a GPU that answers."""
        thing = self.benchable
        if is_container(thing):
            return thing.container.running
        if isinstance(thing, GpuView):
            return not thing.gpu.problem
        return is_image(thing)

    def action_bench(self) -> None:
        """Ask what is to be measured, and begin."""
        from gpuconsole.tui.screens.benchask import BenchAsk

        title, targets = self._targets(self.benchable)
        if targets:
            self.app.push_screen(BenchAsk(title, targets), self._order)
        elif title:
            words = (
                "No running container has this GPU, and no local image is known to have a torch for it.\n→ "
                "{launch.new} launches a container on it, {images.pull} under images pulls one."
            )
            self.app.notify(self.app.keys.fill(words), severity="warning", markup=False, timeout=8)

    def _targets(self, thing: Thing | None) -> tuple[str, tuple[BenchTarget, ...]]:
        """What it is about, and what can be measured of it."""
        from gpuconsole.images.reference import shorter
        from gpuconsole.services import benchtargets

        app = self.app
        local = app.engine_info is None or app.engine_info.local  # else its GPUs are not those that are seen here
        if is_container(thing):
            return f"Benchmark {thing.container.name}", benchtargets.of_container(thing)
        if is_image(thing):
            found = benchtargets.of_image(thing, app.host_view if local else None)
            return f"Benchmark {shorter(thing.image.name)}", found
        if isinstance(thing, GpuView):
            found = benchtargets.of_gpu(thing, app.containers or (), (app.images or ()) if local else ())
            return f"Benchmark GPU {thing.gpu.index}: with what?", found
        return "", ()

    def _order(self, order: BenchOrder | None) -> None:
        if order is None:
            return
        target, begin = order.target, partial(self.do, self._begin_bench, order)
        owner = None if target.container is None else self.app.desk.owner(target.container)
        if target.container is not None and owner:
            from gpuconsole.tui.screens.asking import about_container

            self.ask(about_container("Bench", target.container, owner), begin)
        else:
            begin()

    def _begin_bench(self, order: BenchOrder) -> str:
        target, benches = order.target, self.app.desk.benches
        if target.container is not None:
            benches.container(target.container, order.wish)
        elif target.image is not None:
            benches.image(*target.image, target.gpus, order.wish)
        return f"Benchmark begun; {self.app.keys.name('tabs.runs')} on the main screen shows it."

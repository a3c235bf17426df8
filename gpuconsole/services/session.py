"""The composition root: which GPU source and which engine a run of gpuconsole works with."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from gpuconsole.engine.endpoint import Endpoint
    from gpuconsole.engine.protocol import Engine
    from gpuconsole.gpu.source import GpuSource
    from gpuconsole.host.facts import LaunchFacts
    from gpuconsole.launch.fields import Surroundings
    from gpuconsole.services.pullspace import PullSpace

_MAKING = allocate_lock()


class Session:
    """This machine's GPUs and one engine, each opened when first asked for.

    Args:
        host: Address of the engine (``unix://…``, ``tcp://…``, ``ssh://…``); None takes the one ``docker ps`` would.
        one_look: The GPUs will be looked at once, and what gets there soonest is best.
    """

    recorded: ClassVar[bool] = False
    """It is played from a recording: files and processes of this machine are not those of the recorded one."""

    def __init__(self, *, host: str | None = None, one_look: bool = False) -> None:
        self._host = host
        self._one_look = one_look
        self._gpus: GpuSource | None = None
        self._engine: Engine | None = None
        self._pull_space: PullSpace | None = None

    @property
    def pull_space(self) -> PullSpace:
        """What pulls under way have yet to fill of the engine's disk; one for all that pull by this session."""
        if self._pull_space is None:
            from gpuconsole.services.pullspace import PullSpace

            with _MAKING:
                self._pull_space = self._pull_space or PullSpace()
        return self._pull_space

    @property
    def gpus(self) -> GpuSource:
        """The GPUs of this machine."""
        if self._gpus is None:
            from gpuconsole.gpu.nvml.source import NvmlSource

            self._gpus = NvmlSource(direct=self._one_look)
        return self._gpus

    @property
    def endpoint(self) -> Endpoint:
        """Where the engine is, and who said so.

        Raises:
            BadFile: Docker's own configuration is malformed.
            NotFound: It names a context that does not exist.
        """
        from gpuconsole.engine.endpoint import resolve

        return resolve(self._host)

    @property
    def engine(self) -> Engine:
        """The engine, connected.

        Raises:
            EngineUnavailable: Nothing answers there.
            Refused: Its socket does not let this user in.
        """
        if self._engine is None:
            from gpuconsole.engine.docker.engine import DockerEngine

            self._engine = DockerEngine.connect(self.endpoint)
        return self._engine

    def surroundings(self) -> Surroundings:
        """Where launch options are written: what relative paths and ``~`` in them mean.

        Raises:
            NotFound: The folder this program works in is gone.
        """
        from gpuconsole.core.errors import NotFound
        from gpuconsole.launch.fields import Surroundings

        try:
            return Surroundings.current(engine_is_local=self.endpoint.local)
        except FileNotFoundError as error:
            raise NotFound(
                "The folder gpuconsole was started in is gone.", hint="Start it again from a folder that is there."
            ) from error

    def launch_facts(self, cdi_dirs: Iterable[str]) -> LaunchFacts:
        """What this machine has for giving GPUs to containers; ``cdi_dirs`` are the folders the engine reads."""
        from gpuconsole.host.facts import launch_facts

        return launch_facts(cdi_dirs=cdi_dirs)

    def forget_engine(self) -> None:
        """Let the next question find the engine anew, as after a restart; who uses the old connection keeps it."""
        self._engine = None

    def close(self) -> None:
        """Close what was opened."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        if self._gpus is not None:
            self._gpus.close()
            self._gpus = None

"""The one place that calls NVML: a function's name and arguments in, its value or a failure out."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpuconsole.gpu.nvml import binding, codes


class Failure(NamedTuple):
    """NVML gave no value."""

    code: int

    @property
    def reason(self) -> str:
        """Why, as a short phrase."""
        return codes.words(self.code)


class Gateway:
    """NVML. It never raises for what library or driver do."""

    def __init__(self) -> None:
        self._binding: binding.Binding | None = None

    def start(self) -> Failure | None:
        """Load the library unless it is loaded, and start it; each start needs one :meth:`stop`."""
        try:
            self._binding = binding.Binding(binding.load_library())
        except binding.NvmlError as error:
            return Failure(error.code)
        answer = self.ask("nvmlInitWithFlags", 0)
        return answer if isinstance(answer, Failure) else None

    def stop(self) -> None:
        """Let the driver go; the library stays loaded, for a process never unloads it."""
        self.ask("nvmlShutdown")

    def ask(self, function: str, *arguments: object) -> Any | Failure:
        """Call ``function``; its value is returned as the binding has it, text as bytes."""
        if self._binding is None:
            return Failure(codes.UNINITIALIZED)
        try:
            return self._binding.call(function, *arguments)
        except binding.NvmlError as error:
            return Failure(error.code)

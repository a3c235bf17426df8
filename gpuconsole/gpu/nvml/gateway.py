"""The one place that calls NVML: a function's name and arguments in, its value or a failure out."""

from __future__ import annotations

from gpuconsole.core.records import dataclass
from gpuconsole.gpu.nvml import codes
from gpuconsole.gpu.nvml.codes import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

_NEEDED = ("NVMLError", "nvmlInitWithFlags", "nvmlMemory_v2", "nvmlDeviceGetComputeRunningProcesses_v3")
"""What nvidia-ml-py has and the abandoned package of the same module name lacks."""

_CTYPES = "_ctypes"
"""The part of Python that is left out where it was built without libffi."""


@dataclass(frozen=True, slots=True)
class Failure:
    """NVML gave no value."""

    code: int

    @property
    def reason(self) -> str:
        """Why, as a short phrase."""
        return codes.words(self.code)


class Gateway:
    """NVML through nvidia-ml-py, or through a binding with its names. It never raises for what library or driver do."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    @classmethod
    def open(cls) -> Self | Problem:
        """Import the binding; NVML itself is loaded and started by :meth:`start`."""
        try:
            import pynvml
        except ImportError as error:
            return codes.NO_CTYPES if error.name == _CTYPES else codes.NO_BINDING
        except SyntaxError:  # a package of Python 2 days
            return codes.WRONG_BINDING
        if not all(hasattr(pynvml, name) for name in _NEEDED):
            return codes.WRONG_BINDING
        return cls(pynvml)

    @classmethod
    def direct(cls) -> Self | Problem:
        """The binding of our own, which is there sooner and has what a snapshot asks."""
        try:
            from gpuconsole.gpu.nvml.direct import Direct
        except ImportError as error:
            if error.name != _CTYPES:
                raise
            return codes.NO_CTYPES

        return cls(Direct())

    def start(self) -> Failure | None:
        """Load the library unless it is loaded, and start it; each start needs one :meth:`stop`."""
        answer = self.ask("nvmlInitWithFlags", 0)
        return answer if isinstance(answer, Failure) else None

    def stop(self) -> None:
        """Let the driver go; the library stays loaded, for the binding never unloads it."""
        self.ask("nvmlShutdown")

    def constant(self, name: str) -> Any:
        """A constant of the binding."""
        return getattr(self._binding, name)

    def ask(self, function: str, *arguments: object) -> Any | Failure:
        """Call ``function``; its value is returned as the binding has it, text as bytes."""
        call = getattr(self._binding, function, None)
        if call is None:
            return Failure(codes.FUNCTION_NOT_FOUND)
        # Functions that give text are wrapped to decode it, and the wrapper raises for anything but UTF-8.
        call = getattr(call, "__wrapped__", call)
        try:
            return call(*arguments)
        except self._binding.NVMLError as error:
            return Failure(error.value)
        except UnicodeDecodeError:
            return Failure(codes.GARBLED)

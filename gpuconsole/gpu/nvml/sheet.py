"""Single readings of one GPU, taken one by one: a value for each field, or the reason why it has none."""

from __future__ import annotations

from gpuconsole.core.records import dataclass
from gpuconsole.core.text import plain_line
from gpuconsole.gpu.nvml.codes import ABSENT
from gpuconsole.gpu.nvml.gateway import Failure, Gateway

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

IMPOSSIBLE = "the driver gave an impossible value"


class Implausible(ValueError):
    """The library answered with a value that cannot be; the text says why it is not shown."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One question to NVML and the field its answer goes to."""

    field: str
    function: str
    arguments: tuple[object, ...] = ()
    """What follows the handle."""
    convert: Callable[[Any], Any] = int
    """From the library's value to ours; raises :class:`Implausible`."""
    instead: str = ""
    """The function to ask when the library lacks the first: its older or newer name."""


class Sheet:
    """The readings of one GPU or MIG instance as they come in; of the driver itself where ``handle`` is None."""

    def __init__(self, gateway: Gateway, handle: object) -> None:
        self._gateway = gateway
        self.handle = handle
        self.values: dict[str, Any] = {}
        """Field → value, for the readings that succeeded."""
        self.unknown: dict[str, str] = {}
        """Field → why it has no value."""
        self.failures: list[Failure] = []
        """What the library answered where it gave no value."""
        self.notes: list[str] = []

    def ask(self, function: str, *arguments: object) -> Any | Failure:
        """Ask about this GPU; a failure is kept in :attr:`failures`."""
        about = () if self.handle is None else (self.handle,)
        answer = self._gateway.ask(function, *about, *arguments)
        if isinstance(answer, Failure):
            self.failures.append(answer)
        return answer

    def take(self, reading: Reading) -> None:
        """Take one reading."""
        answer = self.ask(reading.function, *reading.arguments)
        if isinstance(answer, Failure) and reading.instead and answer.code in ABSENT:
            answer = self.ask(reading.instead, *reading.arguments)
        if isinstance(answer, Failure):
            self.unknown[reading.field] = answer.reason
            return
        try:
            self.values[reading.field] = reading.convert(answer)
        except Implausible as error:
            self.unknown[reading.field] = str(error)

    def lack(self, reason: str, *fields: str) -> None:
        """Say why ``fields`` have no value."""
        self.unknown.update(dict.fromkeys(fields, reason))


def between(low: int, high: int) -> Callable[[Any], int]:
    """A converter to a whole number within bounds; what lies outside is not believed."""

    def convert(value: Any) -> int:
        number = int(value)
        if not low <= number <= high:
            raise Implausible(IMPOSSIBLE)
        return number

    return convert


def watts(milliwatts: Any) -> float:
    """Watts of NVML's milliwatts."""
    return between(0, 20_000_000)(milliwatts) / 1000


def text(value: bytes | str) -> str:
    """A name as one harmless line."""
    line = plain_line(value, limit=256)
    if not line:
        raise Implausible("the driver gave an empty text")
    return line

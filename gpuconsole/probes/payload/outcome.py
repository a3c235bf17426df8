"""What a check answers, and what it is given."""

from __future__ import annotations

from typing import Any, Callable

OK = "ok"
WARN = "warn"
FAIL = "fail"
SKIP = "skip"


class Outcome:
    """The answer of one check.

    Args:
        status: ``ok``, ``warn``, ``fail`` or ``skip``.
        why: One sentence without a full stop: what was seen.
        fix: One sentence: what to do about it; empty when there is nothing to do.
        value: What was measured, by name.
    """

    def __init__(self, status: str, why: str, fix: str = "", value: dict[str, Any] | None = None) -> None:
        self.status = status
        self.why = why
        self.fix = fix
        self.value = value if value is not None else {}


class Asked:
    """A GPU the container was given, as the host knows it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.uuid: str = str(fields.get("uuid") or "")
        self.index: int | None = fields.get("index")
        self.name: str = str(fields.get("name") or "")
        self.minor: int | None = fields.get("minor")
        self.total_bytes: int | None = fields.get("memory_total_bytes")
        self.used_bytes: int | None = fields.get("memory_used_bytes")
        """Before the check began."""
        self.holders: list[str] = [str(holder) for holder in fields.get("holders") or []]

    @property
    def label(self) -> str:
        """How a person calls it, by the host's index."""
        if self.index is None:
            return self.uuid or "a GPU"
        return "GPU {} ({})".format(self.index, self.name) if self.name else "GPU {}".format(self.index)


class Context:
    """What the checks of one worker share.

    Args:
        config: What the host sent.
        report: Tells the step a check is at.
        environment: Adds facts to the environment record.
    """

    def __init__(
        self,
        config: dict[str, Any],
        report: Callable[[str], None],
        environment: Callable[[dict[str, Any]], None],
    ) -> None:
        self.config = config
        self.report = report
        self.environment = environment
        self.torch: Any = None
        """The module, once check.torch has imported it."""
        asked = config.get("asked")
        self.asked: list[Asked] | None = None if asked is None else [Asked(one) for one in asked]
        """The GPUs it was given; None when the host could not tell."""
        self.asked_count: int | None = config.get("asked_count")
        """How many it was given, where that much is known."""
        if self.asked is not None:
            self.asked_count = len(self.asked)
        self.ephemeral: bool = bool(config.get("ephemeral"))
        """The container was made for this check and goes with it."""
        self.workdir: str = str(config.get("workdir") or "")
        self.apart: dict[str, Any] = {}
        """What checks have begun before their turn, by a name of their own."""
        self.statuses: dict[str, str] = dict(config.get("statuses") or {})
        """Check → its status, for those that have run."""

    @property
    def wants_gpu(self) -> bool:
        """It is known that the container was given GPUs."""
        return bool(self.asked_count)

    @property
    def cuda(self) -> bool:
        """CUDA works in this process."""
        return self.statuses.get("check.cuda-available") == OK

    def label(self, uuid: str | None, position: int) -> str:
        """How a person calls torch's GPU ``position``."""
        for one in self.asked or []:
            if uuid and same_gpu(one.uuid, uuid):
                return one.label
        return "cuda:{}".format(position)


def same_gpu(one: str, other: str) -> bool:
    """Two spellings of a UUID (``GPU-…``, ``MIG-…``, without prefix, in capitals) mean the same."""
    return _bare(one) == _bare(other)


def _bare(uuid: str) -> str:
    text = uuid.strip().lower()
    for prefix in ("gpu-", "mig-"):
        if text.startswith(prefix):
            text = text[len(prefix) :]
    return text


def count_of(number: int, what: str) -> str:
    """``1 GPU``, ``3 GPUs``."""
    return "{} {}{}".format(number, what, "" if number == 1 else "s")


def size(count: int | None) -> str:
    """Bytes with the binary unit that fits."""
    if count is None:
        return "an unknown size"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value /= 1024
    else:
        unit = "TiB"
    return "{:.0f} {}".format(value, unit) if value == int(value) or value >= 100 else "{:.1f} {}".format(value, unit)


def first_line(error: BaseException | str, limit: int = 300) -> str:
    """The first line of an error's text that says something."""
    for line in str(error).splitlines():
        line = " ".join(line.split())
        if line:
            return line if len(line) <= limit else line[: limit - 1] + "…"
    return "" if isinstance(error, str) else type(error).__name__

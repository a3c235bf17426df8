"""The account of a memory: parts that add up to its total, byte for byte, and who they belong to."""

from __future__ import annotations

from gpuconsole.core.records import dataclass
from gpuconsole.core.words import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpuconsole.host.model import Holder


class PartKind(StrEnum):
    """What a part of a GPU's memory is."""

    PROCESS = "process"
    """Held by a process that this machine shows."""
    HIDDEN = "hidden"
    """Held by a process that the driver lists and this user or this container is not shown."""
    ENDED = "ended"
    """Held in the name of a process that is no more."""
    UNDIVIDED = "undivided"
    """Held by processes of which the driver does not tell each one's share."""
    UNATTRIBUTED = "unattributed"
    """In use, and no listed process has it."""
    RESERVE = "reserve"
    """Held back by driver and firmware."""
    SYSTEM = "system"
    """Of a memory that GPU and CPU share: what the machine itself and its programs use."""
    UNTOLD = "untold"
    """The driver does not tell whether it is in use."""
    FREE = "free"


class MemoryOf(StrEnum):
    """Whose memory an account is of."""

    GPU = "gpu"
    INSTANCE = "instance"
    """A MIG instance."""
    SYSTEM = "system"
    """The machine's own, which the GPU shares (GB10, Jetson)."""


LISTED = (PartKind.PROCESS, PartKind.HIDDEN, PartKind.ENDED)
"""Kinds of parts that are one listed process each."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a memory."""

    kind: PartKind
    bytes: int
    """Never negative."""
    pids: tuple[int, ...] = ()
    """Of one process; of several where it is undivided."""
    mig_uuid: str | None = None
    """The MIG instance it is in."""
    reason: str | None = None
    """Why it is there, or why more is not known of it; a short phrase."""


@dataclass(frozen=True, slots=True)
class Account:
    """Where the bytes of a memory are. The parts add up to the total."""

    total_bytes: int | None = None
    """None when it is unknown, and then there are no parts."""
    of: MemoryOf = MemoryOf.GPU
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader should know of the sum, a short sentence each."""
    reason: str | None = None
    """Why there is no account."""

    def bytes_of(self, *kinds: PartKind) -> int:
        """The sum of the parts of these kinds."""
        return sum(part.bytes for part in self.parts if part.kind in kinds)


@dataclass(frozen=True, slots=True)
class Share:
    """What a container, a user, or nobody known has of a memory."""

    name: str | None
    """The container's name or short id, or the user's; None where nobody can be named."""
    bytes: int
    pids: tuple[int, ...] = ()
    container_id: str | None = None
    uid: int | None = None
    visible: bool = True
    """False for processes that are hidden or have ended: their container and user are unknown."""
    complete: bool = True
    """False when the driver does not tell the share of one of its processes."""


_Key = tuple[bool, object]
_UNSEEN: tuple[_Key, Share] = ((False, None), Share(None, 0, visible=False))


def by_container(account: Account, holders: Iterable[Holder]) -> tuple[Share, ...]:
    """The processes' parts by container, the largest first; processes outside any have no ``container_id``."""
    return _grouped(account, holders, _container)


def by_user(account: Account, holders: Iterable[Holder]) -> tuple[Share, ...]:
    """The processes' parts by user, the largest first."""
    return _grouped(account, holders, _user)


def _container(holder: Holder) -> tuple[_Key, Share]:
    known = holder.container_id
    name = holder.container_name or (known[:12] if known else None)
    return (True, known), Share(name, 0, container_id=known)


def _user(holder: Holder) -> tuple[_Key, Share]:
    name = holder.user or (None if holder.uid is None else str(holder.uid))
    return (True, holder.uid), Share(name, 0, uid=holder.uid)


def _grouped(
    account: Account, holders: Iterable[Holder], owner: Callable[[Holder], tuple[_Key, Share]]
) -> tuple[Share, ...]:
    known: dict[tuple[int, str | None], Holder] = {}
    for one in holders:
        known[one.pid, one.mig_uuid] = known[one.pid, None] = one
    found: dict[_Key, Share] = {}
    for part in account.parts:
        for pid in part.pids:
            holder = known.get((pid, part.mig_uuid)) or known.get((pid, None))
            seen = holder is not None and holder.uid is not None and "container_id" not in holder.unknown
            key, share = owner(holder) if holder is not None and seen else _UNSEEN
            before = found.get(key, share)
            found[key] = Share(
                name=before.name,
                bytes=before.bytes + (part.bytes if part.kind in LISTED else 0),
                pids=tuple(dict.fromkeys((*before.pids, pid))),
                container_id=before.container_id,
                uid=before.uid,
                visible=before.visible,
                complete=before.complete and part.kind in LISTED,
            )
    return tuple(sorted(found.values(), key=lambda share: (-share.bytes, not share.visible, share.name or "")))

"""CPU and memory of a container as ``docker stats`` computes them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gpuconsole.core.errors import Conflict, NotFound
from gpuconsole.engine.docker.answers import Answer, limit, part, whole
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.model import Usage

_INTERVAL_S = 1.0
_SLACK_S = 5.0


def usage_now(connection: Connection, container_id: str) -> Usage:
    """CPU and memory; the engine takes two samples a second apart.

    Raises:
        NotFound: There is no such container.
    """
    sample = connection.tell(
        lambda client: client.stats(container_id, stream=False), timeout_s=connection.timeout_s + _SLACK_S
    )
    return usage_of(sample, part(sample, "precpu_stats"))


def usages_now(connection: Connection, container_ids: Sequence[str]) -> dict[str, Usage]:
    """CPU and memory of several containers in about one second in all; those that are gone are left out."""
    if not connection.at_least("1.41"):
        return {identity: usage for identity in container_ids if (usage := _or_gone(connection, identity))}
    before = _samples(connection, container_ids)
    time.sleep(_INTERVAL_S)
    after = _samples(connection, tuple(before))
    return {identity: usage_of(sample, part(before[identity], "cpu_stats")) for identity, sample in after.items()}


def _or_gone(connection: Connection, container_id: str) -> Usage | None:
    try:
        return usage_now(connection, container_id)
    except (NotFound, Conflict):
        return None


def _samples(connection: Connection, container_ids: Sequence[str]) -> dict[str, Answer]:
    found = {}
    for identity in container_ids:
        try:
            found[identity] = _sample(connection, identity)
        except (NotFound, Conflict):
            continue
    return found


def _sample(connection: Connection, container_id: str) -> Answer:
    answer: Answer = connection.ask(lambda client: client.stats(container_id, stream=False, one_shot=True))
    return answer


def usage_of(sample: Answer, before: Answer) -> Usage:
    """What a sample says, given the ``cpu_stats`` of an earlier one. All None for a container that does not run."""
    if not whole(part(sample, "cpu_stats"), "system_cpu_usage"):
        return Usage()
    networks = [counts for counts in part(sample, "networks").values() if isinstance(counts, dict)]
    return Usage(
        cpu_pct=_cpu_pct(part(sample, "cpu_stats"), before),
        memory_bytes=_memory(part(sample, "memory_stats")),
        memory_limit_bytes=limit(part(sample, "memory_stats"), "limit"),
        pids=whole(part(sample, "pids_stats"), "current"),
        network_rx_bytes=sum(whole(counts, "rx_bytes") or 0 for counts in networks) if networks else None,
        network_tx_bytes=sum(whole(counts, "tx_bytes") or 0 for counts in networks) if networks else None,
    )


def _cpu_pct(now: Answer, before: Answer) -> float | None:
    """Share of one core: this container's CPU time over the machine's, times the number of cores."""
    used, used_before = whole(part(now, "cpu_usage"), "total_usage"), whole(part(before, "cpu_usage"), "total_usage")
    system, system_before = whole(now, "system_cpu_usage"), whole(before, "system_cpu_usage")
    if used is None or used_before is None or system is None or not system_before:
        return None
    per_core = part(now, "cpu_usage").get("percpu_usage")
    cores = whole(now, "online_cpus") or (len(per_core) if isinstance(per_core, list) else 0)
    if system <= system_before or not cores:
        return None
    return max(0, used - used_before) / (system - system_before) * cores * 100.0


def _memory(memory: Answer) -> int | None:
    """Use without the file cache that can be reclaimed; its name tells the two cgroup versions apart."""
    usage, stats = whole(memory, "usage"), part(memory, "stats")
    if usage is None:
        return None
    cache = whole(stats, "total_inactive_file")
    if cache is None:
        cache = whole(stats, "inactive_file") or 0
    return usage - cache if cache < usage else usage

"""CPU and memory of a container as ``docker stats`` computes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from gpuconsole.core.errors import Conflict, ConsoleError, NotFound
from gpuconsole.engine.docker.answers import Answer, limit, part, whole
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.streams import json_objects
from gpuconsole.engine.model import Usage

_INTERVAL_S = 1.0
_SLACK_S = 5.0
_AT_ONCE = 32


def usage_now(connection: Connection, container_id: str) -> Usage:
    """CPU and memory; the engine takes two samples a second apart.

    Raises:
        NotFound: There is no such container.
    """
    sample = _sample(connection, container_id)
    usage = usage_of(sample, part(sample, "precpu_stats"))
    if usage.cpu_pct is None and usage.memory_bytes is not None:
        # Podman sends one sample without another to compare it with.
        time.sleep(_INTERVAL_S)
        usage = usage_of(_sample(connection, container_id), part(sample, "cpu_stats"))
    return usage


def _sample(connection: Connection, container_id: str) -> Answer:
    limit_s = connection.timeout_s + _SLACK_S
    exchange = connection.exchange(
        "GET", f"/containers/{container_id}/stats", query={"stream": "false"}, answer_timeout_s=limit_s
    )
    try:
        # Podman answers nothing at all for a container that does not run.
        return next(json_objects([exchange.whole(timeout_s=limit_s)]), {})
    except NotFound as error:
        raise NotFound(f"There is no container {container_id}.", hint="'gpuconsole ps' lists the names.") from error


def usages_now(connection: Connection, container_ids: Sequence[str]) -> dict[str, Usage]:
    """CPU and memory of several containers at once; those that are gone are left out.

    Engines answer in the rhythm of their own samples, old ones even for a single one, so each is asked by a thread.
    """
    found: dict[str, Usage] = {}
    for first in range(0, len(container_ids), _AT_ONCE):
        batch = container_ids[first : first + _AT_ONCE]
        failures: list[ConsoleError] = []
        threads = [
            threading.Thread(target=_into, args=(found, failures, connection, identity), name="usage", daemon=True)
            for identity in batch
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
    return found


def _into(found: dict[str, Usage], failures: list[ConsoleError], connection: Connection, container_id: str) -> None:
    try:
        found[container_id] = usage_now(connection, container_id)
    except (NotFound, Conflict):
        pass
    except ConsoleError as error:
        failures.append(error)


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

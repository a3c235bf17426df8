"""CPU and memory from control groups of both versions, shaped like real ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuconsole.host.usage import UsageReader

ID = "ab" * 32


def put(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def version2(root: Path, *, cpu_usec: int = 1_000_000, active: int = 5) -> None:
    group = f"sys/fs/cgroup/system.slice/docker-{ID}.scope"
    put(root, "sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n")
    put(root, "proc/42/cgroup", f"0::/system.slice/docker-{ID}.scope\n")
    put(root, f"{group}/memory.current", f"{300 * 2**20}\n")
    put(root, f"{group}/memory.stat", f"anon 1\nfile 2\ninactive_file {100 * 2**20}\nactive_file {active}\n")
    put(root, f"{group}/memory.max", "max\n")
    put(root, f"{group}/pids.current", "7\n")
    put(root, f"{group}/cpu.stat", f"usage_usec {cpu_usec}\nuser_usec 1\n")


def version1(root: Path, *, cpu_nsec: int = 10**9, active: int = 5) -> None:
    put(
        root,
        "proc/42/cgroup",
        f"9:name=systemd:/docker/{ID}\n4:memory:/docker/{ID}\n2:cpu,cpuacct:/docker/{ID}\n0::/\n",
    )
    put(root, f"sys/fs/cgroup/memory/docker/{ID}/memory.usage_in_bytes", f"{300 * 2**20}\n")
    stat = f"cache 9\nactive_file 1\ntotal_inactive_file {100 * 2**20}\ntotal_active_file {active}\n"
    put(root, f"sys/fs/cgroup/memory/docker/{ID}/memory.stat", stat)
    put(root, f"sys/fs/cgroup/memory/docker/{ID}/memory.limit_in_bytes", "9223372036854771712\n")
    put(root, f"sys/fs/cgroup/cpuacct/docker/{ID}/cpuacct.usage", f"{cpu_nsec}\n")


@pytest.mark.parametrize("layout", [version1, version2])
def test_memory_leaves_out_the_cache_that_can_be_reclaimed_and_no_limit_is_none(tmp_path: Path, layout: object) -> None:
    layout(tmp_path)  # type: ignore[operator]
    usage = UsageReader(tmp_path).read({ID: 42})[ID]
    assert usage.memory_bytes == 200 * 2**20
    assert usage.memory_limit_bytes is None


@pytest.mark.parametrize("layout", [version1, version2])
def test_files_that_are_read_again_are_no_memory_that_is_kept(tmp_path: Path, layout: object) -> None:
    layout(tmp_path, active=150 * 2**20)  # type: ignore[operator]
    usage = UsageReader(tmp_path).read({ID: 42})[ID]
    assert (usage.memory_bytes, usage.memory_kept_bytes) == (200 * 2**20, 50 * 2**20)
    layout(tmp_path, active=10**15)  # type: ignore[operator]
    assert UsageReader(tmp_path).read({ID: 42})[ID].memory_kept_bytes == 0, "read a moment later, and never negative"


def test_cpu_is_unknown_at_the_first_look_and_a_share_of_the_time_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([10.0, 12.0, 13.0])
    monkeypatch.setattr("gpuconsole.host.usage.time.monotonic", lambda: next(clock))
    reader = UsageReader(tmp_path)
    version2(tmp_path)
    assert reader.read({ID: 42})[ID].cpu_pct is None
    version2(tmp_path, cpu_usec=4_000_000)
    assert reader.read({ID: 42})[ID].cpu_pct == pytest.approx(150.0)
    version2(tmp_path, cpu_usec=10)
    assert reader.read({ID: 42})[ID].cpu_pct is None  # restarted in between: no negative share


def test_a_main_process_in_a_group_below_stands_for_the_whole_container(tmp_path: Path) -> None:
    version2(tmp_path)
    put(tmp_path, "proc/42/cgroup", f"0::/system.slice/docker-{ID}.scope/init.scope\n")
    put(tmp_path, f"sys/fs/cgroup/system.slice/docker-{ID}.scope/init.scope/memory.current", "5\n")
    assert UsageReader(tmp_path).read({ID: 42})[ID].memory_bytes == 200 * 2**20


def test_a_process_that_is_still_in_the_engines_group_is_left_out_and_looked_for_again(tmp_path: Path) -> None:
    version2(tmp_path)
    own = (tmp_path / "proc/42/cgroup").read_text()
    put(tmp_path, "proc/42/cgroup", "0::/system.slice/docker.service\n")
    for name in ("memory.current", "cpu.stat", "memory.stat", "memory.max", "pids.current"):
        put(tmp_path, f"sys/fs/cgroup/system.slice/docker.service/{name}", "4000000000\n")
    put(tmp_path, "sys/fs/cgroup/system.slice/docker.service/cpu.stat", "usage_usec 1\n")
    reader = UsageReader(tmp_path)
    assert reader.read({ID: 42}) == {}
    put(tmp_path, "proc/42/cgroup", own)
    assert reader.read({ID: 42})[ID].memory_bytes == 200 * 2**20


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    version2(tmp_path)
    put(tmp_path, "proc/43/cgroup", "garbage\n0::/../../etc\n")
    assert set(UsageReader(tmp_path).read({ID: 42, "gone": 1, "hostile": 43})) == {ID}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test moves on."""
    now = [1000.0]
    monkeypatch.setattr("gpuconsole.host.usage.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_another_limit_and_number_of_processes_are_seen_within_five_seconds(tmp_path: Path, clock: list[float]) -> None:
    version2(tmp_path)
    reader, group = UsageReader(tmp_path), f"sys/fs/cgroup/system.slice/docker-{ID}.scope"
    for second in range(60):
        clock[0] += 1
        if second % 7 == 0:
            changed_at, limit = second, (second + 1) * 2**20
            put(tmp_path, f"{group}/memory.max", f"{limit}\n")
            put(tmp_path, f"{group}/pids.current", f"{second}\n")
        usage = reader.read({ID: 42})[ID]
        if second >= changed_at + 5:
            assert (usage.memory_limit_bytes, usage.pids) == (limit, changed_at)
    put(tmp_path, f"{group}/memory.max", "max\n")
    clock[0] += 5
    assert reader.read({ID: 42})[ID].memory_limit_bytes is None


def test_of_a_container_that_was_restarted_nothing_of_before_is_told(tmp_path: Path, clock: list[float]) -> None:
    version2(tmp_path, cpu_usec=9_000_000)
    reader, group = UsageReader(tmp_path), f"sys/fs/cgroup/system.slice/docker-{ID}.scope"
    reader.read({ID: 42})
    version2(tmp_path, cpu_usec=1_000)
    put(tmp_path, "proc/43/cgroup", f"0::/system.slice/docker-{ID}.scope\n")
    put(tmp_path, f"{group}/memory.max", f"{2**30}\n")
    put(tmp_path, f"{group}/pids.current", "1\n")
    clock[0] += 1
    usage = reader.read({ID: 43})[ID]
    assert (usage.cpu_pct, usage.memory_limit_bytes, usage.pids) == (None, 2**30, 1)

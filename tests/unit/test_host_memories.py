"""RAM of the machine as the kernel tells it, and what a cache of its own takes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuconsole.host.memories import ram_of_host

MIB = 2**20
MEMINFO = "MemTotal:       1048576 kB\nMemFree:          1024 kB\nMemAvailable:    262144 kB\nBuffers:  1 kB\n"


def machine(root: Path, arcstats: str | None = None, meminfo: str = MEMINFO) -> Path:
    (root / "proc/spl/kstat/zfs").mkdir(parents=True)
    (root / "proc/meminfo").write_text(meminfo)
    if arcstats is not None:
        (root / "proc/spl/kstat/zfs/arcstats").write_text(arcstats)
    return root


def arc(**figures: object) -> str:
    """As the module of ZFS writes it: a line of its own, titles, then name, kind and number."""
    lines = [f"{name:<31} 4    {value}" for name, value in figures.items()]
    return "\n".join(["13 1 0x01 123 33456 5000000 9000000", f"{'name':<31} type data", *lines, ""])


@pytest.mark.parametrize(
    ("arcstats", "used"),
    [
        (None, 768),
        (arc(hits=10**12, c_min=64 * MIB, c_max=512 * MIB, size=320 * MIB), 512),
        (arc(c_min=64 * MIB, size=32 * MIB), 768),
        (arc(size=10**15), 0),
        (arc(size="x"), 768),
        ("", 768),
        ("\x00\xff size 4\nsize 4 5 6\n", 768),
    ],
)
def test_the_cache_of_zfs_is_no_memory_that_is_used(tmp_path: Path, arcstats: str | None, used: int) -> None:
    assert ram_of_host(machine(tmp_path, arcstats)) == (used * MIB, 1024 * MIB)


def test_what_the_kernel_does_not_tell_is_unknown(tmp_path: Path) -> None:
    assert ram_of_host(tmp_path) == (None, None)
    assert ram_of_host(machine(tmp_path, meminfo="MemTotal: 1024 kB\n")) == (None, MIB)

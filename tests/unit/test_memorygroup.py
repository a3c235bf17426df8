"""The limit that containers share: smallest first in every layout of control groups, unknown where it is unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuconsole.host.memorygroup import MemoryGroup, containers_parent, slice_path, smallest_limit

GIB = 2**30
V1, V2 = "memory.limit_in_bytes", "memory.max"
NONE = 9223372036854771712


def layout(root: Path, *, unified: bool, **limits: int | str) -> None:
    """Groups with their limits; ``top`` is the root."""
    top = root / "sys/fs/cgroup"
    base = top if unified else top / "memory"
    base.mkdir(parents=True, exist_ok=True)
    prefix, other = ("", "not_") if unified else ("total_", "")  # of a group alone, and of all below it
    if unified:
        (top / "cgroup.controllers").write_text("memory\n")
    for name, limit in limits.items():
        folder = base if name == "top" else base / name.replace("__", "/").replace("_slice", ".slice")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / (V2 if unified else V1)).write_text(f"{limit}\n")
        (folder / ("memory.current" if unified else "memory.usage_in_bytes")).write_text(f"{5 * GIB}\n")
        (folder / "memory.stat").write_text(
            f"anon 1\n{prefix}inactive_file {GIB}\n{prefix}active_file {GIB + GIB // 2}\n"
            f"{prefix}slab_reclaimable {GIB // 2}\n{prefix}shmem {GIB}\n{other}inactive_file {9 * GIB}\n"
        )


@pytest.mark.parametrize("unified", [True, False])
def test_the_smallest_on_the_way_counts(tmp_path: Path, unified: bool) -> None:
    none: int | str = "max" if unified else NONE
    layout(tmp_path, unified=unified, a_slice=32 * GIB, a_slice__b_slice=8 * GIB, c_slice=GIB, docker=none)
    assert smallest_limit("/a.slice/b.slice", root=tmp_path) == MemoryGroup("/a.slice/b.slice", 8 * GIB, 2 * GIB)
    assert smallest_limit("/a.slice/x.slice", root=tmp_path) == MemoryGroup("/a.slice", 32 * GIB, 2 * GIB)
    assert smallest_limit("/docker", root=tmp_path) is None
    assert smallest_limit("/../c.slice", root=tmp_path) is None
    layout(tmp_path, unified=unified, top=4 * GIB)
    for group in ("/a.slice/b.slice", "/docker", "/not/made/yet", "/"):
        assert smallest_limit(group, root=tmp_path) == MemoryGroup("/", 4 * GIB, 2 * GIB)


def test_nothing_to_read_is_nothing_known(tmp_path: Path) -> None:
    assert smallest_limit("/docker", root=tmp_path) is None
    layout(tmp_path, unified=True, docker="what?")
    assert smallest_limit("/docker", root=tmp_path) is None


OWN = "12:memory:/system.slice/docker.service\n0::/system.slice/docker.service\n"
USER = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker.service\n"


@pytest.mark.parametrize(
    ("arguments", "group", "driver", "rootless", "parent"),
    [
        (["/usr/bin/dockerd", "-H", "fd://"], OWN, "systemd", False, "/system.slice"),
        (["dockerd"], OWN, "cgroupfs", False, "/docker"),
        (["dockerd", "--cgroup-parent=docker.slice"], OWN, "systemd", False, "/docker.slice"),
        (["dockerd", "--cgroup-parent", "a-b-c.slice"], OWN, "systemd", False, "/a.slice/a-b.slice/a-b-c.slice"),
        (["dockerd", "--cgroup-parent", "/limited/work/"], OWN, "cgroupfs", False, "/limited/work"),
        (["podman", "system", "service"], OWN, "systemd", False, "/machine.slice"),
        (["dockerd"], USER, "systemd", True, "/user.slice/user-1000.slice/user@1000.service/user.slice"),
        (["dockerd"], "0::/init.scope\n", "systemd", True, None),
        (["dockerd"], "0::/../docker.service\n", "systemd", False, None),
        (["dockerd"], "", "systemd", False, None),
        ([], OWN, "systemd", False, None),
    ],
)
def test_where_an_engine_puts_its_containers(
    arguments: list[str], group: str, driver: str, rootless: bool, parent: str | None, tmp_path: Path
) -> None:
    assert containers_parent(arguments, group, driver=driver, rootless=rootless, root=tmp_path) == parent


def test_the_engines_configuration_says_where(tmp_path: Path) -> None:
    (tmp_path / "etc/docker").mkdir(parents=True)
    (tmp_path / "etc/docker/daemon.json").write_text(json.dumps({"cgroup-parent": "team.slice"}))
    (tmp_path / "own.json").write_text(json.dumps({"cgroup-parent": "/own"}))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")

    def parent(*arguments: str, driver: str = "systemd") -> str | None:
        return containers_parent(["dockerd", *arguments], OWN, driver=driver, root=tmp_path)

    assert parent() == "/team.slice"
    assert parent("--config-file", "/own.json", driver="cgroupfs") == "/own"
    assert parent("--config-file=/broken.json") == "/system.slice"
    assert parent("--config-file=/list.json") == "/system.slice"
    assert parent("--config-file=/none.json") == "/system.slice"
    assert parent("--cgroup-parent=first.slice") == "/first.slice"


def test_a_slice_stands_within_those_its_name_begins_with() -> None:
    assert slice_path("docker.slice") == "/docker.slice"
    assert slice_path("a-b.slice") == "/a.slice/a-b.slice"
    assert slice_path("/lxc/x") == "/lxc/x"

"""Which container a process belongs to, by its control group: every layout engines make, and hostile ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.host.cgroup import UnknownContainer, container_id, container_ids, own_container_id, read_container_id

A = "a1" * 32
B = "b2" * 32
C = "c3" * 32

V1_DOCKER = f"""\
12:pids:/docker/{A}
11:hugetlb:/docker/{A}
5:devices:/docker/{A}
1:name=systemd:/docker/{A}
0::/system.slice/containerd.service
"""
V1_DOCKER_SYSTEMD = f"""\
11:memory:/system.slice/docker-{A}.scope
1:name=systemd:/system.slice/docker-{A}.scope
"""

INSIDE = {
    "docker, v2, cgroupfs driver": f"0::/docker/{A}\n",
    "docker, v2, systemd driver": f"0::/system.slice/docker-{A}.scope\n",
    "docker, v1, cgroupfs driver": V1_DOCKER,
    "docker, v1, systemd driver": V1_DOCKER_SYSTEMD,
    "docker, rootless": f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{A}.scope\n",
    "docker, --cgroup-parent, cgroupfs driver": f"0::/lab/group 7/{A}\n",
    "docker, --cgroup-parent, systemd driver": f"0::/lab.slice/docker-{A}.scope\n",
    "docker, init system inside": f"0::/docker/{A}/init.scope\n",
    "docker, group already removed": f"0::/docker/{A} (deleted)\n",
    "docker, seen from a cgroup namespace beside it": f"0::/../{A}\n",
    "podman, rootful": f"0::/machine.slice/libpod-{A}.scope/container\n",
    "podman, rootless": f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{A}.scope/container\n",
    "podman, cgroupfs driver": f"0::/libpod_parent/libpod-{A}\n",
    "podman, pod": f"0::/machine.slice/machine-libpod_pod_{B}.slice/libpod-{A}.scope/container\n",
    "podman, split groups in a service": f"0::/system.slice/train.service/libpod-payload-{A}\n",
    "podman, v1": f"4:memory:/machine.slice/libpod-{A}.scope\n1:name=systemd:/machine.slice/libpod-{A}.scope\n",
    "kubernetes, containerd": f"0::/kubepods.slice/kubepods-pod12.slice/cri-containerd-{A}.scope\n",
    "kubernetes, cri-o": f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-pod12.slice/crio-{A}.scope\n",
    "kubernetes, cgroupfs driver": f"0::/kubepods/burstable/pod4e5f-77/{A}\n",
    "nerdctl": f"0::/system.slice/nerdctl-{A}.scope\n",
    "containerd alone": f"0::/default/{A}\n",
    "ECS": f"9:memory:/ecs/0123456789/{A}\n",
    "a path with colons": f"0::/a:b/docker/{A}\n",
}

OUTSIDE = {
    "nothing": "",
    "a login session": "0::/user.slice/user-1000.slice/session-3.scope\n",
    "a service": "0::/system.slice/ssh.service\n",
    "the root group": "0::/\n",
    "v1 at the root": "5:devices:/\n4:memory:/\n1:name=systemd:/\n0::/\n",
    "podman's helper": f"0::/machine.slice/libpod-conmon-{A}.scope\n",
    "podman's helper, cgroupfs driver": f"0::/libpod_parent/libpod-{A}/conmon\n",
    "cri-o's helper": f"0::/kubepods.slice/crio-conmon-{A}.scope\n",
    "half an id": f"0::/docker/{A[:63]}\n",
    "more than an id": f"0::/docker/{A}0\n",
    "an id in upper case": f"0::/docker/{A.upper()}\n",
    "a word before the id": f"0::/system.slice/backup-{A}.scope\n",
    "BuildKit's step": "0::/docker/buildkit/x5pq3u0f8sxm2n\n",
    "LXC": "0::/lxc.payload.web/system.slice\n",
    "no colons": f"docker/{A}\n",
    "one colon": f"0:/docker/{A}\n",
}


@pytest.mark.parametrize("text", INSIDE.values(), ids=INSIDE.keys())
def test_a_process_in_a_container(text: str) -> None:
    assert container_id(text) == A


@pytest.mark.parametrize("text", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_a_process_in_none(text: str) -> None:
    assert container_id(text) is None


@pytest.mark.parametrize(
    "path",
    [
        f"/docker/{A}/docker/{B}",
        f"/system.slice/docker-{A}.scope/system.slice/docker-{B}.scope",
        f"/docker/{A}/kubelet.slice/kubelet-kubepods.slice/cri-containerd-{B}.scope",
    ],
)
def test_of_containers_in_containers_the_outermost_is_the_one_this_machines_engine_knows(path: str) -> None:
    assert container_ids(f"0::{path}\n") == (A, B)
    assert container_id(f"0::{path}\n") == A


def test_a_container_cannot_pass_itself_off_as_another() -> None:
    assert container_id(f"0::/docker/{A}/docker-{B}.scope/libpod-{C}.scope\n") == A


def test_the_unified_hierarchy_is_asked_before_the_old_ones() -> None:
    assert container_id(f"5:devices:/docker/{B}\n0::/docker/{A}\n") == A
    assert container_id(f"5:devices:/docker/{B}\n1:name=systemd:/docker/{A}\n0::/\n") == A


segments = st.text(st.characters(exclude_characters="/\n\r", exclude_categories=["Cs", "Zl", "Zp", "Cc"]), max_size=30)
ids = st.text("0123456789abcdef", min_size=64, max_size=64)


@given(st.text())
def test_whatever_stands_there_it_never_fails(text: str) -> None:
    assert container_id(text) is None or len(container_ids(text)[0]) == 64


@given(st.lists(segments, max_size=4), ids, st.lists(segments, max_size=4), st.sampled_from(["{}", "docker-{}.scope"]))
def test_an_id_is_found_wherever_it_stands(before: list[str], name: str, after: list[str], form: str) -> None:
    path = "/".join(["", *before, form.format(name), *after])
    if "conmon" not in path:
        assert name in container_ids(f"0::{path}\n")


def test_it_is_read_from_a_process(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_bytes(b"0::/docker/" + A.encode() + b"/\xff\xfe\n")
    assert read_container_id(tmp_path) == A
    assert (
        read_container_id(Path("/proc") / str(os.getpid())) is None or "docker" in Path("/proc/self/cgroup").read_text()
    )


def proc(root: Path, *, cgroup: str, own: str = "", namespace: str = "4026532777", mounts: str = "") -> Path:
    """A process file system with process 7 in it, and us."""
    for name, text in (("7", cgroup), ("self", own)):
        (root / name).mkdir()
        (root / name / "cgroup").write_text(text)
    (root / "self/mountinfo").write_text(mounts)
    (root / "self/ns").mkdir()
    (root / "self/ns/cgroup").symlink_to(f"cgroup:[{namespace}]")
    return root / "7"


def test_where_the_engine_runs_in_a_container_its_own_containers_are_believed_before_the_outer_one(
    tmp_path: Path,
) -> None:
    process = proc(tmp_path, cgroup=f"0::/docker/{A}/docker/{B}/kubepods/pod1/{C}\n")
    assert read_container_id(process) == A
    assert read_container_id(process, known={B: "inner", "d4" * 32: "other"}) == B
    assert read_container_id(process, known={B, A}) == A, "what is inside cannot pass itself off as another one"
    assert read_container_id(process, known={"d4" * 32}) == A


DOCKER_MOUNT = f"412 398 8:1 /var/lib/docker/containers/{A}/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n"
PODMAN_MOUNT = (
    f"9 8 0:5 /containers/storage/overlay-containers/{A}/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw\n"
)


@pytest.mark.parametrize("mounts", [DOCKER_MOUNT, PODMAN_MOUNT])
def test_a_neighbour_in_our_own_container_is_found_by_what_the_engine_mounted(tmp_path: Path, mounts: str) -> None:
    """--pid=host in a container with a control group namespace: its own processes have the path ``/`` there."""
    process = proc(tmp_path, cgroup="0::/init.scope\n", own="0::/\n", mounts=mounts)
    assert own_container_id(tmp_path) == A
    assert read_container_id(process) == A


def test_a_neighbour_in_our_own_container_whose_id_nothing_tells_is_not_said_to_be_outside(tmp_path: Path) -> None:
    process = proc(tmp_path, cgroup="4:memory:/\n0::/\n", own="0::/\n", mounts="1 1 8:1 / / rw - ext4 /dev/sda rw\n")
    with pytest.raises(UnknownContainer):
        read_container_id(process)


@pytest.mark.parametrize(
    ("cgroup", "namespace"), [("0::/../../user.slice\n", "4026532777"), ("0::/user.slice\n", "4026531835")]
)
def test_what_is_beyond_our_namespace_or_seen_from_the_host_is_outside(
    tmp_path: Path, cgroup: str, namespace: str
) -> None:
    assert read_container_id(proc(tmp_path, cgroup=cgroup, namespace=namespace, mounts=DOCKER_MOUNT)) is None

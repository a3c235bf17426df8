"""Preflight of what is shared with the machine: each rule fires where it should and is silent where it should."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from gpuconsole.engine.model import EngineInfo, Mount
from gpuconsole.engine.request import DeviceRequest
from gpuconsole.host.devices import DeviceFacts, look_at_device
from gpuconsole.host.memorygroup import MemoryGroup
from gpuconsole.launch.changes import changed
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.places import parse_device
from gpuconsole.launch.preflight import Facts, Severity, examine
from gpuconsole.launch.preflight_machine import RULES
from gpuconsole.launch.spec import Force
from gpuconsole.launch.work import Kind, Work
from gpuconsole.services.isolation import engine_group, engine_sockets
from tests.unit.test_preflight import CALM, GIB, INFO, mounted, request, spec

GROUP = MemoryGroup("/docker.slice", 16 * GIB, 2 * GIB)
HELD = replace(CALM, memory_group=GROUP)
NAMES = {
    "dangerous-device": (
        "/dev/sda", "/dev/sda1", "/dev/nvme0n1", "/dev/nvme0", "/dev/dm-0", "/dev/mapper/vg-root", "/dev/disk/by-id/x",
        "/dev/vda", "/dev/md0", "/dev/loop-control", "/dev/sg0", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg",
        "/dev/cpu/0/msr", "/dev/vfio/vfio", "/dev/uinput", "/dev/input", "/dev/input/event0", "/dev/console",
        "/dev/tty1", "/dev/watchdog", "/dev/ipmi0", "/dev",
    ),
    "": (
        "/dev/fuse", "/dev/infiniband", "/dev/infiniband/uverbs0", "/dev/kvm", "/dev/net/tun", "/dev/snd", "/dev/null",
        "/dev/ttyUSB0", "/dev/video0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/kfd", "/dev/random", "/dev/shm",
        "/dev/gdrdrv", "/dev/hwrng", "/dev/dri/renderD128",
    ),
}  # fmt: skip


def device(path: str, known: DeviceFacts | None = None) -> Facts:
    facts = request(devices=(DeviceRequest(path, path),))
    written = LaunchOptions("a", devices=(f"{path}:/dev/x:r", "/dev/fuse"))
    return replace(facts, spec=replace(facts.spec, written=written), devices={} if known is None else {path: known})


CASES: dict[str, tuple[list[Facts], list[Facts]]] = {
    "memory-group": (
        [spec(HELD, memory_bytes=20 * GIB), replace(HELD, memory_group=replace(GROUP, used_bytes=15 * GIB + GIB // 2)),
         spec(request(HELD, shm_bytes=20 * GIB), shm_bytes=20 * GIB),
         spec(replace(HELD, memory_group=replace(GROUP, used_bytes=17 * GIB)), memory_bytes=GIB)],
        [CALM, HELD, spec(HELD, memory_bytes=16 * GIB), replace(HELD, memory_group=replace(GROUP, used_bytes=None)),
         spec(HELD, memory_bytes=100 * GIB),  # told of the machine
         spec(replace(HELD, memory_group=replace(GROUP, used_bytes=15 * GIB + GIB // 2)), memory_bytes=GIB // 4)],
    ),
    "network-host": (
        [spec(network="host"), spec(network="host", work=Work(Kind.JUPYTER)), spec(network="host", work=Work(nodes=1))],
        [CALM, spec(network="bridge"), spec(network="none"), spec(network="container:x"), spec(network="hosts"),
         spec(network="host", work=Work(Kind.TORCHRUN, nodes=2))],
    ),
    "ipc-host": ([spec(ipc_mode="host")], [CALM, *(spec(ipc_mode=m) for m in ("private", "shareable", "container:x"))]),
    "group-docker": (
        [spec(group_add=("docker",)), replace(spec(group_add=("44", "998")), engine_gid=998)],
        [CALM, spec(group_add=("44", "video", "998")), replace(spec(group_add=("44", "0")), engine_gid=998)],
    ),
    "device-missing": (
        [device("/dev/nothing", DeviceFacts(False))],
        [device("/dev/fuse"), device("/dev/fuse", DeviceFacts()),
         device("/dev/fuse", DeviceFacts(True, names=("/dev/fuse",)))],
    ),
    "gpu-device": (
        [device("/dev/my-gpu", DeviceFacts(True, "/dev/nvidia0", ("/dev/nvidia0",), gpus=("/dev/nvidia0",))),
         device("/dev/dri", DeviceFacts(True, "/dev/dri", ("/dev/dri/card1",), graphics=("/dev/dri/card1",)))],
        [device("/dev/dri", DeviceFacts(True, "/dev/dri", ("/dev/dri/card1",))), device("/dev/dri"),
         device("/dev/nvidiactl", DeviceFacts(True, "/dev/nvidiactl", ("/dev/nvidiactl",)))],
    ),
    "dangerous-device": (
        [*map(device, NAMES["dangerous-device"]),
         device("/dev/harmless", DeviceFacts(True, "/dev/odd", ("/dev/odd",), disks=("/dev/odd",))),
         device("/dev/link", DeviceFacts(True, "/dev/mem", ("/dev/mem",))),
         device("/dev/folder", DeviceFacts(True, "/dev/folder", ("/dev/folder/x", "/dev/kmsg")))],
        [CALM, *map(device, NAMES[""])],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("slug", "number"), [(slug, n) for slug, (one, _) in CASES.items() for n in range(len(one))])
def test_fires_once_and_what_mends_it_silences_it(slug: str, number: int) -> None:
    (found,) = [finding for finding in examine(CASES[slug][0][number]) if finding.slug == slug]
    assert found.sentence.endswith(".")
    assert "\n" not in found.sentence + found.fix
    assert found.field.startswith("--")
    assert (found.sentence + found.remedy).count(f"--force {slug}") == found.forceable
    if found.change is not None:
        options = LaunchOptions("a", devices=("/dev/fuse",), group_add=("docker", "998"), network="host", ipc="host",
                                memory="20g", shm_size="20g")  # fmt: skip
        assert changed(options, found.change) != options or slug.endswith("device") or slug == "device-missing"


@pytest.mark.parametrize(("slug", "number"), [(s, n) for s, (_, calm) in CASES.items() for n in range(len(calm))])
def test_is_silent(slug: str, number: int) -> None:
    assert slug not in {finding.slug for finding in examine(CASES[slug][1][number])}


def test_every_rule_fires_and_is_silent_in_some_case() -> None:
    everything = [facts for one in CASES.values() for side in one for facts in side]
    for rule in RULES:
        told = [list(rule(facts)) for facts in everything]
        assert any(told), rule
        assert not all(told), rule


def test_only_what_hands_the_machine_over_is_refused_and_of_that_all_but_gpus_can_be_lifted() -> None:
    found = [finding for fires, _ in CASES.values() for facts in fires for finding in examine(facts)]
    refused = {finding.slug for finding in found if finding.severity is Severity.REFUSE}
    assert refused == {"dangerous-device", "device-missing", "gpu-device"}
    assert {finding.slug for finding in found if finding.forceable} == {Force.DANGEROUS_DEVICE}
    graphics = examine(CASES["gpu-device"][0][1])
    assert [one.severity for one in graphics if one.slug == "gpu-device"] == [Severity.WARN]


def test_the_device_that_is_left_out_is_the_one_that_was_written() -> None:
    (found,) = [one for one in examine(device("/dev/sda")) if one.slug == "dangerous-device"]
    assert found.change is not None
    options = LaunchOptions("a", devices=("/dev/fuse", "/dev/sda:/dev/x:r"))
    assert changed(options, found.change).devices == ("/dev/fuse",)


@pytest.mark.parametrize("text", ["/dev/nvidia0", "/dev//nvidia1", "/dev/./nvidia2:/dev/x", "/dev/nvidia-caps",
                                  "/dev/nvidia-caps/nvidia-cap1:r", "nvidia.com/gpu=all"])  # fmt: skip
def test_no_spelling_of_a_gpu_is_a_device(text: str) -> None:
    with pytest.raises(ValueError, match=r"--gpus"):
        parse_device(text)


@pytest.mark.parametrize(("text", "read"), [("/dev//fuse", ("/dev/fuse", "/dev/fuse", "rwm")),
                                            ("/dev/fuse:r", ("/dev/fuse", "/dev/fuse", "r")),
                                            ("/dev/a/:/dev/b:rw", ("/dev/a", "/dev/b", "rw"))])  # fmt: skip
def test_devices_keep_what_was_asked(text: str, read: tuple[str, str, str]) -> None:
    assert parse_device(text) == DeviceRequest(*read)


def test_a_device_is_known_by_what_it_is_and_not_by_its_name(tmp_path: Path) -> None:
    assert look_at_device(str(tmp_path / "none")).exists is False
    assert look_at_device("/dev/null").disks == ()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/link").symlink_to("/dev/null")
    assert look_at_device(str(tmp_path / "folder")).names == ("/dev/null",)
    if os.geteuid() == 0:
        try:
            os.mknod(tmp_path / "folder/innocent", 0o060600, os.makedev(7, 250))
            os.mknod(tmp_path / "gpu", 0o020600, os.makedev(195, 3))
            os.mknod(tmp_path / "control", 0o020600, os.makedev(195, 255))
        except PermissionError:
            pytest.skip("no device nodes can be made here")
        assert look_at_device(str(tmp_path / "folder")).disks == (str(tmp_path / "folder/innocent"),)
        assert look_at_device(str(tmp_path / "gpu")).gpus == (str(tmp_path / "gpu"),)
        assert look_at_device(str(tmp_path / "control")).gpus == ()


def test_the_engines_socket_is_found_under_every_name_and_in_folders(tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    run.mkdir()
    other.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(run / "engine"))
        os.link(run / "engine", other / "innocent")
        (tmp_path / "link").symlink_to(run / "engine")
        info = EngineInfo(endpoint=f"unix://{run}/engine")
        sources = [str(run / "engine"), str(other / "innocent"), str(tmp_path / "link"), str(run), str(tmp_path),
                   str(other), str(home), str(tmp_path / "gone")]  # fmt: skip
        found = engine_sockets(sources, info, home=str(home))
        assert set(found) == {*sources[:5]}
        assert found[str(run)] == str(run / "engine")
        assert str(run) not in engine_sockets(sources, info, home=str(run)), "an engine of one's own, in one's home"
        os.chown(run / "engine", -1, 998) if os.geteuid() == 0 else None
        (run / "engine").chmod(0o660)
        assert engine_group(info) == ((run / "engine").stat().st_gid or None)
        assert engine_group(replace(info, rootless=True)) is None, "its user's own group"
        (run / "engine").chmod(0o600)
        assert engine_group(info) is None


def test_a_mount_that_holds_the_socket_is_refused_and_says_where_it_is() -> None:
    for source, within in (("/srv/x.sock", "/srv/x.sock"), ("/srv/run", "/srv/run/engine")):
        facts = replace(mounted(source, read_only=True), sockets={source: within}, info=INFO)
        (found,) = [one for one in examine(facts) if one.slug == "dangerous-mount"]
        assert "command the engine itself" in found.sentence
        assert (f"the engine's socket {within} is in it" in found.sentence) == (source != within)
        assert "the whole machine as root" in found.sentence


def test_what_an_engine_without_root_gives_away_is_not_called_root() -> None:
    for source, within in (("/run/user/7/docker.sock", ""), ("/run/user/7", "/run/user/7/podman/podman.sock")):
        facts = replace(mounted(source), sockets={source: within or source}, info=INFO)
        (found,) = [one for one in examine(facts) if one.slug == "dangerous-mount"]
        assert "all that you may do here" in found.sentence
        assert "root" not in found.sentence


def test_a_volume_is_judged_by_the_path_that_it_was_made_over() -> None:
    volumes = spec(mounts=(Mount("volume", "innocent", "/x", True), Mount("volume", "runs", "/runs")))
    for path, refused in (("/etc", True), ("/srv/data", False), ("/var/run/docker.sock", True)):
        facts = replace(volumes, volume_folders={"innocent": path})
        found = [one.sentence for one in examine(facts) if one.slug == "dangerous-mount"]
        assert bool(found) == refused
        assert all(sentence.startswith(f"The volume innocent, which is {path}, would let") for sentence in found)
    assert "dangerous-mount" not in {one.slug for one in examine(volumes)}

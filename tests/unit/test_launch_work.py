"""Kinds of work: the command each makes, what is wrong beside it, where it listens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.engine.model import EngineInfo, GpuPath, Mount
from gpuconsole.engine.request import CreateRequest, DeviceRequest, PortRequest, Tmpfs
from gpuconsole.gpu.model import Gpu
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.gpupath import GpuRoute
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.request import build_request
from gpuconsole.launch.spec import LaunchSpec, Secret, SpecInvalid
from gpuconsole.launch.units import GpuUnit
from gpuconsole.launch.work import Kind, words_of

INFO = EngineInfo(endpoint="unix:///x")
TWO = GpuChoice((GpuUnit(Gpu(index=0, uuid="GPU-a", name="H")), GpuUnit(Gpu(index=1, uuid="GPU-b", name="H"))))


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    (tmp_path / "key").write_text("secret")
    (tmp_path / "a:b").mkdir()
    return Surroundings(str(tmp_path), str(tmp_path), {}, 1234, 100, "anna")


def spec_of(around: Surroundings, **options: Any) -> LaunchSpec:
    return read_options(replace(LaunchOptions("a"), **options), around)


def made(around: Surroundings, *, gpus: bool = False, port: int = 0, **options: Any) -> CreateRequest:
    spec = spec_of(around, **options)
    route = GpuRoute(GpuPath.HOOK, "") if gpus else None
    return build_request(spec, name="n", info=INFO, choice=TWO if gpus else None, route=route, port=port)


def problem_of(around: Surroundings, **options: Any) -> str:
    with pytest.raises(SpecInvalid) as caught:
        spec_of(around, **options)
    return caught.value.message


# Commands


@pytest.mark.parametrize(
    ("options", "command"),
    [
        ({"kind": "torchrun"}, "torchrun --standalone --nproc-per-node=1 train.py --lr 1"),
        ({"kind": "torchrun", "processes": "8"}, "torchrun --standalone --nproc-per-node=8 train.py --lr 1"),
        (
            {"kind": "torchrun", "nodes": "2", "rendezvous": "node-1:29500", "rendezvous_id": "run7"},
            "torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=node-1:29500 --rdzv-id=run7 --nproc-per-node=1 "
            "train.py --lr 1",
        ),
        ({"kind": "script"}, "python -u train.py --lr 1"),
        ({"kind": "shell"}, "train.py --lr 1"),
        ({"kind": "jupyter"}, "jupyter lab --ip=0.0.0.0 --port=8888 --port-retries=0 --no-browser --allow-root "
                              "train.py --lr 1"),
        ({"kind": "tensorboard", "logdir": "/runs"}, "tensorboard --logdir=/runs --host=0.0.0.0 --port=6006 "
                                                     "train.py --lr 1"),
        ({}, "train.py --lr 1"),
    ],
)  # fmt: skip
def test_each_kind_makes_its_command_and_what_was_written_is_found_in_it(
    around: Surroundings, options: dict[str, Any], command: str
) -> None:
    words = ("train.py", "--lr", "1")
    request = made(around, command=words, **options)
    assert " ".join(request.command or ()) == command
    assert request.tty is (options.get("kind") == "shell")
    if "kind" in options:
        assert words_of(Kind(options["kind"]), request.command or ()) == words


def test_torchrun_starts_a_process_for_each_chosen_gpu(around: Surroundings) -> None:
    request = made(around, gpus=True, kind="torchrun", command=("t.py",))
    assert request.command == ("torchrun", "--standalone", "--nproc-per-node=2", "t.py")


def test_scripts_run_by_what_they_are(around: Surroundings) -> None:
    assert made(around, kind="script", command=("run.sh", "x")).command == ("sh", "run.sh", "x")
    assert made(around, kind="script", command=("./tool", "x")).command == ("./tool", "x")
    shell = made(around, kind="shell")
    assert shell.tty
    assert shell.command is not None
    assert "exec bash" in shell.command[2]
    assert words_of(Kind.SHELL, shell.command) == ()


# Ports


def test_only_jupyter_and_tensorboard_open_a_port_and_that_on_loopback(around: Surroundings) -> None:
    assert made(around, kind="jupyter", port=8890).ports == (PortRequest(8888, 8890),)
    assert made(around, kind="tensorboard", logdir="/r", port=6006).ports == (PortRequest(6006, 6006),)
    for kind in ("torchrun", "script", "shell"):
        assert made(around, kind=kind, command=("x",)).ports == ()
    assert made(around, kind="jupyter", ports=("9000:8888",)).ports == (PortRequest(8888, 9000),)


def test_in_the_hosts_network_it_listens_on_loopback_only(around: Surroundings) -> None:
    request = made(around, kind="jupyter", network="host", port=8891)
    assert request.ports == ()
    assert "--ip=127.0.0.1" in (request.command or ())
    assert "--port=8891" in (request.command or ())


def test_the_token_is_named_by_its_file_alone(around: Surroundings) -> None:
    environment = dict(made(around, kind="jupyter").environment)
    assert environment == {"JUPYTER_TOKEN_FILE": "/run/secrets/jupyter_token"}
    own = made(around, kind="jupyter", secrets=("jupyter_token=key",))
    assert dict(own.environment) == environment
    assert [mount.target for mount in own.mounts] == ["/run/secrets/jupyter_token"]


# What is wrong


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kind": "notebook"}, "--kind: 'notebook' is no kind; there is shell, jupyter, tensorboard, torchrun, script"),
        ({"kind": "torchrun"}, "COMMAND: --kind torchrun needs a script after --"),
        ({"kind": "script"}, "COMMAND: --kind script needs a script"),
        ({"kind": "tensorboard"}, "--logdir: TensorBoard needs it"),
        ({"logdir": "/r"}, "--logdir: is for --kind tensorboard"),
        ({"processes": "2"}, "--nproc-per-node: is for --kind torchrun"),
        ({"kind": "torchrun", "command": ("x",), "nodes": "2"}, "--nnodes: several machines need --rdzv-endpoint"),
        ({"kind": "torchrun", "command": ("x",), "nodes": "0"}, "--nnodes: '0' is no number from 1"),
        ({"kind": "torchrun", "command": ("x",), "rendezvous": "node"}, "write HOST:PORT"),
        ({"kind": "torchrun", "command": ("x",), "rendezvous": "node:70000"}, "write HOST:PORT"),
        ({"kind": "torchrun", "command": ("x",), "rendezvous_id": "a"}, "--rdzv-id: is for --rdzv-endpoint"),
        ({"kind": "jupyter", "network": "none"}, "--network: --kind jupyter is used through a port"),
        ({"kind": "jupyter", "environment": ("JUPYTER_TOKEN=x",)}, "--secret jupyter_token=FILE"),
        ({"kind": "jupyter", "command": ("--ServerApp.token=x",)}, "--secret jupyter_token=FILE"),
        ({"kind": "jupyter", "command": ("--IdentityProvider.token", "x")}, "--secret jupyter_token=FILE"),
        ({"tmpfs": ("/t:sise=1g",)}, "'sise=1g' is no option of a tmpfs; known: size="),
        ({"tmpfs": ("/t:size=much",)}, "not a size"),
        ({"tmpfs": ("t",)}, "no absolute path"),
        ({"tmpfs": ("/t:",)}, "ends with a ':'"),
        ({"mounts": ("type=bind,source=.",)}, "has no target"),
        ({"mounts": ("type=bind,target=/x",)}, "has no source"),
        ({"mounts": ("type=npipe,source=a,target=/x",)}, "no type of mount"),
        ({"mounts": ("type=bind,source=.,target=/x,z=1",)}, "'z' is no option of a mount"),
        ({"mounts": ("type=tmpfs,source=a,target=/x",)}, "a tmpfs has none"),
        ({"mounts": ("type=volume,source=a/b,target=/x",)}, "write type=bind"),
        ({"mounts": ("type=bind,source=gone,target=/x",)}, "gone is not there"),
        ({"secrets": ("key",)}, "names no file; write NAME=FILE"),
        ({"secrets": ("a/b=key",)}, "cannot be a secret's name"),
        ({"secrets": ("key=gone",)}, "gone is not there"),
        ({"secrets": ("key=a:b",)}, "is no file"),
        ({"devices": ("nvidia.com/gpu=0",)}, "GPUs are chosen by --gpus"),
        ({"devices": ("/dev/nvidia0",)}, "choose it by --gpus"),
        ({"devices": ("/etc/passwd",)}, "is no device"),
        ({"devices": ("/dev/../etc",)}, "is no device"),
        ({"devices": ("/dev/fuse:/dev/fuse:x",)}, "are no rights"),
        ({"group_add": ("a b",)}, "is no group"),
        ({"group_add": ("9" * 12,)}, "above 2147483647"),
        ({"extra_hosts": ("a",)}, "names no host"),
        ({"extra_hosts": ("a:b",)}, "no IP address"),
        ({"tmpfs": ("/x",), "volumes": ("aa:/x",)}, "/x is mounted twice"),
    ],
)
def test_what_cannot_be_is_refused(around: Surroundings, options: dict[str, Any], told: str) -> None:
    assert told in problem_of(around, **options)


def test_places_are_read_as_docker_reads_them(around: Surroundings, tmp_path: Path) -> None:
    spec = spec_of(
        around,
        mounts=(
            f'type=bind,"src={tmp_path}/a:b",dst=/c,ro', "source=vol,target=/v",
            "type=bind,source=a:b,target=/d,readonly=false",
            "type=tmpfs,target=/t,tmpfs-size=1g,tmpfs-mode=1777",
        ),
        tmpfs=("/u:size=50%,noexec", "/w"),
        devices=("/dev/fuse", "/dev/snd:/dev/sound", "/dev/fuse:r", "/dev/kvm:/dev/k:rw"),
        extra_hosts=("a:1.2.3.4", "b=::1", "c:host-gateway", "d:[::2]"),
        group_add=("44", "video", "44"),
        secrets=("HF_TOKEN=key",),
    )  # fmt: skip
    assert spec.mounts == (
        Mount("bind", f"{tmp_path}/a:b", "/c", True), Mount("volume", "vol", "/v"),
        Mount("bind", f"{tmp_path}/a:b", "/d"),
    )  # fmt: skip
    assert spec.tmpfs == (Tmpfs("/t", ("size=1g", "mode=1777")), Tmpfs("/u", ("size=50%", "noexec")), Tmpfs("/w"))
    assert spec.devices == (
        DeviceRequest("/dev/fuse", "/dev/fuse"), DeviceRequest("/dev/snd", "/dev/sound"),
        DeviceRequest("/dev/fuse", "/dev/fuse", "r"), DeviceRequest("/dev/kvm", "/dev/k", "rw"),
    )  # fmt: skip
    assert spec.extra_hosts == (("a", "1.2.3.4"), ("b", "::1"), ("c", "host-gateway"), ("d", "::2"))
    assert spec.group_add == ("44", "video")
    assert spec.secrets == (Secret("HF_TOKEN", f"{tmp_path}/key"),)
    request = build_request(spec, name="n", info=INFO)
    assert dict(request.environment)["HF_TOKEN_PATH"] == "/run/secrets/HF_TOKEN"
    assert Mount("bind", f"{tmp_path}/key", "/run/secrets/HF_TOKEN", True) in request.mounts

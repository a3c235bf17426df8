"""A container saved as a profile: what makes it, and no secret's value; the file around it stays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import cast

import pytest

from gpuconsole.core.errors import BadFile, Conflict, NotFound, UsageError
from gpuconsole.core.paths import state_dir
from gpuconsole.engine.model import Container, ContainerState, GpuClaim, GpuRequestKind, Image, Mount, Port
from gpuconsole.engine.protocol import Engine
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.services.containeroptions import options_of
from gpuconsole.services.profiles import profile_sources
from gpuconsole.services.profilesaving import harmless, save_profile
from gpuconsole.services.session import Session

IMAGE = Image(
    id="sha256:1", tags=("pytorch:1",), environment=(("PATH", "/bin"), ("CUDA", "12")), command=("bash",),
    entrypoint=("/entry",), labels={"maker": "x"}, user="", working_dir="/workspace",
)  # fmt: skip
OTHERS = Container(
    id="a" * 64, name="theirs", image="pytorch:1", image_id="sha256:1", state=ContainerState.RUNNING,
    command=("python", "train.py"), entrypoint=("/entry",), working_dir="/work",
    environment=(("PATH", "/bin"), ("CUDA", "12"), ("LR", "0.1"), ("HF_TOKEN", "hf_topsecret"),
                 ("NVIDIA_VISIBLE_DEVICES", "0")),
    user="1000:1000", hostname="a" * 12, labels={"maker": "x", "team": "vision", "com.docker.compose.project": "p"},
    mounts=(
        Mount("bind", "/data", "/data", True), Mount("volume", "runs", "/runs"),
        Mount("volume", "f" * 64, "/anonymous"),
        Mount("tmpfs", "", "/t"), Mount("bind", "/keys/netrc", "/run/secrets/netrc", True), Mount("bind", "/a:b", "/c"),
    ),
    ports=(Port(8888, "tcp", "127.0.0.1", 9000), Port(53, "udp", "0.0.0.0", 53), Port(80)),
    networks=("bridge",), gpu_claims=(GpuClaim(GpuRequestKind.DEVICE_REQUEST, devices=("0", "1")),),
    shm_bytes=16 * 2**30, ipc_mode="private", memory_limit_bytes=2**30, cpu_limit=1.5, restart_policy="on-failure:3",
    init=True, read_only=True, privileged=True, ulimits=("memlock=-1:-1",), group_add=("44",),
    devices=("/dev/fuse:/dev/fuse:rwm", "/dev/nvidia0:/dev/nvidia0:rwm"), extra_hosts=("up:host-gateway", "six:::1"),
    tmpfs=("/t:size=1g",),
)  # fmt: skip


class OneContainer:
    """An engine with one container and its image; only what saving asks for."""

    def __init__(self, container: Container) -> None:
        self._container = container

    def container(self, reference: str) -> Container:
        return self._container

    def image(self, reference: str) -> Image:
        if self._container.image_id != IMAGE.id:
            raise NotFound("There is none.", hint="None.")
        return IMAGE

    def image_files(self, reference: str, paths: Sequence[str]) -> Mapping[str, bytes]:
        return MappingProxyType({})


def session_with(container: Container) -> Session:
    session = Session()
    session._engine = cast(Engine, OneContainer(container))
    return session


def test_a_container_of_others_becomes_the_options_that_make_it() -> None:
    options, notes = options_of(OTHERS, IMAGE)
    assert options == LaunchOptions(
        image="pytorch:1", command=("python", "train.py"), gpus="2", volumes=("/data:/data:ro", "runs:/runs"),
        mounts=("type=bind,source=/a:b,target=/c",), tmpfs=("/t:size=1g",), secrets=("netrc=/keys/netrc",),
        environment=("LR=0.1", "HF_TOKEN"), ports=("9000:8888", "0.0.0.0:53:53/udp"), labels=("team=vision",),
        working_dir="/work", user="1000:1000", shm_size="16g", memory="1g", cpus="1.5", restart="on-failure:3",
        ulimits=("memlock=-1:-1",), group_add=("44",), devices=("/dev/fuse:/dev/fuse:rwm",), read_only=True,
        privileged=True, extra_hosts=("up=host-gateway", "six=::1"),
    )  # fmt: skip
    assert notes == ("The value of HF_TOKEN is not written: it is taken from the shell that launches.",)


def test_what_is_the_images_own_is_left_out() -> None:
    plain = Container(
        id="b" * 64, name="n", image="pytorch:1", image_id="sha256:1", state=ContainerState.RUNNING, command=("bash",),
        entrypoint=("/entry",), environment=IMAGE.environment, working_dir="/workspace", shm_bytes=64 * 2**20,
    )  # fmt: skip
    assert options_of(plain, IMAGE)[0] == LaunchOptions("pytorch:1", gpus="none", user="image")
    without = options_of(plain, None)[0]
    assert (without.command, without.environment) == (("bash",), ("PATH=/bin", "CUDA=12"))


def test_a_command_with_a_secret_is_left_out_and_said() -> None:
    options, notes = options_of(replace(OTHERS, command=("train", "--token", "hf_0123456789abcdefgh")), IMAGE)
    assert options.command == ()
    assert "has a secret in it" in notes[0]


def test_a_launch_of_ours_is_saved_as_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.env").write_text("FROM_FILE=1\n")
    said = {
        "gpus": "auto", "kind": "jupyter", "user": "me", "ports": ["127.0.0.1::80/tcp"], "env": ["LR", "FROM_FILE"],
        "env_files": [str(tmp_path / "x.env")], "init": False,
    }  # fmt: skip
    ours = replace(
        OTHERS,
        labels={"gpuconsole.spec": json.dumps(said)},
        command=("jupyter", "lab", "--port=8888", "--allow-root", "--LabApp.x=1"),
        environment=(("LR", "1"), ("FROM_FILE", "1"), ("HOME", "/tmp"),
                     ("JUPYTER_TOKEN_FILE", "/run/secrets/jupyter_token")),
        mounts=(
            Mount("bind", f"{state_dir()}/jupyter/x/jupyter_token", "/run/secrets/jupyter_token", True),
            Mount("bind", f"{state_dir()}/users/x/passwd", "/etc/passwd", True),
        ),
        ports=(Port(8888, "tcp", "127.0.0.1", 8888), Port(80, "tcp", "127.0.0.1", 32768)),
    )  # fmt: skip
    options, _ = options_of(ours, IMAGE)
    assert (options.kind, options.command, options.gpus, options.user) == ("jupyter", ("--LabApp.x=1",), "auto", "me")
    assert (options.ports, options.environment, options.volumes, options.secrets) == (("80",), ("LR=1",), (), ())
    assert (options.env_files, options.init) == ((str(tmp_path / "x.env"),), False)
    broken = replace(ours, labels={"gpuconsole.spec": "{"})
    assert options_of(broken, IMAGE)[0].kind is None


def test_saving_keeps_the_file_and_refuses_what_would_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "gpuconsole.toml"
    before = '# ours\n[profiles.base]\nimage = "a" # kept\n'
    file.write_text(before)
    container = replace(OTHERS, mounts=(Mount("bind", str(tmp_path), "/w"), Mount("bind", f"{tmp_path}/d", "/d")))
    saved = save_profile(session_with(container), "mine", "theirs", to_user=False, replace=False)
    assert file.read_text() == f"{before}\n{saved.text}"
    assert 'volumes = [".:/w", "./d:/d"]' in saved.text
    assert "topsecret" not in file.read_text()
    with pytest.raises(Conflict, match="has a profile mine already"):
        save_profile(session_with(container), "mine", "theirs", to_user=False, replace=False)
    save_profile(session_with(replace(container, cpu_limit=2.0)), "mine", "theirs", to_user=False, replace=True)
    (source,) = profile_sources()
    assert (list(source.profiles), source.profiles["mine"]["cpus"]) == (["base", "mine"], "2")
    with pytest.raises(UsageError):
        save_profile(session_with(container), "a/b", "theirs", to_user=False, replace=False)
    file.write_text("[profiles\n")
    with pytest.raises(BadFile):
        save_profile(session_with(container), "new", "theirs", to_user=False, replace=False)
    assert file.read_text() == "[profiles\n"
    file.unlink()
    assert save_profile(session_with(container), "own", "theirs", to_user=True, replace=False).path.is_file()
    assert [each.of_project for each in profile_sources()] == [False]


def test_shown_options_hold_no_secret() -> None:
    options = LaunchOptions(
        "a", environment=("HF_TOKEN=x", "LR=1", "KEY"), labels=("api_key=x", "a=b"), command=("t", "--token=x")
    )
    shown = harmless(options)
    assert shown.environment == ("HF_TOKEN", "LR=1", "KEY")
    assert shown.labels == ("api_key=********", "a=b")
    assert shown.command == ("t", "--token=********")

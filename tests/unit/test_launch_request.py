"""From a spec to what the engine is told, and to the docker run line that says the same."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuconsole import __version__
from gpuconsole.core.text import parse_size
from gpuconsole.core.users import caller_name
from gpuconsole.engine.model import EngineInfo, GpuPath, Mount
from gpuconsole.engine.request import CreateRequest, PortRequest, Ulimit
from gpuconsole.gpu.model import Gpu
from gpuconsole.launch.gpupath import GpuRoute
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.render import DockerRun, quote, render
from gpuconsole.launch.request import build_request, name_for
from gpuconsole.launch.spec import GpuWish, GpuWishKind, LaunchSpec, PullPolicy, Variable, VariableSource
from gpuconsole.launch.units import GpuUnit

GIB = 2**30
INFO = EngineInfo(endpoint="unix:///x", memory_bytes=64 * GIB)
IMAGE = "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime"
TWO = GpuChoice((GpuUnit(Gpu(index=0, uuid="GPU-a", name="H")), GpuUnit(Gpu(index=2, uuid="GPU-c", name="H"))))
CDI = GpuRoute(GpuPath.CDI, "", ("nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-c"))
HOOK, RUNTIME = GpuRoute(GpuPath.HOOK, ""), GpuRoute(GpuPath.RUNTIME, "")


def request(
    spec: LaunchSpec | None = None,
    info: EngineInfo = INFO,
    choice: GpuChoice | None = None,
    route: GpuRoute | None = None,
) -> CreateRequest:
    return build_request(spec or LaunchSpec(IMAGE), name="box", info=info, choice=choice, route=route)


def line(
    spec: LaunchSpec,
    choice: GpuChoice | None = None,
    route: GpuRoute | None = None,
    *,
    foreground: bool = False,
    hide_values: bool = False,
) -> DockerRun:
    asked = request(spec, choice=choice, route=route)
    return render(asked, spec, foreground=foreground, hide_values=hide_values)


def test_shared_memory_is_eight_gib_and_half_of_the_memory_at_most() -> None:
    assert request().shm_bytes == 8 * GIB
    assert request(info=replace(INFO, memory_bytes=None)).shm_bytes == 8 * GIB
    assert request(info=replace(INFO, memory_bytes=6 * GIB + 5)).shm_bytes == 3 * GIB
    assert request(LaunchSpec(IMAGE, memory_bytes=GIB + 7)).shm_bytes == 512 * 2**20
    assert request(LaunchSpec(IMAGE, memory_bytes=10 * 2**20)).shm_bytes == 64 * 2**20
    assert request(LaunchSpec(IMAGE, shm_bytes=12345)).shm_bytes == 12345
    assert request(LaunchSpec(IMAGE, ipc_mode="private")).shm_bytes == 8 * GIB
    assert request(LaunchSpec(IMAGE, ipc_mode="host")).shm_bytes is None


@pytest.mark.parametrize(
    ("command", "entrypoint", "asked", "interactive"),
    [
        ((), None, None, True),
        (("bash",), None, None, True),
        (("/usr/bin/zsh",), None, None, True),
        (("python", "train.py"), None, None, False),
        (("sleep",), None, None, False),
        ((), ("bash",), None, True),
        ((), ("/entry",), None, False),
        (("python", "train.py"), None, True, True),
        ((), None, False, False),
    ],
)
def test_a_shell_gets_a_terminal(
    command: tuple[str, ...], entrypoint: tuple[str, ...] | None, asked: bool | None, interactive: bool
) -> None:
    made = request(LaunchSpec(IMAGE, command=command, entrypoint=entrypoint, interactive=asked))
    assert (made.tty, made.open_stdin) == (interactive, interactive)
    assert made.command == (command or None)


def test_labels_say_what_it_was_launched_with_and_no_secret() -> None:
    spec = LaunchSpec(
        IMAGE,
        command=("train", "--token=topsecret"),
        gpus=GpuWish(GpuWishKind.COUNT, count=2),
        variables=(Variable("HF_TOKEN", "hf_topsecret", VariableSource.SHELL), Variable("SEED", "topsecret")),
        labels=(("team", "vision"),),
        mounts=(Mount("bind", "/data", "/data", read_only=True),),
    )
    labels = request(spec, choice=TWO, route=HOOK).labels
    assert labels["team"] == "vision"
    assert labels["gpuconsole.version"] == __version__
    assert labels["gpuconsole.user"] == caller_name()
    assert labels["gpuconsole.gpus"] == "GPU-a,GPU-c"
    assert labels["gpuconsole.image"] == IMAGE
    assert json.loads(labels["gpuconsole.spec"]) == {
        "image": IMAGE,
        "gpus": "2",
        "volumes": ["/data:/data:ro"],
        "env": ["HF_TOKEN", "SEED"],
    }
    assert "topsecret" not in json.dumps(dict(labels))
    assert request().labels["gpuconsole.gpus"] == "none"


def test_a_runtime_that_gives_every_gpu_is_told_to_give_none() -> None:
    nvidia = replace(INFO, default_runtime="nvidia")
    void = ("NVIDIA_VISIBLE_DEVICES", "void")
    assert request(info=nvidia).environment == (void,)
    assert request(info=nvidia, choice=TWO, route=CDI).environment == (void,)
    assert request(info=nvidia, choice=TWO, route=HOOK).environment == ()
    assert request(choice=TWO, route=CDI).environment == ()


@pytest.mark.parametrize(
    ("image", "base"),
    [
        (IMAGE, "pytorch"),
        ("nvcr.io/nvidia/pytorch:25.10-py3", "pytorch"),
        ("localhost:5000/team/my_image@sha256:" + "a" * 64, "my_image"),
        ("sha256:" + "b" * 64, "container"),
        ("x" * 100, "x" * 40),
    ],
)
def test_a_name_is_made_from_the_images(image: str, base: str) -> None:
    names = {name_for(LaunchSpec(image)) for _ in range(20)}
    assert len(names) > 1
    assert all(re.fullmatch(re.escape(base) + "-[a-z2-9]{4}", name) for name in names)
    assert name_for(LaunchSpec(image, name="mine")) == "mine"


def test_the_line_for_each_way_of_giving_gpus() -> None:
    spec = LaunchSpec(IMAGE, command=("python", "train.py"))
    head = "docker run --detach --name box --init"
    tail = f"--shm-size 8g {IMAGE} python train.py"
    assert str(line(spec)) == f"{head} {tail}"
    assert str(line(spec, TWO, HOOK)) == f"{head} --gpus '\"device=GPU-a,GPU-c\"' {tail}"
    assert str(line(spec, TWO, CDI)) == (f"{head} --device nvidia.com/gpu=GPU-a --device nvidia.com/gpu=GPU-c {tail}")
    assert str(line(spec, TWO, RUNTIME)) == (f"{head} --runtime nvidia --env NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-c {tail}")
    assert line(spec, TWO, CDI).client == "25.0"
    assert line(spec, TWO, HOOK).client is None


def test_the_whole_line() -> None:
    spec = LaunchSpec(
        IMAGE,
        command=("--flag", "a b"),
        entrypoint=("tool",),
        mounts=(Mount("bind", "/a,b:c", "/x y", read_only=True), Mount("volume", "runs", "/runs")),
        ports=(PortRequest(80, 8888), PortRequest(6006), PortRequest(53, 53, "::1", "udp")),
        variables=(
            Variable("A", "1 2"),
            Variable("HF_TOKEN", "secret", VariableSource.SHELL),
            Variable("F", "filed", VariableSource.FILE),
        ),
        env_files=("/p/train.env",),
        labels=(("team", "vision"),),
        working_dir="/w",
        user="1:2",
        hostname="node",
        shm_bytes=GIB + 1,
        network="net",
        memory_bytes=3 * 2**20,
        cpus=1.5,
        ulimits=(Ulimit("memlock", -1, -1),),
        restart_policy="on-failure:3",
        init=False,
        interactive=True,
        privileged=True,
        pull=PullPolicy.NEVER,
    )
    assert str(line(spec)) == (
        "docker run --detach --name box --pull never --interactive --tty --privileged --shm-size 1073741825 "
        "--memory 3m --cpus 1.5 --ulimit memlock=-1:-1 --network net --restart on-failure:3 --user 1:2 "
        "--hostname node --workdir /w "
        "--mount 'type=bind,\"source=/a,b:c\",target=/x y,readonly' --mount type=volume,source=runs,target=/runs "
        "--publish 127.0.0.1:8888:80/tcp --publish 127.0.0.1::6006/tcp --publish '[::1]:53:53/udp' "
        "--env-file /p/train.env --env 'A=1 2' --env HF_TOKEN --label team=vision "
        f"--entrypoint tool {IMAGE} --flag 'a b'"
    )
    assert "secret" not in str(line(spec))
    assert "filed" not in str(line(spec))
    assert "'A=1 2'" not in str(line(spec, hide_values=True))
    assert "--detach" not in str(line(spec, foreground=True))


def test_an_emptied_entrypoint_is_written_as_such() -> None:
    assert str(line(LaunchSpec(IMAGE, entrypoint=("",), command=("ls",)))).endswith(f"--entrypoint '' {IMAGE} ls")


def test_control_characters_stay_inert_and_on_one_line() -> None:
    for text in ("a\nb", "\x1b[2J", "it's\t\\n", "\x9b31m", "\u202egnp", "\r"):
        assert quote(text).isprintable()
    assert quote("a\nb") == r"$'a\nb'"
    assert quote("plain") == "plain"
    assert quote("it's") == "'it'\"'\"'s'"


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORD, min_size=1, max_size=5))
def test_a_shell_reads_the_line_back_as_the_words_it_was_made_of(words: list[str]) -> None:
    text = str(DockerRun(tuple(words)))
    assert len(text.splitlines()) <= 1
    answer = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert answer.stdout.decode().split("\0")[:-1] == words


NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
PATH = WORD.map(lambda text: "/" + text)
SPECS = st.builds(
    LaunchSpec,
    image=st.just(IMAGE),
    command=st.lists(WORD, max_size=3).map(tuple),
    entrypoint=st.one_of(st.none(), WORD.map(lambda word: (word,))),
    mounts=st.lists(
        st.builds(Mount, st.just("bind"), PATH, PATH, st.booleans()) | st.builds(Mount, st.just("volume"), NAME, PATH),
        max_size=3,
    ).map(tuple),
    ports=st.lists(
        st.builds(PortRequest, st.integers(1, 65535), st.integers(0, 65535), st.sampled_from(["127.0.0.1", "::1"])),
        max_size=2,
    ).map(tuple),
    variables=st.lists(st.builds(Variable, NAME, WORD), max_size=3).map(tuple),
    labels=st.lists(st.tuples(NAME, WORD), max_size=2, unique_by=lambda pair: pair[0]).map(tuple),
    working_dir=st.one_of(st.none(), PATH),
    shm_bytes=st.one_of(st.none(), st.integers(1, 2**40)),
    memory_bytes=st.one_of(st.none(), st.integers(2**23, 2**45)),
    cpus=st.one_of(st.none(), st.floats(0.01, 512).map(lambda cores: round(cores, 9))),
    ulimits=st.lists(st.builds(Ulimit, st.just("nofile"), st.integers(-1, 99), st.integers(99, 999)), max_size=1).map(
        tuple
    ),
    auto_remove=st.booleans(),
    init=st.booleans(),
    interactive=st.booleans(),
)
FLAGS = {"--detach", "--rm", "--interactive", "--tty", "--init"}


def read_back(words: tuple[str, ...]) -> tuple[set[str], dict[str, list[str]], list[str]]:
    """Flags, options and the words from the image on, as docker's option parser takes them apart."""
    flags: set[str] = set()
    options: dict[str, list[str]] = {}
    rest = list(words[2:])
    while rest and rest[0].startswith("--"):
        option = rest.pop(0)
        if option in FLAGS:
            flags.add(option)
        else:
            options.setdefault(option, []).append(rest.pop(0))
    return flags, options, rest


def mount_of(text: str) -> Mount:
    fields = dict((part + "=").split("=", 1) for part in next(csv.reader([text.replace("\n", "\0"), ""])))
    values = {key: value.removesuffix("=").replace("\0", "\n") for key, value in fields.items()}
    return Mount(values["type"], values["source"], values["target"], "readonly" in values)


@given(SPECS, st.sampled_from([None, CDI, HOOK, RUNTIME]))
def test_the_line_says_all_that_the_engine_is_told(spec: LaunchSpec, route: GpuRoute | None) -> None:
    made = request(spec, choice=TWO if route else None, route=route)
    flags, options, rest = read_back(render(made, spec).words)
    assert ("--rm" in flags, "--tty" in flags, "--init" in flags) == (made.auto_remove, made.tty, made.init)
    assert options["--name"] == ["box"]
    entrypoint = options.get("--entrypoint", [])
    assert tuple(entrypoint) == (made.entrypoint or ())
    assert rest == [IMAGE, *(made.command or ())]
    if not any(char in mount.source + mount.target for mount in made.mounts for char in "=\r\n"):
        assert tuple(mount_of(text) for text in options.get("--mount", [])) == made.mounts
    variables = [text for text in options.get("--env", []) if not text.startswith("NVIDIA_")]
    assert variables == [f"{name}={value}" for name, value in made.environment]
    assert options.get("--label", []) == [f"{key}={value}" for key, value in spec.labels]
    assert options.get("--workdir", [None]) == [made.working_dir]
    assert [parse_size(text) for text in options.get("--shm-size", [])] == [made.shm_bytes]
    assert [parse_size(text) for text in options.get("--memory", [])] == [made.memory_bytes] * bool(made.memory_bytes)
    assert [float(text) for text in options.get("--cpus", [])] == [made.cpus] * (made.cpus is not None)
    assert len(options.get("--publish", [])) == len(made.ports)
    assert len(options.get("--ulimit", [])) == len(made.ulimits)
    assert options.get("--device", []) == list(made.cdi_devices)
    assert ("--gpus" in options, "--runtime" in options) == (route is HOOK, route is RUNTIME)

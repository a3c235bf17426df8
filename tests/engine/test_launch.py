"""Launching on real engines: the chosen GPU and no other, nothing left of what fails, the line that does the same."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.errors import Conflict, ConsoleError, EngineRefused, GpuNotFound, NotFound
from gpuconsole.launch import labels
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.services import launching
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.launching import Launched, LaunchStep, Phase, launch
from gpuconsole.services.planning import LaunchPlan, plan_launch
from gpuconsole.services.preflight import warnings
from gpuconsole.services.session import Session
from tests.rig.engines import Engine
from tests.rig.fixtures import Bench
from tests.rig.gpus import TWO_GPUS
from tests.rig.kinds import KINDS, RUNTIMES
from tests.rig.nvml.gpu import GIB, GpuProcess
from tests.rig.nvml.presets import h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState
from tests.rig.registry import Registry

pytestmark = pytest.mark.engine(*RUNTIMES)
FIRST, SECOND = (gpu.uuid for gpu in TWO_GPUS)
NODES = "ls /dev | grep nvidia | tr '\\n' ' '"
KEPT_BUSY = GpuProcess(os.getpid(), 20 * GIB)


def about_gpus(plan: LaunchPlan) -> tuple[str, ...]:
    """The notes of a plan, less those of what every launch of these tests is: nothing is mounted."""
    unrelated = warnings(tuple(finding for finding in plan.findings if finding.slug == "nothing-mounted"))
    return tuple(note for note in plan.notes if note not in unrelated)


@pytest.fixture
def two_gpus(nvml: NvmlBox) -> NvmlBox:
    """The engine's two GPUs as the driver sees them; the first is busy."""
    first, second = (h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)
    nvml.write(NvmlState(gpus=(first.with_(processes=(KEPT_BUSY,)), second)))
    return nvml


@pytest.fixture
def registry(rig_bench: Bench) -> Iterator[Registry]:
    """A registry with the rig's image of several layers in it."""
    registry = Registry(rig_bench.rig)
    yield registry
    registry.close()


@pytest.fixture
def sessions() -> Iterator[Callable[[Engine], Session]]:
    """Opens sessions with engines, and closes them."""
    opened: list[Session] = []

    def open_session(engine: Engine) -> Session:
        opened.append(Session(host=engine.host))
        return opened[-1]

    yield open_session
    for session in opened:
        session.close()


OpenSession = Callable[[Engine], Session]


def spec(image: str, *command: str, **options: Any) -> LaunchSpec:
    return read_options(replace(LaunchOptions(image, command=command), **options), Surroundings.current())


def pushed(registry: Registry, engine: Engine) -> str:
    """An image of several layers in the registry, of which the engine has none."""
    local = engine.load("layers")
    reference = registry.push(engine, local, name="team/layers:1")
    engine.docker("rmi", "--force", local)
    return reference


def ignore(_: LaunchStep) -> None:
    """Nobody watches."""


class Output:
    """Takes what a container writes."""

    def __init__(self) -> None:
        self.text = {"stdout": "", "stderr": ""}

    def __call__(self, channel: str, data: bytes) -> None:
        self.text[channel] += data.decode()


def followed(session: Session, wanted: LaunchSpec) -> tuple[Launched, Output]:
    output = Output()
    return launch(session, wanted, ignore, on_output=output), output


def names(engine: Engine) -> list[str]:
    return sorted(one["Names"][0].removeprefix("/") for one in engine.get("/containers/json?all=1"))


def volumes(engine: Engine) -> list[str]:
    return sorted(one["Name"] for one in engine.get("/volumes")["Volumes"] or ())


def inspected(engine: Engine, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = engine.get(f"/containers/{name}/json")
    return answer


# GPUs


@pytest.mark.usefixtures("two_gpus")
def test_by_cdi_a_container_has_the_chosen_gpu_and_no_other(engine_modern: Engine, sessions: OpenSession) -> None:
    image = engine_modern.load("small")
    for wish, nodes in (("device=1", "nvidia1"), (f"device={FIRST}", "nvidia0"), ("all", "nvidia0 nvidia1")):
        launched, output = followed(
            sessions(engine_modern), spec(image, "sh", "-c", NODES, gpus=wish, auto_remove=True)
        )
        assert set(output.text["stdout"].split()) == {*nodes.split(), "nvidia-uvm", "nvidiactl"}, wish
        assert launched.ending is not None
        assert launched.ending.exit_code == 0


@pytest.mark.usefixtures("two_gpus")
def test_the_freest_is_chosen_and_said(engine_modern: Engine, sessions: OpenSession) -> None:
    image = engine_modern.load("small")
    for wish in ("auto", "1", None):
        plan = plan_launch(sessions(engine_modern), spec(image, gpus=wish))
        assert plan.request.gpu_uuids == (SECOND,)
        assert "Next freest is GPU 0 (NVIDIA H200): held by 1 process, 20." in plan.reasons[0]
        assert "By CDI" in plan.reasons[1]
        assert plan.request.labels[labels.GPUS] == SECOND


IDLE = ("sleep", "600")


def test_a_gpu_that_an_idle_container_was_given_comes_last(
    engine_modern: Engine, two_gpus: NvmlBox, sessions: OpenSession
) -> None:
    """The driver sees nothing on either GPU: only the engine knows that somebody has one of them."""
    two_gpus.change_gpu(0, processes=())
    image = engine_modern.load("small")
    engine_modern.docker("run", "--detach", "--name", "idle-0", "--device", "nvidia.com/gpu=0", image, *IDLE)
    plan = plan_launch(sessions(engine_modern), spec(image, gpus="1"))
    assert plan.request.gpu_uuids == (SECOND,)
    assert "Next freest is GPU 0 (NVIDIA H200): no compute process" in plan.reasons[0]
    assert "given to container idle-0" in plan.reasons[0]
    assert about_gpus(plan) == ()
    first = launch(sessions(engine_modern), spec(image, *IDLE, gpus="1", name="ours-1"), ignore)
    assert first.plan.request.gpu_uuids == (SECOND,)
    two_gpus.change_gpu(0, used_bytes=GIB // 2)
    both = plan_launch(sessions(engine_modern), spec(image, gpus="auto"))
    assert both.request.gpu_uuids == (SECOND,)
    assert both.notes[0].startswith("GPU 1 (NVIDIA H200) was given to container ours-1 of ")
    named = plan_launch(sessions(engine_modern), spec(image, gpus="device=0"))
    assert about_gpus(named) == ("GPU 0 (NVIDIA H200) was given to container idle-0 already, which runs.",)
    engine_modern.docker("stop", "--time", "0", "idle-0")
    again = plan_launch(sessions(engine_modern), spec(image, gpus="1"))
    assert again.request.gpu_uuids == (FIRST,)
    assert about_gpus(again) == ()


def test_however_a_container_was_given_a_gpu_it_counts(
    engine: Engine, two_gpus: NvmlBox, sessions: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the hook of an old engine as by CDI."""
    if engine.toolkit is not None:
        monkeypatch.setenv("PATH", f"{engine.toolkit.programs}:{os.environ['PATH']}")
    two_gpus.change_gpu(0, processes=())
    image = engine.load("small")
    taken = [launch(sessions(engine), spec(image, *IDLE, gpus="1"), ignore).plan.request.gpu_uuids for _ in range(2)]
    assert taken == [(FIRST,), (SECOND,)]
    third = plan_launch(sessions(engine), spec(image, gpus="1"))
    assert third.request.gpu_uuids == (FIRST,)
    assert "was given to container " in third.notes[0]


def test_without_an_answer_about_the_other_containers_it_says_so(
    engine_modern: Engine, two_gpus: NvmlBox, sessions: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sessions(engine_modern)

    def refuse(*_: object, **__: object) -> None:
        raise EngineRefused("The engine gave no list.", hint="Look at it.")

    monkeypatch.setattr(session.engine, "containers", refuse)
    plan = plan_launch(session, spec(engine_modern.load("small"), gpus="1"))
    assert plan.request.gpu_uuids == (SECOND,)
    assert about_gpus(plan) == ("It is not known which GPUs other containers were given: The engine gave no list.",)


@pytest.mark.usefixtures("two_gpus")
def test_through_the_hook_the_toolkit_is_asked_for_the_uuid(
    engine_old: Engine, engine_toolkit: Engine, sessions: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for engine, way in ((engine_old, None), (engine_toolkit, "hook"), (engine_toolkit, "runtime")):
        assert engine.toolkit is not None
        monkeypatch.setenv("PATH", f"{engine.toolkit.programs}:{os.environ['PATH']}")
        image = engine.load("small")
        wanted = spec(image, "sh", "-c", NODES, gpus="device=1", gpu_path=way, auto_remove=True)
        launched, output = followed(sessions(engine), wanted)
        call = engine.hook_calls()[-1]
        assert (call.container_id, call.visible_devices) == (launched.id, SECOND)
        assert "nvidia1" in output.text["stdout"]
        assert "nvidia0" not in output.text["stdout"]


@pytest.mark.usefixtures("two_gpus")
def test_without_a_way_the_asked_gpu_is_refused_and_the_unasked_is_left_out(
    engine_without_gpus: Engine, sessions: OpenSession
) -> None:
    image = engine_without_gpus.load("small")
    with pytest.raises(GpuNotFound) as caught:
        launch(sessions(engine_without_gpus), spec(image, gpus="1"), ignore)
    assert "nvidia-container-toolkit" in caught.value.hint
    assert names(engine_without_gpus) == []
    launched = launch(sessions(engine_without_gpus), spec(image), ignore)
    assert launched.plan.request.gpu_uuids == ()
    assert "no way to give GPUs" in launched.plan.notes[0]
    assert "nvidia-container-toolkit" in launched.plan.notes[0]


def test_gpus_that_are_not_there_are_refused_before_anything_is_made(
    engine_modern: Engine, two_gpus: NvmlBox, sessions: OpenSession
) -> None:
    image = engine_modern.load("small")
    for wish in ("3", "device=2", "device=GPU-ffff", "device=0,7"):
        with pytest.raises(GpuNotFound) as caught:
            launch(sessions(engine_modern), spec(image, gpus=wish), ignore)
        assert FIRST in caught.value.message
    two_gpus.write(NvmlState(gpus=()))
    with pytest.raises(GpuNotFound):
        launch(sessions(engine_modern), spec(image, gpus="all"), ignore)
    assert launch(sessions(engine_modern), spec(image), ignore).plan.request.gpu_uuids == ()
    assert len(names(engine_modern)) == 1


# What it is launched with


def test_a_container_is_as_asked_and_says_so(engine: Engine, sessions: OpenSession, tmp_path: Path) -> None:
    (tmp_path / "data set").mkdir()
    (tmp_path / "train.env").write_text("FROM_FILE=1 2\nTOKEN_IN_FILE=hush\n")
    wanted = spec(
        engine.load("small"),
        "sleep", "100",
        gpus="none",
        name="as-asked",
        volumes=(f"{tmp_path}/data set:/data:ro", "runs:/runs"),
        ports=("8888", "6006/tcp"),
        environment=("SECRET_KEY=hush", "EMPTY="),
        env_files=(str(tmp_path / "train.env"),),
        labels=("team=vision",),
        working_dir="/data",
        user="1000:1000",
        hostname="node-1",
        memory="256m",
        cpus="0.5",
        ulimits=("nofile=1024:2048",),
        restart="on-failure:2",
    )  # fmt: skip
    launched = launch(sessions(engine), wanted, ignore)
    assert launched.ending is None
    assert launched.container is not None
    assert launched.container.running
    made = inspected(engine, "as-asked")
    host, config = made["HostConfig"], made["Config"]
    assert {(m["Type"], m["Destination"], m["RW"]) for m in made["Mounts"]} == {
        ("bind", "/data", False), ("volume", "/runs", True),
    }  # fmt: skip
    assert {binding[0]["HostIp"] for binding in host["PortBindings"].values()} == {"127.0.0.1"}
    assert all(port.host_port for port in launched.container.ports)
    assert {"SECRET_KEY=hush", "EMPTY=", "FROM_FILE=1 2", "TOKEN_IN_FILE=hush"} <= set(config["Env"])
    assert (config["User"], config["WorkingDir"], config["Hostname"]) == ("1000:1000", "/data", "node-1")
    assert (host["Memory"], host["NanoCpus"], host["ShmSize"]) == (256 << 20, 5 * 10**8, 128 << 20)
    assert host["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 2}
    assert host["Init"] is True
    assert config["Labels"]["team"] == "vision"
    assert config["Labels"][labels.GPUS] == "none"
    assert config["Labels"][labels.IMAGE] == wanted.image
    assert json.loads(config["Labels"][labels.SPEC])["env"] == ["FROM_FILE", "TOKEN_IN_FILE", "SECRET_KEY", "EMPTY"]
    assert "hush" not in json.dumps(config["Labels"])


def test_a_mount_over_the_engines_init_goes_without_it(engine: Engine, sessions: OpenSession, tmp_path: Path) -> None:
    """As when the host's /usr is mounted into an image whose /sbin is a link into it."""
    session = sessions(engine)
    asked = spec(engine.load("small"), "sleep", "1000", volumes=(f"{tmp_path}:/sbin:ro",))
    launched = launch(session, asked, lambda step: None)
    assert launched.ending is None
    assert any("init" in note for note in launched.plan.notes)
    request = replace(plan_launch(session, asked).request, init=True, name="hidden-init")
    with pytest.raises(Conflict, match="hides /sbin") as caught:
        session.engine.start(session.engine.create(request))
    assert "--no-init" in caught.value.hint


def test_a_shell_stays_and_a_short_command_tells_how_it_ended(engine: Engine, sessions: OpenSession) -> None:
    image = engine.load("small")
    shell = launch(sessions(engine), spec(image, gpus="none"), ignore)
    assert shell.ending is None
    assert inspected(engine, shell.name)["State"]["Running"]
    failed = launch(sessions(engine), spec(image, "sh", "-c", "echo first; echo last >&2; exit 3", gpus="none"), ignore)
    assert failed.ending is not None
    assert failed.ending.exit_code == 3
    assert set(failed.ending.last_lines) == {"first", "last"}
    gone = launch(sessions(engine), spec(image, "sh", "-c", "exit 4", gpus="none", auto_remove=True), ignore)
    assert gone.ending is not None
    assert gone.ending.exit_code == 4
    assert sorted((shell.name, failed.name)) == names(engine)


def test_hostile_last_lines_are_harmless(engine_modern: Engine, sessions: OpenSession) -> None:
    command = r"printf '\033]0;owned\007\033[2J[red]x\n\377\376 last \342\200\256evil'; exit 1"
    wanted = spec(engine_modern.load("small"), "sh", "-c", command, gpus="none")
    launched = launch(sessions(engine_modern), wanted, ignore)
    assert launched.ending is not None
    assert launched.ending.last_lines == ("[red]x", "\ufffd\ufffd last evil")


@pytest.mark.parametrize("auto_remove", [False, True])
def test_following_gives_all_output_and_the_exit_code(engine: Engine, sessions: OpenSession, auto_remove: bool) -> None:
    command = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo err >&2; exit 42"
    wanted = spec(engine.load("small"), "sh", "-c", command, gpus="none", auto_remove=auto_remove)
    launched, output = followed(sessions(engine), wanted)
    assert launched.ending is not None
    assert launched.ending.exit_code == 42
    assert output.text["stdout"].splitlines() == [f"line {number}" for number in range(3000)]
    assert output.text["stderr"] == "err\n"
    assert names(engine) == ([] if auto_remove else [launched.name])


# What is in the way


def test_a_failed_start_leaves_no_container_and_no_volume(engine: Engine, sessions: OpenSession) -> None:
    engine.docker("volume", "create", "kept")
    wanted = spec(
        engine.load("small"), "/no/such/program", gpus="none", init=False, volumes=("fresh:/a", "kept:/b", "/tmp:/c")
    )
    with pytest.raises(ConsoleError) as caught:
        launch(sessions(engine), wanted, ignore)
    assert "/no/such/program" in caught.value.message
    assert caught.value.hint
    assert names(engine) == []
    assert volumes(engine) == ["kept"]


@pytest.mark.usefixtures("two_gpus")
def test_a_hook_that_fails_leaves_nothing(
    engine_old: Engine, sessions: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine_old.toolkit is not None
    monkeypatch.setenv("PATH", f"{engine_old.toolkit.programs}:{os.environ['PATH']}")
    engine_old.toolkit.fail_with("initialization error: nvml error: driver not loaded")
    with pytest.raises(ConsoleError) as caught:
        launch(sessions(engine_old), spec(engine_old.load("small"), gpus="1", volumes=("fresh:/a",)), ignore)
    assert "driver not loaded" in caught.value.message
    assert names(engine_old) == []
    assert volumes(engine_old) == []


@pytest.mark.usefixtures("two_gpus")
def test_a_cdi_device_that_vanished_leaves_nothing(engine_modern: Engine, sessions: OpenSession) -> None:
    def lose_them(step: LaunchStep) -> None:
        if step.phase is Phase.CREATE:
            engine_modern.set_gpus(())

    with pytest.raises(GpuNotFound):
        launch(sessions(engine_modern), spec(engine_modern.load("small"), gpus="1", volumes=("fresh:/a",)), lose_them)
    assert names(engine_modern) == []
    assert volumes(engine_modern) == []


def test_a_taken_name_is_refused_and_its_holder_left_alone(engine: Engine, sessions: OpenSession) -> None:
    image = engine.load("small")
    first = launch(sessions(engine), spec(image, "sleep", "100", name="mine", gpus="none"), ignore)
    with pytest.raises(Conflict) as caught:
        launch(sessions(engine), spec(image, name="mine", gpus="none", volumes=("fresh:/a",)), ignore)
    assert "mine is taken" in caught.value.message
    assert "attach mine" in caught.value.hint
    assert inspected(engine, "mine")["Id"] == first.id
    assert inspected(engine, "mine")["State"]["Running"]
    assert volumes(engine) == []


def test_a_name_taken_after_the_look_leaves_its_holder_alone(engine: Engine, sessions: OpenSession) -> None:
    image = engine.load("small")

    def take_it(step: LaunchStep) -> None:
        if step.phase is Phase.CREATE:
            engine.docker("create", "--name", "mine", image)

    with pytest.raises(Conflict):
        launch(sessions(engine), spec(image, name="mine", gpus="none"), take_it)
    assert names(engine) == ["mine"]
    assert labels.VERSION not in (inspected(engine, "mine")["Config"]["Labels"] or {})


def test_a_name_of_ours_that_is_taken_is_made_anew(
    engine_modern: Engine, sessions: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = engine_modern.load("small")
    engine_modern.docker("create", "--name", "taken", image)
    monkeypatch.setattr("gpuconsole.services.planning.name_for", lambda _: "taken")
    fresh = iter(("taken", "free"))
    monkeypatch.setattr(launching, "name_for", lambda _: next(fresh))
    launched = launch(sessions(engine_modern), spec(image, gpus="none"), ignore)
    assert launched.name == "free"
    assert names(engine_modern) == ["free", "taken"]
    assert "--name free" in str(launched.plan.docker_run())


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_a_port_that_a_process_has_is_refused_with_its_name(engine: Engine, sessions: OpenSession) -> None:
    image = engine.load("small")
    with listening() as server:
        port = server.getsockname()[1]
        with pytest.raises(Conflict) as caught:
            launch(sessions(engine), spec(image, gpus="none", ports=(f"{port}:80",)), ignore)
    assert f"Port {port} of 127.0.0.1 is taken by" in caught.value.message
    assert f"(pid {os.getpid()})" in caught.value.message
    assert ":80" in caught.value.hint
    assert names(engine) == []


def test_a_port_taken_after_the_look_leaves_nothing(engine: Engine, sessions: OpenSession) -> None:
    image = engine.load("small")
    with listening() as reserved:
        port = reserved.getsockname()[1]
    servers: list[socket.socket] = []

    def take_it(step: LaunchStep) -> None:
        if step.phase is Phase.START:
            servers.append(socket.create_server(("127.0.0.1", port)))

    try:
        with pytest.raises(Conflict) as caught:
            launch(sessions(engine), spec(image, gpus="none", ports=(f"{port}:80",), volumes=("fresh:/a",)), take_it)
    finally:
        for server in servers:
            server.close()
    assert f"Port {port} of 127.0.0.1 is taken by" in caught.value.message
    assert names(engine) == []
    assert volumes(engine) == []


def test_a_port_that_a_container_has_is_refused_with_its_name(engine: Engine, sessions: OpenSession) -> None:
    image = engine.load("small")
    first = launch(sessions(engine), spec(image, "sleep", "100", gpus="none", name="holder", ports=("80",)), ignore)
    assert first.container is not None
    port = first.container.ports[0].host_port
    with pytest.raises(Conflict) as caught:
        launch(sessions(engine), spec(image, gpus="none", ports=(f"{port}:80",)), ignore)
    assert "taken by the container holder" in caught.value.message
    assert names(engine) == ["holder"]


# Images


@pytest.mark.engine(*KINDS)  # images are what the stores differ in
def test_an_image_is_pulled_when_it_is_not_here(engine: Engine, sessions: OpenSession, registry: Registry) -> None:
    reference = pushed(registry, engine)
    with pytest.raises(NotFound) as caught:
        launch(sessions(engine), spec(reference, gpus="none", pull="never"), ignore)
    assert "--pull never" in caught.value.message
    steps: list[LaunchStep] = []
    launched = launch(sessions(engine), spec(reference, "sleep", "100", gpus="none"), steps.append)
    assert launched.container is not None
    assert launched.container.running
    pulls = [step.pull for step in steps if step.pull is not None]
    assert pulls[-1].layers >= 1
    assert pulls[-1].layers_downloaded == pulls[-1].layers
    assert [step.phase for step in steps if step.pull is None] == [Phase.PLAN, Phase.CREATE, Phase.START, Phase.WATCH]


@pytest.mark.engine(*KINDS)  # images are what the stores differ in
def test_an_image_that_does_not_exist_leaves_nothing(engine: Engine, sessions: OpenSession, registry: Registry) -> None:
    with pytest.raises(NotFound):
        launch(sessions(engine), spec(f"{registry.address}/no/such:1", gpus="none", volumes=("fresh:/a",)), ignore)
    with pytest.raises(NotFound):
        launch(sessions(engine), spec("sha256:" + "0" * 64, gpus="none"), ignore)
    assert names(engine) == []
    assert volumes(engine) == []


# Interrupts


@pytest.mark.parametrize("phase", [Phase.PLAN, Phase.CREATE, Phase.START, Phase.WATCH])
def test_stopped_in_any_phase_nothing_is_left(engine: Engine, sessions: OpenSession, phase: Phase) -> None:
    image = engine.load("small")
    cancel = Cancellation()

    def stop(step: LaunchStep) -> None:
        if step.phase is phase:
            cancel.request()

    with pytest.raises(Cancelled) as caught:
        launch(sessions(engine), spec(image, "sleep", "100", gpus="none", volumes=("fresh:/a",)), stop, cancel=cancel)
    assert "nothing was launched" in caught.value.message
    assert names(engine) == []
    assert volumes(engine) == []


@pytest.mark.parametrize("phase", [Phase.CREATE, Phase.START])
def test_stopped_while_the_engine_hangs_nothing_is_left_when_it_goes_on(
    engine: Engine, sessions: OpenSession, phase: Phase
) -> None:
    image = engine.load("small")
    cancel = Cancellation()
    thaws: list[threading.Timer] = []

    def hang(step: LaunchStep) -> None:
        if step.phase is phase and not thaws:
            engine.freeze()
            cancel.request()
            thaws.append(threading.Timer(1, engine.thaw))
            thaws[0].start()

    with pytest.raises(Cancelled) as caught:
        launch(sessions(engine), spec(image, "sleep", "100", gpus="none", volumes=("fresh:/a",)), hang, cancel=cancel)
    thaws[0].join()
    assert "nothing was launched" in caught.value.message
    assert names(engine) == []
    assert volumes(engine) == []


@pytest.mark.engine(*KINDS)  # images are what the stores differ in
def test_stopped_while_pulling_the_pull_ends(engine: Engine, sessions: OpenSession, registry: Registry) -> None:
    slow = registry.over_the_line(pushed(registry, engine))
    registry.line.limit(bytes_per_second=20_000)
    cancel = Cancellation()

    def stop(step: LaunchStep) -> None:
        if step.pull is not None and step.pull.layers:
            cancel.request()

    with pytest.raises(Cancelled) as caught:
        launch(sessions(engine), spec(slow, gpus="none"), stop, cancel=cancel)
    assert "while pulling" in caught.value.message
    assert names(engine) == []
    assert slow not in engine.images()


def test_stopped_while_following_the_container_goes_on(engine: Engine, sessions: OpenSession) -> None:
    cancel = Cancellation()

    def stop(_: str, data: bytes) -> None:
        cancel.request()

    wanted = spec(engine.load("small"), "sh", "-c", "echo begun; sleep 100", gpus="none", name="long")
    with pytest.raises(Cancelled) as caught:
        launch(sessions(engine), wanted, ignore, cancel=cancel, on_output=stop)
    assert "long goes on" in caught.value.message
    assert inspected(engine, "long")["State"]["Running"]


# The line that does the same


def normalised(container: dict[str, Any]) -> dict[str, Any]:
    """What makes two containers the same; left out are our labels, ids, times and what follows from the name."""
    config, host = container["Config"], container["HostConfig"]
    kept = ("Image", "Cmd", "Entrypoint", "User", "WorkingDir", "Tty", "OpenStdin", "ExposedPorts")
    limits = (
        "PortBindings", "ShmSize", "IpcMode", "Memory", "NanoCpus", "AutoRemove", "Init", "Runtime",
        "Privileged", "CapAdd", "SecurityOpt", "Devices", "Binds", "VolumesFrom", "PidMode", "NetworkMode",
    )  # fmt: skip
    requests = [
        (
            "cdi" if request["Driver"] == "cdi" else "gpu",
            request["Count"],
            tuple(request["DeviceIDs"] or ()),
            tuple(map(tuple, request["Capabilities"] or ())) if request["Driver"] != "cdi" else (),
        )
        for request in host.get("DeviceRequests") or ()
    ]
    default_hostname = container["Id"].startswith(config["Hostname"])
    return {
        **{key: config.get(key) or None for key in kept},
        **{key: host.get(key) or None for key in limits},
        "RestartPolicy": host["RestartPolicy"] | {"Name": host["RestartPolicy"]["Name"] or "no"},
        "NetworkMode": "default" if host["NetworkMode"] in ("default", "bridge") else host["NetworkMode"],
        "Env": sorted(config["Env"]),
        "Labels": {k: v for k, v in (config["Labels"] or {}).items() if not k.startswith(labels.PREFIX)},
        "Hostname": None if default_hostname else config["Hostname"],
        "Ulimits": sorted((u["Name"], u["Soft"], u["Hard"]) for u in host["Ulimits"] or ()),
        "Mounts": sorted(
            (m["Type"], m.get("Name") or m["Source"], m["Destination"], m["RW"]) for m in container["Mounts"]
        ),
        "DeviceRequests": requests,
    }


HARD = 'it\'s "quoted" $HOME `x` \\ \n\ttwo lines; * é 漢 \x1b[31m'


def options_for(image: str, folder: Path) -> dict[str, LaunchOptions]:
    (folder / "a,b c").mkdir(exist_ok=True)
    (folder / "train.env").write_text("FROM_FILE=x y\nOVER=file\n")
    return {
        "plain": LaunchOptions(image),
        "gpu": LaunchOptions(image, command=("sleep", "60"), gpus="device=1"),
        "two": LaunchOptions(image, command=("sleep", "60"), gpus="all"),
        "hard": LaunchOptions(
            image,
            command=("sh", "-c", "sleep 60", HARD, "", "-x"),
            gpus="none",
            volumes=(f"{folder}/a,b c:/data set:ro", "runs:/runs"),
            ports=("127.0.0.1::80", "8080/udp"),
            environment=(f"HARD={HARD}", "EMPTY=", "HOME"),
            labels=(f"note={HARD}", "flag"),
            working_dir="/work dir",
            user="1000:1000",
            hostname="node-1",
            shm_size="1000001",
            memory="300m",
            cpus="0.25",
            ulimits=("core=0", "nofile=100:200"),
            restart="on-failure:3",
            ipc="shareable",
        ),
        "files": LaunchOptions(
            image,
            command=("60",),
            entrypoint="sleep",
            gpus="none",
            env_files=(str(folder / "train.env"),),
            auto_remove=True,
            init=False,
            interactive=True,
            network="none",
        ),
        "emptied": LaunchOptions(image, command=("sleep", "60"), entrypoint="", gpus="none", ipc="host"),
    }


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("case", ["plain", "gpu", "two", "hard", "files", "emptied"])
def test_the_printed_line_makes_what_launch_makes(
    engine: Engine, case: str, sessions: OpenSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine.toolkit is not None:
        monkeypatch.setenv("PATH", f"{engine.toolkit.programs}:{os.environ['PATH']}")
    wanted = read_options(options_for(engine.load("small"), tmp_path)[case], Surroundings.current())
    wanted = replace(wanted, name="same")
    session = sessions(engine)
    plan = plan_launch(session, wanted)
    line = str(plan.docker_run())
    assert line.isprintable()
    launched = launch(session, wanted, ignore)
    assert launched.ending is None, launched.ending
    ours = normalised(inspected(engine, "same"))
    engine.docker("rm", "--force", "--volumes", "same")
    done = subprocess.run(["bash", "-c", line], env={**os.environ, **engine.env()}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert normalised(inspected(engine, "same")) == ours

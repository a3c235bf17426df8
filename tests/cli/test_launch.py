"""``gpuconsole launch`` as people run it: what it prints where, its exit codes, and signals in every phase."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuconsole.cli.main import main
from gpuconsole.core.errors import ExitCode
from tests.rig.engines import Engine
from tests.rig.fixtures import Bench
from tests.rig.gpus import TWO_GPUS
from tests.rig.nvml.presets import h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState
from tests.rig.registry import Registry

COMMAND = [sys.executable, "-m", "gpuconsole"]


@pytest.fixture
def registry(rig_bench: Bench) -> Iterator[Registry]:
    registry = Registry(rig_bench.rig)
    yield registry
    registry.close()


def environment(engine: Engine) -> dict[str, str]:
    return {**os.environ, "DOCKER_HOST": engine.host, "PYTHONUNBUFFERED": "1"}


def run(engine: Engine, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(engine) | (env or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


class Running:
    """A launch under way, its words on stderr read as they come."""

    def __init__(self, *arguments: str, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.said: list[str] = []

    def wait_for(self, text: str) -> None:
        """Read stderr until a line has ``text`` in it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if text in line:
                return
        pytest.fail(f"{text!r} was not said, but {self.said}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Exit code, stdout, and all of stderr."""
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, "".join(self.said) + err


def names(engine: Engine) -> list[str]:
    return sorted(one["Names"][0].removeprefix("/") for one in engine.get("/containers/json?all=1"))


# What is written wrongly


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((), ExitCode.USAGE, "Missing argument 'PROFILE|IMAGE'"),
        (("small", "python", "x.py"), ExitCode.USAGE, "Write -- between PROFILE or IMAGE"),
        (("small", "python", "-c", "1"), ExitCode.USAGE, "go after --"),
        (("small", "-d", "--wait"), ExitCode.USAGE, "exclude each other"),
        (("small", "-p", "x", "--gpus", "two"), ExitCode.USAGE, "2 options cannot be used"),
        (("small", "-v", "/no/such/folder:/x"), ExitCode.NOT_FOUND, "/no/such/folder is not there"),
        (("small", "--env-file", "/no/such.env"), ExitCode.NOT_FOUND, "/no/such.env is not there"),
        (("small", "--env-file", "/bin/sh"), ExitCode.BAD_FILE, "--env-file: /bin/sh"),
        (("small", "--env-file", "/dev/zero"), ExitCode.BAD_FILE, "above 4 MiB"),
        (("small", "--env-file", "/bin/sh", "--cpus", "x"), ExitCode.USAGE, "2 options cannot be used"),
        (("small", "--entrypoint", ""), ExitCode.USAGE, "give a command after --"),
        (("small", "--memory", "9" * 400), ExitCode.USAGE, "--memory: '9999"),
        (("small", "-e", "A\udcff=1"), ExitCode.USAGE, "no UTF-8 text"),
        (("small",), ExitCode.NO_ENGINE, "engine"),
    ],
)
def test_what_cannot_be_launched_says_why_before_an_engine_is_asked(
    arguments: tuple[str, ...], code: ExitCode, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--host", f"unix://{tmp_path}/none.sock", "launch", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert "Traceback" not in err


def test_readonly_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--host", f"unix://{tmp_path}/none.sock", "--readonly", "launch", "small"]) == ExitCode.REFUSED
    assert "--readonly" in capsys.readouterr().err


# What is printed


@pytest.mark.engine
def test_stdout_is_the_name_and_stderr_tells_how_to_go_on(engine: Engine) -> None:
    image = engine.load("small")
    done = run(engine, "launch", image, "--name", "box", "-p", "8888", "--gpus", "none")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "box\n"
    assert "box runs." in done.stderr
    assert "leads to its port 8888/tcp" in done.stderr
    assert "gpuconsole attach box" in done.stderr
    taken = run(engine, "launch", image, "--name", "box", "--gpus", "none")
    assert taken.returncode == ExitCode.CONFLICT
    assert taken.stdout == ""


@pytest.mark.engine
def test_a_named_volume_that_looks_like_a_folder_and_a_public_port_are_noted(
    engine_modern: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    image = engine_modern.load("small")
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    launch = ["--host", engine_modern.host, "launch", image, "--dry-run", "--gpus", "none"]
    assert main([*launch, "-v", "data:/data", "-p", "0.0.0.0:8080:80"]) == 0
    out, err = capsys.readouterr()
    assert "type=volume,source=data" in out
    assert "written ./data" in err
    assert "Port 8080 is open to the network" in err
    assert main([*launch, "-v", "./data:/data", "-p", "8080:80"]) == 0
    assert "Note:" not in capsys.readouterr().err


@pytest.mark.engine
def test_image_names_are_completed(engine_modern: Engine) -> None:
    image = engine_modern.load("small")
    asked = {"_GPUCONSOLE_COMPLETE": "zsh_complete", "COMP_WORDS": "gpuconsole launch gpuc", "COMP_CWORD": "2"}
    env = environment(engine_modern) | asked
    code = "from gpuconsole.cli.commands import cli; cli(prog_name='gpuconsole')"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert image in done.stdout


@pytest.mark.engine
def test_the_json_document_has_no_secret(engine: Engine) -> None:
    image = engine.load("small")
    arguments = ("--gpus", "none", "-e", "API_KEY=hush", "-p", "80", "--", "sleep", "100")
    done = run(engine, "launch", image, "--json", *arguments)
    document = json.loads(done.stdout)
    assert document["schema"] == "gpuconsole.launch/1"
    assert document["command"].startswith("docker run --detach --name ")
    container = document["container"]
    assert (container["state"], container["gpus"], container["exit_code"]) == ("running", [], None)
    assert container["ports"][0]["host_ip"] == "127.0.0.1"
    assert container["name"] in names(engine)
    assert "hush" not in done.stdout + done.stderr


@pytest.mark.engine
def test_a_container_that_ends_at_once_is_told_with_its_last_lines(engine: Engine) -> None:
    image = engine.load("small")
    failed = run(engine, "launch", image, "--gpus", "none", "--", "sh", "-c", "echo the reason; exit 139")
    assert failed.returncode == ExitCode.FAILED
    assert failed.stdout.strip() in names(engine)
    assert "exit code 139: it crashed (SIGSEGV)" in failed.stderr
    assert "| the reason" in failed.stderr
    well = run(engine, "launch", image, "--gpus", "none", "--", "true")
    assert well.returncode == 0
    assert "exit code 0" in well.stderr


@pytest.mark.engine
def test_waiting_passes_on_output_and_exit_code(engine: Engine) -> None:
    image = engine.load("small")
    command = ("sh", "-c", r"echo out; printf 'bad \033[2J\n' >&2; printf unfinished; exit 42")
    done = run(engine, "launch", image, "--gpus", "none", "--rm", "--wait", "--", *command)
    assert done.returncode == 42
    assert done.stdout == "out\nunfinished\n"
    assert "bad \n" in done.stderr
    assert "\x1b" not in done.stderr
    assert names(engine) == []
    as_json = run(engine, "launch", image, "--gpus", "none", "--wait", "--json", "--", *command)
    assert as_json.returncode == 42
    assert json.loads(as_json.stdout)["container"]["exit_code"] == 42
    assert "out\n" in as_json.stderr


@pytest.mark.engine
def test_a_dry_run_prints_one_line_and_makes_nothing(engine_modern: Engine, nvml_box: NvmlBox) -> None:
    nvml_box.write(NvmlState(gpus=tuple(h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)))
    image = engine_modern.load("small")
    arguments = ("launch", image, "--dry-run", "--name", "box", "--gpus", "device=1", "--", "sleep", "60")
    done = run(engine_modern, "--readonly", *arguments, env=nvml_box.env())
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"docker run --detach --name box --init --device nvidia.com/gpu={TWO_GPUS[1].uuid} ")
    assert line.endswith(f"{engine_modern.images()[image]} sleep 60")
    assert f"{image} is known on this machine only" in done.stderr
    assert "GPU 1 (NVIDIA H200), as asked." in done.stderr
    assert "docker client 25.0 or newer" in done.stderr
    assert names(engine_modern) == []
    document = json.loads(run(engine_modern, "launch", "--json", *arguments[1:], env=nvml_box.env()).stdout)
    second = {"index": "1", "uuid": TWO_GPUS[1].uuid, "name": "NVIDIA H200", "given_to": []}
    (found,) = document.pop("findings")
    assert (found["slug"], found["severity"], found["field"]) == ("nothing-mounted", "warn", "--volume")
    assert found["change"] == {"option": "volumes", "value": ".:/workspace", "add": True, "instead": ""}
    assert document == {
        "schema": "gpuconsole.launch/1", "container": None, "command": line, "gpus": [second],
        "notes": [f"{found['sentence']} {found['fix']}"],
    }  # fmt: skip


@pytest.mark.engine
def test_what_is_dangerous_is_refused_until_it_is_forced(engine_modern: Engine) -> None:
    image = engine_modern.load("small")
    arguments = ("launch", image, "--gpus", "none", "-v", "/etc:/host-etc", "--name", "box")
    refused = run(engine_modern, *arguments, "--", "sleep", "60")
    assert refused.returncode == 7, refused.stderr
    assert "/etc would let the container change files of the system." in refused.stderr
    assert "--force dangerous-mount" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert names(engine_modern) == []
    told = run(engine_modern, *arguments, "--dry-run", "--", "sleep", "60")
    assert told.returncode == 0
    assert "It would be refused: /etc would let" in told.stderr
    forced = run(engine_modern, *arguments, "--force", "dangerous-mount", "--", "sleep", "60")
    assert forced.returncode == 0, forced.stderr
    assert "Note: /etc would let the container change" in forced.stderr
    assert names(engine_modern) == ["box"]
    again = run(engine_modern, *arguments, "--dry-run", "--privileged", "--", "sleep", "60")
    assert again.stderr.count("The name box is taken by a container") == 1
    assert again.stderr.count("A privileged container has every device") == 1
    assert run(engine_modern, *arguments, "--", "sleep", "60").returncode == 6, "what is in the way comes first"
    unknown = run(engine_modern, *arguments, "--force", "everything")
    assert unknown.returncode == 2
    assert "dangerous-mount" in unknown.stderr


@pytest.mark.engine
def test_who_was_given_the_chosen_gpu_is_said_before_anything_is_made(engine_modern: Engine, nvml_box: NvmlBox) -> None:
    nvml_box.write(NvmlState(gpus=tuple(h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)))
    image = engine_modern.load("small")
    held = run(
        engine_modern, "launch", image, "--gpus", "all", "--name", "held", "--", "sleep", "600", env=nvml_box.env()
    )
    assert held.returncode == 0, held.stderr
    done = run(engine_modern, "launch", image, "--dry-run", "--json", "--gpus", "1", env=nvml_box.env())
    assert done.returncode == 0, done.stderr
    note = "GPU 0 (NVIDIA H200) was given to container held of "
    assert f"Note: {note}" in done.stderr
    document = json.loads(done.stdout)
    assert document["notes"][0].startswith(note)
    assert [claim["container"] for claim in document["gpus"][0]["given_to"]] == ["held"]


@pytest.mark.engine
def test_absent_gpus_are_an_error_and_unasked_ones_a_note(engine_modern: Engine, nvml_box: NvmlBox) -> None:
    nvml_box.write(NvmlState(gpus=tuple(h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)))
    image = engine_modern.load("small")
    many = run(engine_modern, "launch", image, "--gpus", "3", env=nvml_box.env())
    assert many.returncode == ExitCode.NO_GPU
    assert TWO_GPUS[0].uuid in many.stderr
    one = run(engine_modern, "launch", image, "--", "sleep", "60", env=nvml_box.env())
    assert one.returncode == 0, one.stderr
    assert "By CDI" in one.stderr
    nvml_box.write(init=9)
    none = run(engine_modern, "launch", image, "--gpus", "all", env=nvml_box.env())
    assert none.returncode == ExitCode.NO_GPU
    unasked = run(engine_modern, "launch", image, env=nvml_box.env())
    assert unasked.returncode == 0
    assert "Note: No GPU can be given" in unasked.stderr


@pytest.mark.engine
def test_an_engine_elsewhere_gets_no_gpu_of_this_machine(
    engine_modern: Engine, nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The engine of the rig, taken for one of another machine."""
    nvml.write(NvmlState(gpus=tuple(h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)))
    monkeypatch.setattr("gpuconsole.engine.docker.info.is_local", lambda *_: False)
    image = engine_modern.load("small")
    launch = ["--host", engine_modern.host, "launch", image, "--dry-run"]
    assert main([*launch, "--gpus", "1"]) == ExitCode.REFUSED
    assert "--force engine-not-local" in capsys.readouterr().err
    assert main(launch) == 0
    out, err = capsys.readouterr()
    assert "gpu" not in out.replace("gpuconsole", "")
    assert "it gets none" in err
    assert main([*launch, "--gpus", "1", "--gpu-path", "hook", "--force", "engine-not-local"]) == 0
    assert f"--gpus '\"device={TWO_GPUS[0].uuid}\"'" in capsys.readouterr().out


# Signals


@pytest.mark.engine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_pulling_leaves_nothing(
    engine_modern: Engine, registry: Registry, number: signal.Signals
) -> None:
    local = engine_modern.load("layers")
    reference = registry.over_the_line(registry.push(engine_modern, local, name="team/layers:1"))
    engine_modern.docker("rmi", "--force", local)
    registry.line.limit(bytes_per_second=20_000)
    launch = Running("launch", reference, "--gpus", "none", env=environment(engine_modern))
    launch.wait_for("Pulling")
    launch.signal(number)
    code, out, err = launch.end()
    assert (code, out) == (ExitCode.INTERRUPTED, "")
    assert "Interrupted while pulling" in err
    assert "nothing was launched" in err
    assert names(engine_modern) == []
    assert reference not in engine_modern.images()


@pytest.mark.engine
def test_a_signal_while_pulling_through_a_hanging_engine_is_obeyed(engine_modern: Engine, registry: Registry) -> None:
    local = engine_modern.load("layers")
    reference = registry.over_the_line(registry.push(engine_modern, local, name="team/layers:1"))
    engine_modern.docker("rmi", "--force", local)
    registry.line.limit(bytes_per_second=20_000)
    launch = Running("launch", reference, "--gpus", "none", env=environment(engine_modern))
    launch.wait_for("Pulling")
    engine_modern.freeze()
    launch.signal(signal.SIGINT)
    code, _, err = launch.end()
    engine_modern.thaw()
    assert code == ExitCode.INTERRUPTED
    assert "nothing was launched" in err
    assert names(engine_modern) == []


def test_a_second_signal_leaves_a_hanging_engine_at_once(tmp_path: Path) -> None:
    """An engine that takes connections and never answers."""
    path = tmp_path / "hung.sock"
    connected = threading.Event()
    held: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def take() -> None:
            held.append(server.accept()[0])
            connected.set()

        threading.Thread(target=take, daemon=True).start()
        launch = Running("--host", f"unix://{path}", "launch", "small:1", "--gpus", "none", env=dict(os.environ))
        assert connected.wait(60)
        launch.signal(signal.SIGINT)
        launch.wait_for("taking back what was begun")
        launch.signal(signal.SIGINT)
        code, out, err = launch.end()
        held[0].close()
    assert (code, out) == (ExitCode.INTERRUPTED, "")
    assert "Left at once: nothing was launched" in err


@pytest.mark.engine
def test_ctrl_c_while_following_leaves_the_container_running(engine_modern: Engine) -> None:
    image = engine_modern.load("small")
    command = ("sh", "-c", "echo begun >&2; sleep 100")
    arguments = ("launch", image, "--gpus", "none", "--name", "long", "--wait", "--", *command)
    launch = Running(*arguments, env=environment(engine_modern))
    launch.wait_for("begun")
    launch.signal(signal.SIGINT)
    code, _, err = launch.end()
    assert code == ExitCode.INTERRUPTED
    assert "long goes on" in err
    assert "gpuconsole stop long" in err
    assert engine_modern.get("/containers/long/json")["State"]["Running"]


@pytest.mark.engine
def test_what_the_caller_ignores_stays_ignored(engine_modern: Engine) -> None:
    """As under nohup: the terminal goes, the launch goes on."""
    image = engine_modern.load("small")
    command = ("sh", "-c", "echo begun >&2; sleep 2; exit 5")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        launch = Running("launch", image, "--gpus", "none", "--wait", "--", *command, env=environment(engine_modern))
    finally:
        signal.signal(signal.SIGHUP, before)
    launch.wait_for("begun")
    launch.signal(signal.SIGHUP)
    assert launch.end()[0] == 5


@pytest.mark.engine
def test_ctrl_c_while_following_keeps_the_line_that_was_begun(engine_modern: Engine) -> None:
    image = engine_modern.load("small")
    command = ("sh", "-c", r"printf 'first\nunfinished'; sleep 1000")
    launch = Running("launch", image, "--gpus", "none", "--wait", "--", *command, env=environment(engine_modern))
    assert launch.process.stdout is not None
    assert launch.process.stdout.readline() == "first\n"
    launch.signal(signal.SIGINT)
    code, out, _ = launch.end()
    assert (code, out) == (ExitCode.INTERRUPTED, "unfinished\n")


@pytest.mark.engine
def test_a_command_that_the_image_lacks_has_one_exit_code(engine: Engine) -> None:
    image = engine.load("small")
    for options in (["--init"], ["--no-init"], ["--wait"], ["--no-init", "--wait"], ["--rm"], ["--rm", "--wait"]):
        done = run(engine, "launch", image, "--gpus", "none", *options, "--", "no-such-program")
        assert done.returncode == ExitCode.NOT_FOUND, (options, done.stderr)
        assert done.stdout == ""
        assert "There is no program no-such-program in the container" in done.stderr
    assert names(engine) == []


@pytest.mark.engine
def test_a_container_that_is_restarted_again_and_again_is_told_as_such(engine: Engine) -> None:
    image = engine.load("small")
    again = run(engine, "launch", image, "--gpus", "none", "--restart", "always", "--json", "--", "sh", "-c", "exit 4")
    assert again.returncode == ExitCode.FAILED
    assert "is started again each time (--restart always); the last time exit code 4" in again.stderr
    assert "It goes on so" in again.stderr
    assert "has ended already," not in again.stderr
    container = json.loads(again.stdout)["container"]
    assert container["restarts"] >= 1
    assert container["exit_code"] == 4
    assert container["state"] in ("restarting", "running")
    waited = run(engine, "launch", image, "--gpus", "none", "--restart", "always", "--wait", "--", "sh", "-c", "exit 4")
    assert waited.returncode == 4
    assert "is started again each time" in waited.stderr
    assert "gpuconsole stop" in waited.stderr

"""The rig keeps its promises: real engines, GPUs that are handed out, and nothing left afterwards."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig import sweep, unixhttp
from tests.rig.client import EngineClient
from tests.rig.engines import Engine, start_engine
from tests.rig.gpus import TWO_GPUS, RigGpu
from tests.rig.network import bridges_of, interfaces
from tests.rig.owner import Rig, wait_until
from tests.rig.places import MARK, PROJECT, RIGS
from tests.rig.registry import Registry
from tests.rig.ssh import SshServer
from tests.rig.tmux import Tmux

pytestmark = pytest.mark.engine
NO_DRIVER = 'could not select device driver "" with capabilities: [[gpu]]'
TRAINING = """
import os, torch, torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(32.0).unsqueeze(1), torch.arange(32.0).unsqueeze(1) * 2)
model = torch.nn.Linear(1, 1)
losses = []
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=8, num_workers=2):
        model.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 1e-4 * weight.grad
        losses.append(loss.item())  # four batches an epoch
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29555", RANK="0", WORLD_SIZE="1")
dist.init_process_group("gloo")
total = torch.ones(2)
dist.all_reduce(total)
print("cuda", torch.cuda.is_available(), "learned", sum(losses[-4:]) < sum(losses[:4]), "reduced", total.tolist())
"""


def gpu_nodes(engine: EngineClient, *arguments: str) -> set[str]:
    """Start a container and give the GPU nodes it has."""
    listed = engine.docker("run", "--rm", *arguments, engine.load("small"), "ls", "/dev").stdout
    return set(re.findall(r"^nvidia\d+$", listed, re.MULTILINE))


def test_an_engine_answers_and_runs_a_container(engine: Engine, small_image: str) -> None:
    assert engine.name.startswith(engine.version.rpartition(".")[0])
    done = engine.docker("run", "--rm", small_image, "echo", "hello")
    assert (done.stdout, done.stderr) == ("hello\n", "")


def test_a_port_is_published_on_loopback(engine: Engine, small_image: str) -> None:
    script = "mkdir /w; echo page > /w/index.html; exec httpd -f -p 8000 -h /w"
    engine.docker("run", "-d", "--name", "web", "-p", "127.0.0.1::8000", small_image, "sh", "-c", script)
    where = engine.docker("port", "web", "8000").stdout.strip()

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"http://{where}/", timeout=2) as page:
                return bool(page.read() == b"page\n")
        except OSError:
            return False

    assert where.startswith("127.0.0.1:")
    wait_until(answers, what="the page")


@pytest.mark.parametrize("kind", ["26.1", "26.1-containerd"])
def test_cdi_hands_out_the_chosen_gpu_and_no_other(kind: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue("engine_modern" if kind == "26.1" else "engine_containerd")
    assert gpu_nodes(engine) == set()
    assert gpu_nodes(engine, "--device", "nvidia.com/gpu=1") == {"nvidia1"}
    assert gpu_nodes(engine, "--device", f"nvidia.com/gpu={TWO_GPUS[0].uuid}") == {"nvidia0"}
    assert gpu_nodes(engine, "--device", "nvidia.com/gpu=all") == {"nvidia0", "nvidia1"}
    assert engine.docker("run", "--device", "nvidia.com/gpu=7", engine.load("small"), check=False).returncode


def test_gpus_come_and_go_while_the_engine_runs(engine_modern: Engine) -> None:
    engine_modern.set_gpus([RigGpu(index=0, uuid="GPU-late", minor=5)])
    wait_until(lambda: gpu_nodes(engine_modern, "--device", "nvidia.com/gpu=GPU-late") == {"nvidia5"}, what="the GPU")


@pytest.mark.parametrize("name", ["engine_old", "engine_toolkit"])
def test_the_toolkits_hook_notes_what_was_asked(name: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(name)
    uuid = TWO_GPUS[1].uuid
    before = len(engine.hook_calls())
    assert gpu_nodes(engine, "--gpus", f'"device={uuid}","capabilities=utility"') == {"nvidia1"}
    assert gpu_nodes(engine, "--gpus", "all") == {"nvidia0", "nvidia1"}
    assert gpu_nodes(engine, "--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=0") == {"nvidia0"}
    calls = engine.hook_calls()[before:]
    assert [call.visible_devices for call in calls] == [uuid, "all", "0"]
    assert [call.capabilities for call in calls] == ["utility", None, None]
    assert re.fullmatch("[0-9a-f]{64}", calls[0].container_id)


def test_the_hook_refuses_as_nvidias_does(engine_old: Engine) -> None:
    done = engine_old.docker("run", "--gpus", "device=9", engine_old.load("small"), check=False)
    assert "nvidia-container-cli: device error: 9: unknown device" in done.stderr
    assert engine_old.toolkit
    engine_old.toolkit.fail_with("initialization error: nvml error: driver not loaded")
    done = engine_old.docker("run", "--gpus", "1", engine_old.load("small"), check=False)
    assert "nvml error: driver not loaded" in done.stderr


@pytest.mark.parametrize("name", ["engine_without_gpus", "engine_modern", "engine_containerd"])
def test_without_the_toolkit_the_engine_knows_no_gpus(name: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(name)
    done = engine.docker("run", "--rm", "--gpus", "1", engine.load("small"), check=False)
    assert NO_DRIVER in done.stderr


@pytest.mark.slow
def test_torch_trains_in_the_image(engine: Engine, torch_image: str) -> None:
    done = engine.docker("run", "--rm", "-i", "--network", "none", torch_image, "python", "-", stdin=TRAINING)
    assert done.stdout == "cuda False learned True reduced [1.0, 1.0]\n"
    environment = engine.docker("run", "--rm", torch_image, "env").stdout
    assert re.search(r"^PYTORCH_VERSION=\d+\.\d+\.\d+$", environment, re.MULTILINE)
    assert "CUDA_VERSION" not in environment
    tools = "sh bash ls cat sleep id env kill tar torchrun python python3"
    assert len(engine.docker("run", "--rm", torch_image, "which", *tools.split()).stdout.split()) == 12


def test_images_made_for_trouble(engine: Engine) -> None:
    assert engine.docker("run", "--rm", engine.load("bare"), "0").returncode == 0
    assert engine.docker("run", "--rm", "--entrypoint", "sh", engine.load("bare"), "-c", "id", check=False).returncode
    waiting = engine.docker("run", "-d", engine.load("entrypoint"), "echo", "swallowed").stdout.strip()
    assert engine.docker("inspect", "-f", "{{.State.Running}}", waiting).stdout == "true\n"
    config = json.loads(engine.docker("inspect", engine.load("hostile")).stdout)[0]["Config"]
    assert "\x1b[31m" in config["Labels"]["hostile"]
    assert any("\x1b[31m" in entry for entry in config["Env"])


def test_an_image_goes_to_the_registry_and_back(engine: Engine, registry: Registry) -> None:
    image = engine.load("layers")
    reference = registry.push(engine, image, name=f"layers:{engine.name}")
    engine.docker("rmi", image)
    engine.docker("pull", reference)
    digests = engine.get(f"/images/{reference}/json")["RepoDigests"]
    assert f"{reference.rpartition(':')[0]}@{registry.digest('layers', engine.name)}" in digests
    assert engine.docker("run", "--rm", reference, "stat", "-c", "%s", "/data5").stdout == f"{6 * 2**20}\n"


@pytest.mark.parametrize("name", ["engine_modern", "engine_containerd"])
def test_a_pull_breaks_and_succeeds_again(name: str, registry: Registry, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(name)
    image = engine.load("layers")
    reference = registry.over_the_line(registry.push(engine, image, name=f"broken:{engine.name}"))
    engine.docker("rmi", image)
    registry.line.limit(bytes_per_second=4e6, cut_after_bytes=6_000_000)
    assert engine.docker("pull", reference, check=False).returncode
    registry.line.restore()
    assert engine.docker("pull", reference).returncode == 0


def test_a_registry_dies_and_comes_back_on_its_port(engine_modern: Engine, registry: Registry) -> None:
    reference = registry.push(engine_modern, engine_modern.load("small"))
    registry.kill()
    assert engine_modern.docker("pull", reference, check=False).returncode
    registry.start()
    assert engine_modern.docker("pull", reference).returncode == 0


def test_a_registry_asks_for_a_password(engine: Engine, registry_with_password: Registry) -> None:
    reference = registry_with_password.push(engine, engine.load("small"), name="private/small:1")
    engine.docker("logout", registry_with_password.address)
    assert "credentials" in engine.docker("pull", reference, check=False).stderr
    registry_with_password.login(engine)
    assert engine.docker("pull", reference).returncode == 0


def test_a_frozen_engine_does_not_answer_until_it_thaws(engine: Engine) -> None:
    engine.freeze()
    assert not unixhttp.answers(engine.socket)
    engine.thaw()
    wait_until(lambda: unixhttp.answers(engine.socket), what="the engine")


def test_a_stopped_engine_comes_back_with_its_containers(engine: Engine, small_image: str) -> None:
    engine.docker("run", "-d", "--init", "--name", "lasting", small_image, "sleep", "1000")
    engine.stop()
    assert not engine.running
    assert engine.docker("ps", check=False).returncode
    engine.start()
    assert engine.docker("ps", "-a", "--format", "{{.Names}} {{.Status}}").stdout.startswith("lasting Exited")


def test_after_a_test_only_the_rigs_images_are_left(engine: Engine, small_image: str) -> None:
    engine.docker("run", "-d", "-v", "data:/data", small_image, "sleep", "1000")
    engine.docker("network", "create", "own")
    engine.docker("tag", small_image, "other:1")
    engine.docker("build", "-t", "built:1", "-", stdin=f"FROM {small_image}\nLABEL a=b\nRUN touch /x\n")
    engine.set_gpus([])
    engine.freeze()
    engine.reset()
    assert small_image in engine.images()
    assert all(reference.startswith("gpuconsole-test/") for reference in engine.images())
    assert engine.docker("ps", "-aq").stdout == ""
    assert engine.docker("volume", "ls", "-q").stdout == ""
    assert "own" not in engine.docker("network", "ls").stdout
    assert engine.gpus == TWO_GPUS


def test_compose_uses_a_cdi_gpu(engine_modern: Engine, tmp_path: Path) -> None:
    devices = "[{driver: cdi, device_ids: ['nvidia.com/gpu=1'], capabilities: [gpu]}]"
    service = f"image: {engine_modern.load('small')}, command: ls /dev, network_mode: none"
    text = f"services: {{one: {{{service}, deploy: {{resources: {{reservations: {{devices: {devices}}}}}}}}}}}"
    (tmp_path / "compose.yaml").write_text(text)
    done = engine_modern.docker("compose", "-f", str(tmp_path / "compose.yaml"), "up", "--no-color")
    assert "nvidia1" in done.stdout
    assert "nvidia0" not in done.stdout


def leftovers(folder: Path) -> list[object]:
    """Give whatever of a rig is still on the machine."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    links = bridges_of(folder, sweep.bridge_prefix(folder))
    return [*sweep.members(folder), *mounts, *links, *sweep.remaining_cgroups(folder), *([folder] * folder.exists())]


def veths(folder: Path) -> set[str]:
    """Give the host's ends of the virtual cables of a rig's containers."""
    bridges = bridges_of(folder, sweep.bridge_prefix(folder))
    masters = {path.parent.name: path.resolve().name for path in Path("/sys/class/net").glob("veth*/master")}
    return {name for name, bridge in masters.items() if bridge in bridges}


OWNER = """
import sys, time
from tests.rig.engines import start_engine
from tests.rig.owner import Rig
rig = Rig()
for name in ("20.10", "26.1"):
    engine = start_engine(rig, name)
    engine.docker("network", "create", "more")
    engine.docker("run", "-d", "--network", "more", engine.load("small"), "sleep", "1000")
print(rig.folder, flush=True)
time.sleep(1000)
"""


def test_nothing_is_left_when_the_owner_is_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    folder = Path(owner.stdout.readline().strip())
    cables = veths(folder)
    assert len(cables) == 2
    assert len(sweep.members(folder)) > 6
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: not leftovers(folder), what="the sweep")
    wait_until(lambda: not cables & set(interfaces("veth")), what="the end of the containers' networks")


def test_clean_removes_what_a_killed_supervisor_left(start_own_engine: Callable[..., Engine], rig: Rig) -> None:
    engine = start_own_engine("26.1")
    engine.docker("run", "-d", engine.load("small"), "sleep", "1000")
    rig.kill_supervisor()
    assert leftovers(rig.folder)
    subprocess.run([sys.executable, "-m", "tests.rig", "clean"], cwd=PROJECT, check=True, capture_output=True)
    assert not leftovers(rig.folder)


def test_two_rigs_live_side_by_side(engine_modern: Engine) -> None:
    with Rig() as other:
        second = start_engine(other, "26.1")
        for engine in (engine_modern, second):
            engine.docker("run", "-d", "--name", "same", "-p", "127.0.0.1::80", engine.load("small"), "sleep", "1000")
        assert engine_modern.get("/info")["ID"] != second.get("/info")["ID"]
        assert len(second.docker("ps", "-q").stdout.split()) == 1
    assert len(engine_modern.docker("ps", "-q").stdout.split()) == 1
    assert not leftovers(other.folder)


def test_the_machines_own_docker_is_not_touched(engine: Engine, small_image: str) -> None:
    engine.docker("run", "--rm", small_image, "true")
    homes = ("/var/run/docker.sock", "/var/run/docker.pid", "/var/lib/docker", "/etc/docker", "/run/containerd")
    mine = [path for path in map(Path, homes) if path.exists() and path.stat().st_mtime > started]
    assert mine == []
    assert RIGS in engine.folder.parents


started = time.time()


def test_the_command_line_runs_something_with_an_engine() -> None:
    argv = [sys.executable, "-m", "tests.rig", "run", "26.1", "small", "--", "docker", "images", "-q"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=True, timeout=120)
    assert re.fullmatch("[0-9a-f]{12}\n", done.stdout)


def test_the_command_line_holds_parts_until_it_is_told() -> None:
    argv = [sys.executable, "-m", "tests.rig", "up", "26.1", "registry"]
    with subprocess.Popen(argv, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout
        lines = [up.stdout.readline()]
        while not lines[-1].startswith("# ready"):
            lines.append(up.stdout.readline())
            assert lines[-1], lines
        up.terminate()
        assert up.wait(timeout=60) == 0
    host = next(line for line in lines if line.startswith("export DOCKER_HOST="))
    assert not Path(host.strip().partition("unix://")[2]).exists()


def test_the_command_line_names_what_it_does_not_know() -> None:
    argv = [sys.executable, "-m", "tests.rig", "up", "nonsense"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nonsense" in done.stderr


def test_tmux_shows_what_is_typed(tmux: Tmux) -> None:
    pane = tmux.session()
    pane.send("tput cols; tput lines; echo $TERM in ${TMUX%%,*}")
    pane.keys("Enter")
    shown = pane.wait_for(f"tmux-256color in {tmux.socket}")
    assert "80\n24\n" in shown
    client = tmux.attach(pane)
    client.wait_for("tmux-256color in")
    client.close()


def test_a_session_over_ssh_is_a_terminal_and_ends_with_the_line(sshd: SshServer) -> None:
    session = sshd.session("exec sh", columns=100, rows=30)
    session.wait_for("# ")
    session.send("stty size; echo home $HOME\n")
    session.wait_for(f"home {sshd.home}")
    assert "30 100" in session.text
    session.send("exec sleep 4321\n")
    wait_until(lambda: sleeping(sshd), what="the program at the other end")
    session.cut()
    wait_until(lambda: not sleeping(sshd), what="the end of the session")
    session.close()


def sleeping(sshd: SshServer) -> bool:
    """Tell whether the session's program runs."""
    mark = f"{MARK}={sshd.rig.folder}".encode()
    found = [path for path in Path("/proc").glob("[0-9]*/cmdline") if content(path) == b"sleep\0004321\0"]
    return any(mark in content(path.with_name("environ")) for path in found)


def content(path: Path) -> bytes:
    """Give a file of /proc, or nothing when the process is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""

"""The rig keeps its promises: real engines, GPUs that are handed out, images, a registry."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest

from tests.rig import unixhttp
from tests.rig.client import EngineClient
from tests.rig.engines import Engine
from tests.rig.fresh import fresh_image
from tests.rig.gpus import TWO_GPUS, RigGpu
from tests.rig.owner import wait_until
from tests.rig.registry import Registry

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


def test_an_engine_answers_and_runs_a_container(engine: EngineClient, small_image: str) -> None:
    assert engine.name.startswith((engine.version.rpartition(".")[0], "installed"))
    done = engine.docker("run", "--rm", small_image, "echo", "hello")
    assert (done.stdout, done.stderr) == ("hello\n", "")


def test_a_port_is_published_on_loopback(engine: EngineClient, small_image: str) -> None:
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
def test_torch_trains_in_the_image(engine: EngineClient, torch_image: str) -> None:
    done = engine.docker("run", "--rm", "-i", "--network", "none", torch_image, "python", "-", stdin=TRAINING)
    assert done.stdout == "cuda False learned True reduced [1.0, 1.0]\n"
    environment = engine.docker("run", "--rm", torch_image, "env").stdout
    assert re.search(r"^PYTORCH_VERSION=\d+\.\d+\.\d+$", environment, re.MULTILINE)
    assert "CUDA_VERSION" not in environment
    tools = "sh bash ls cat sleep id env kill tar torchrun python python3"
    assert len(engine.docker("run", "--rm", torch_image, "which", *tools.split()).stdout.split()) == 12


def test_images_made_for_trouble(engine: EngineClient) -> None:
    assert engine.docker("run", "--rm", engine.load("bare"), "0").returncode == 0
    assert engine.docker("run", "--rm", "--entrypoint", "sh", engine.load("bare"), "-c", "id", check=False).returncode
    waiting = engine.docker("run", "-d", engine.load("entrypoint"), "echo", "swallowed").stdout.strip()
    assert engine.docker("inspect", "-f", "{{.State.Running}}", waiting).stdout == "true\n"
    config = json.loads(engine.docker("inspect", engine.load("hostile")).stdout)[0]["Config"]
    assert "\x1b[31m" in config["Labels"]["hostile"]
    assert any("\x1b[31m" in entry for entry in config["Env"])


def test_an_image_goes_to_the_registry_and_back(engine: EngineClient, registry: Registry) -> None:
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
    reference = registry.over_the_line(fresh_image(registry))
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


def test_a_registry_asks_for_a_password(engine: EngineClient, registry_with_password: Registry) -> None:
    reference = registry_with_password.push(engine, engine.load("small"), name="private/small:1")
    engine.docker("logout", registry_with_password.address)
    assert "credentials" in engine.docker("pull", reference, check=False).stderr
    registry_with_password.login(engine)
    assert engine.docker("pull", reference).returncode == 0


def test_a_frozen_engine_does_not_answer_until_it_thaws(engine: EngineClient) -> None:
    engine.freeze()
    assert not unixhttp.answers(engine.socket)
    engine.thaw()
    wait_until(lambda: unixhttp.answers(engine.socket), what="the engine")


def test_a_stopped_engine_comes_back_with_its_containers(engine: EngineClient, small_image: str) -> None:
    engine.docker("run", "-d", "--init", "--name", "lasting", small_image, "sleep", "1000")
    engine.stop()
    assert not engine.running
    assert engine.docker("ps", check=False).returncode
    engine.start()
    assert engine.docker("ps", "-a", "--format", "{{.Names}} {{.Status}}").stdout.startswith("lasting Exited")


def test_after_a_test_only_the_rigs_images_are_left(engine: EngineClient, small_image: str) -> None:
    engine.docker("run", "-d", "-v", "data:/data", small_image, "sleep", "1000")
    engine.docker("network", "create", "own")
    engine.docker("tag", small_image, "other:1")
    engine.docker("build", "-t", "built:1", "-", stdin=f"FROM {small_image}\nLABEL a=b\nRUN touch /x\n")
    engine.set_gpus([])
    engine.freeze()
    engine.reset()
    assert isinstance(engine, Engine)
    assert small_image in engine.images()
    assert all(reference.startswith("gpuconsole-test/") for reference in engine.images())
    assert engine.docker("ps", "-aq").stdout == ""
    assert engine.docker("volume", "ls", "-q").stdout == ""
    assert "own" not in engine.docker("network", "ls").stdout
    assert engine.gpus == TWO_GPUS


def test_what_a_test_untagged_or_gave_a_name_of_the_rigs_does_not_meet_the_next(
    engine: EngineClient, registry: Registry
) -> None:
    small, layers, bare = (engine.load(name) for name in ("small", "layers", "bare"))
    own = engine.images()[small]
    pushed = registry.push(engine, layers, name="org/untagged:1")
    engine.docker("rmi", layers)
    engine.docker("pull", f"{pushed.removesuffix(':1')}@{registry.digest('org/untagged', '1')}")
    engine.docker("tag", bare, small)
    engine.reset()
    left = [image["RepoTags"] for image in engine.get("/images/json")]
    assert all(left), left
    assert layers not in engine.images()
    assert small not in engine.images(), "it was another image"
    assert engine.load("small") == small
    assert engine.images()[small] == own


@pytest.mark.parametrize("kind", ["engine_modern", "engine_old", "engine_containerd"])
def test_a_test_can_have_only_the_images_it_names(kind: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(kind)
    for name in ("small", "bare", "hostile"):
        engine.load(name)
    engine.docker("tag", engine.load("small"), "another/name:2")
    engine.only("small", "cuda-env")
    assert set(engine.images()) == {"gpuconsole-test/small:1", "gpuconsole-test/cuda-env:1"}
    engine.load("bare")
    assert "gpuconsole-test/bare:1" in engine.images()


def test_compose_uses_a_cdi_gpu(engine_modern: Engine, tmp_path: Path) -> None:
    devices = "[{driver: cdi, device_ids: ['nvidia.com/gpu=1'], capabilities: [gpu]}]"
    service = f"image: {engine_modern.load('small')}, command: ls /dev, network_mode: none"
    text = f"services: {{one: {{{service}, deploy: {{resources: {{reservations: {{devices: {devices}}}}}}}}}}}"
    (tmp_path / "compose.yaml").write_text(text)
    done = engine_modern.docker("compose", "-f", str(tmp_path / "compose.yaml"), "up", "--no-color")
    assert "nvidia1" in done.stdout
    assert "nvidia0" not in done.stdout

"""GPUs through the Docker adapter: however they were asked for, and when they cannot be given."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import docker
import pytest
from docker.types import DeviceRequest

from gpuconsole.core.errors import EngineRefused, GpuNotFound, NotFound
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.engine.model import GpuClaim, GpuPath, GpuRequestKind
from gpuconsole.engine.request import CreateRequest
from tests.rig.client import EngineClient
from tests.rig.engines import Engine
from tests.rig.gpus import TWO_GPUS

pytestmark = pytest.mark.engine
FIRST, SECOND = (gpu.uuid for gpu in TWO_GPUS)


@contextmanager
def connected(engine: EngineClient) -> Iterator[DockerEngine]:
    client = DockerEngine.connect(Endpoint(engine.host, "--host"))
    yield client
    client.close()


def asking(image: str, **fields: object) -> CreateRequest:
    return CreateRequest(
        image=image,
        name=f"g{secrets.token_hex(4)}",
        command=("sh", "-c", "ls /dev | grep '^nvidia'"),
        **fields,  # type: ignore[arg-type]
    )


def nodes(engine: DockerEngine, identity: str) -> set[str]:
    """The GPU nodes that a container made by :func:`asking` saw."""
    engine.start(identity)
    engine.wait(identity, timeout_s=30)
    found = b"".join(data for _, data in engine.logs(identity)).decode().split()
    return {name for name in found if name[len("nvidia") :].isdigit()}


@pytest.mark.parametrize("kind", ["26.1", "26.1-containerd"])
def test_cdi_gives_the_gpus_asked_for_and_no_others(
    kind: str, engine_modern: Engine, engine_containerd: Engine
) -> None:
    real = engine_modern if kind == "26.1" else engine_containerd
    image = real.load("small")
    with connected(real) as engine:
        second = engine.create(asking(image, gpu_path=GpuPath.CDI, gpu_uuids=(SECOND,)))
        assert nodes(engine, second) == {"nvidia1"}
        assert engine.container(second).gpu_claims == (GpuClaim(GpuRequestKind.CDI, devices=(SECOND,)),)
        both = engine.create(asking(image, gpu_path=GpuPath.CDI, cdi_devices=("nvidia.com/gpu=0", "nvidia.com/gpu=1")))
        assert nodes(engine, both) == {"nvidia0", "nvidia1"}
        none = engine.create(asking(image))
        assert nodes(engine, none) == set()
        assert engine.container(none).gpu_claims == ()


def test_an_unknown_cdi_gpu_is_named(engine_modern: Engine) -> None:
    image = engine_modern.load("small")
    with connected(engine_modern) as engine:
        request = asking(image, gpu_path=GpuPath.CDI, cdi_devices=("nvidia.com/gpu=7",))
        with pytest.raises(GpuNotFound, match=r"nvidia\.com/gpu=7") as caught:
            engine.start(engine.create(request))
        assert "nvidia-ctk cdi" in caught.value.hint
        assert "unresolvable" in caught.value.detail


def test_an_engine_without_cdi_says_so(engine_old: Engine) -> None:
    image = engine_old.load("small")
    with connected(engine_old) as engine:
        request = asking(image, gpu_path=GpuPath.CDI, gpu_uuids=(FIRST,))
        identity = engine.create(request)
        with pytest.raises(GpuNotFound, match="CDI"):
            engine.start(identity)
        assert engine.container(identity).error


def test_an_engine_without_the_toolkit_says_so(engine_without_gpus: Engine, engine_modern: Engine) -> None:
    for real in (engine_without_gpus, engine_modern):
        image = real.load("small")
        with connected(real) as engine:
            request = asking(image, gpu_path=GpuPath.HOOK, gpu_uuids=(FIRST,))
            with pytest.raises(GpuNotFound, match="no support for NVIDIA GPUs") as caught:
                engine.start(engine.create(request))
            assert "nvidia-container-toolkit" in caught.value.hint
            with pytest.raises(GpuNotFound, match="no runtime named nvidia"):
                engine.start(engine.create(asking(image, gpu_path=GpuPath.RUNTIME, gpu_uuids=(FIRST,))))


def test_gpus_without_a_way_are_refused_before_anything_is_made(engine_modern: Engine) -> None:
    image = engine_modern.load("small")
    with connected(engine_modern) as engine:
        request = asking(image, gpu_uuids=(FIRST,))
        with pytest.raises(EngineRefused, match="no way to give them"):
            engine.create(request)
        with pytest.raises(NotFound):
            engine.container(request.name or "")


@pytest.mark.parametrize("path", [GpuPath.CDI, GpuPath.HOOK, GpuPath.RUNTIME])
def test_a_way_without_gpus_is_refused_and_never_gives_all(engine_old: Engine, path: GpuPath) -> None:
    image = engine_old.load("small")
    with connected(engine_old) as engine:
        for uuids in ((), ("",), (FIRST, "")):
            request = asking(image, gpu_path=path, gpu_uuids=uuids)
            with pytest.raises(EngineRefused, match="are not named") as caught:
                engine.create(request)
            assert caught.value.hint
            with pytest.raises(NotFound):
                engine.container(request.name or "")


@pytest.mark.parametrize("kind", ["20.10", "26.1"])
def test_the_toolkit_is_asked_for_exactly_the_gpus_chosen(
    kind: str, engine_old: Engine, engine_toolkit: Engine
) -> None:
    real = engine_old if kind == "20.10" else engine_toolkit
    image = real.load("small")
    with connected(real) as engine:
        before = len(real.hook_calls())
        identity = engine.create(asking(image, gpu_path=GpuPath.HOOK, gpu_uuids=(SECOND, FIRST)))
        engine.start(identity)
        engine.wait(identity, timeout_s=30)
        call = real.hook_calls()[before]
        assert call.environment["NVIDIA_VISIBLE_DEVICES"] == f"{SECOND},{FIRST}"
        claim = GpuClaim(GpuRequestKind.DEVICE_REQUEST, devices=(SECOND, FIRST))
        assert engine.container(identity).gpu_claims == (claim,)


def test_nvidias_runtime_reads_the_environment(engine_old: Engine) -> None:
    image = engine_old.load("small")
    with connected(engine_old) as engine:
        request = asking(
            image,
            gpu_path=GpuPath.RUNTIME,
            gpu_uuids=(SECOND,),
            environment=(("NVIDIA_VISIBLE_DEVICES", "all"), ("A", "1")),
        )
        found = engine.container(engine.create(request))
        assert found.runtime == "nvidia"
        assert dict(found.environment)["NVIDIA_VISIBLE_DEVICES"] == SECOND
        assert found.gpu_claims == (GpuClaim(GpuRequestKind.ENVIRONMENT, devices=(SECOND,)),)


def test_a_cdi_claim_is_the_same_whoever_wrote_it(engine_modern: Engine) -> None:
    image = engine_modern.load("small")
    name = f"g{secrets.token_hex(4)}"
    engine_modern.docker("create", "--name", f"{name}-cli", "--device", "nvidia.com/gpu=0", image)
    with connected(engine_modern) as engine, _library(engine_modern) as library:
        for word, capabilities in (("a", None), ("b", [["gpu"]]), ("c", [])):
            request = DeviceRequest(driver="cdi", device_ids=["nvidia.com/gpu=0"], capabilities=capabilities)  # type: ignore[arg-type]
            library.containers.create(image, name=f"{name}-{word}", device_requests=[request])
        engine.create(CreateRequest(image=image, name=f"{name}-own", gpu_path=GpuPath.CDI, gpu_uuids=(FIRST,)))
        claims = {word: engine.container(f"{name}-{word}").gpu_claims for word in ("cli", "a", "b", "c")}
        assert set(claims.values()) == {(GpuClaim(GpuRequestKind.CDI, devices=("0",)),)}
        assert engine.container(f"{name}-own").gpu_claims == (GpuClaim(GpuRequestKind.CDI, devices=(FIRST,)),)


@pytest.mark.parametrize("kind", ["20.10", "26.1"])
def test_a_toolkit_claim_is_the_same_whoever_wrote_it(kind: str, engine_old: Engine, engine_toolkit: Engine) -> None:
    real = engine_old if kind == "20.10" else engine_toolkit
    image = real.load("small")
    name = f"g{secrets.token_hex(4)}"
    for word, value in (
        ("all", "all"),
        ("two", "2"),
        ("some", '"device=0,1"'),
        ("caps", '"device=0,1",capabilities=gpu'),
    ):
        real.docker("create", "--name", f"{name}-{word}", "--gpus", value, image)
    with connected(real) as engine, _library(real) as library:
        request = DeviceRequest(device_ids=["0", "1"], capabilities=[["gpu"]])
        library.containers.create(image, name=f"{name}-library", device_requests=[request])
        named = (GpuClaim(GpuRequestKind.DEVICE_REQUEST, devices=("0", "1")),)
        assert {engine.container(f"{name}-{word}").gpu_claims for word in ("some", "caps", "library")} == {named}
        assert engine.container(f"{name}-all").gpu_claims == (GpuClaim(GpuRequestKind.DEVICE_REQUEST, everything=True),)
        assert engine.container(f"{name}-two").gpu_claims == (GpuClaim(GpuRequestKind.DEVICE_REQUEST, count=2),)


def test_claims_by_runtime_and_by_device_node(engine_old: Engine) -> None:
    image = engine_old.load("small")
    name = f"g{secrets.token_hex(4)}"
    engine_old.docker(
        "create", "--name", f"{name}-all", "--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=all", image
    )
    engine_old.docker(
        "create", "--name", f"{name}-void", "--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=void", image
    )
    engine_old.docker("create", "--name", f"{name}-image", "-e", "NVIDIA_VISIBLE_DEVICES=all", image)
    engine_old.docker("create", "--name", f"{name}-node", "--device", "/dev/nvidia3", image)
    with connected(engine_old) as engine:
        found = {word: engine.container(f"{name}-{word}").gpu_claims for word in ("all", "void", "image", "node")}
    assert found == {
        "all": (GpuClaim(GpuRequestKind.ENVIRONMENT, everything=True),),
        "void": (),
        "image": (),
        "node": (GpuClaim(GpuRequestKind.DEVICE_NODE, devices=("/dev/nvidia3",)),),
    }


def test_the_engine_says_what_ways_it_has(engine_old: Engine, engine_modern: Engine) -> None:
    with connected(engine_old) as engine:
        assert "nvidia" in engine.info().runtimes
        assert engine.info().cdi_spec_dirs == ()
    with connected(engine_modern) as engine:
        assert "nvidia" not in engine.info().runtimes
        assert engine.info().cdi_spec_dirs == (str(engine_modern.cdi_folder),)


@contextmanager
def _library(engine: EngineClient) -> Iterator[docker.DockerClient]:
    client = docker.DockerClient(base_url=engine.host)
    yield client
    client.close()

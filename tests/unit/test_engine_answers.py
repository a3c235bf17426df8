"""Engines' answers read: claims on GPUs, usage, streams in any cut, and answers that lack or garble things."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.errors import EngineRefused
from gpuconsole.engine.docker import containers, events, images, pull
from gpuconsole.engine.docker.answers import moment, pairs
from gpuconsole.engine.docker.gpus import gpu_claims
from gpuconsole.engine.docker.streams import json_objects, separated_output
from gpuconsole.engine.docker.usage import usage_of
from gpuconsole.engine.model import ContainerState, GpuClaim, GpuRequestKind, Usage

REQUEST, CDI = GpuRequestKind.DEVICE_REQUEST, GpuRequestKind.CDI
NODE, ENVIRONMENT = GpuRequestKind.DEVICE_NODE, GpuRequestKind.ENVIRONMENT


def request(**fields: object) -> dict[str, object]:
    return {"DeviceRequests": [{"Driver": "", "Count": 0, "DeviceIDs": None, "Capabilities": None} | fields]}


@pytest.mark.parametrize(
    ("host", "environment", "claims"),
    [
        ({}, {}, ()),
        ({"DeviceRequests": None, "Devices": None}, {}, ()),
        (request(Count=-1, Capabilities=[["gpu"]]), {}, (GpuClaim(REQUEST, everything=True),)),
        (request(Count=2, Capabilities=[["gpu"]]), {}, (GpuClaim(REQUEST, count=2),)),
        (request(Count=0, Capabilities=[["gpu"]]), {}, ()),
        (
            request(DeviceIDs=["0", "2"], Capabilities=[["gpu", "compute"]]),
            {},
            (GpuClaim(REQUEST, devices=("0", "2")),),
        ),
        (request(Driver="nvidia", DeviceIDs=["0"]), {}, (GpuClaim(REQUEST, devices=("0",)),)),
        (request(Driver="nvidia", Count=-1, Capabilities=[]), {}, (GpuClaim(REQUEST, everything=True),)),
        (request(Count=-1, Capabilities=[["tpu"]]), {}, ()),
        (request(Driver="other", Count=-1, Capabilities=[["gpu"]]), {}, ()),
        # The same CDI request as the docker command, docker-py and compose write it.
        *(
            (
                request(Driver="cdi", DeviceIDs=["nvidia.com/gpu=0"], Capabilities=form),
                {},
                (GpuClaim(CDI, devices=("0",)),),
            )
            for form in ([], None, [["gpu"]])
        ),
        (request(Driver="cdi", DeviceIDs=["nvidia.com/gpu=all"]), {}, (GpuClaim(CDI, everything=True),)),
        (
            request(Driver="cdi", DeviceIDs=["nvidia.com/gpu=GPU-1", "vendor.com/net=eth0"]),
            {},
            (GpuClaim(CDI, devices=("GPU-1",)),),
        ),
        (request(Driver="cdi", DeviceIDs=["vendor.com/net=eth0"]), {}, ()),
        (
            request(Driver="cdi", DeviceIDs=["nvidia.com/gpu=gpu1", "nvidia.com/mig=MIG-2"]),
            {},
            (GpuClaim(CDI, devices=("1", "MIG-2")),),
        ),
        ({"Devices": [{"PathOnHost": "nvidia.com/gpu=1"}]}, {}, (GpuClaim(CDI, devices=("1",)),)),
        (
            {"Annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=1,nvidia.com/gpu=2"}},
            {},
            (GpuClaim(CDI, devices=("1", "2")),),
        ),
        # NVIDIA's runtime reads the environment; nothing else does.
        ({"Runtime": "nvidia"}, {"NVIDIA_VISIBLE_DEVICES": "all"}, (GpuClaim(ENVIRONMENT, everything=True),)),
        (
            {"Runtime": "nvidia"},
            {"NVIDIA_VISIBLE_DEVICES": "0,GPU-1"},
            (GpuClaim(ENVIRONMENT, devices=("0", "GPU-1")),),
        ),
        (
            {"Runtime": "nvidia"},
            {"NVIDIA_VISIBLE_DEVICES": "nvidia.com/gpu=0"},
            (GpuClaim(ENVIRONMENT, devices=("0",)),),
        ),
        *(({"Runtime": "nvidia"}, {"NVIDIA_VISIBLE_DEVICES": none}, ()) for none in ("", "void", "none", None)),
        ({"Runtime": "nvidia"}, {}, ()),
        ({"Runtime": "nvidia"}, {"CUDA_VERSION": "9.0"}, (GpuClaim(ENVIRONMENT, everything=True),)),
        ({"Runtime": "nvidia"}, {"CUDA_VERSION": "12.8", "NVIDIA_REQUIRE_CUDA": "cuda>=12"}, ()),
        ({"Runtime": "runc"}, {"NVIDIA_VISIBLE_DEVICES": "all"}, ()),
        # A request overrides what the image's environment says.
        (
            request(DeviceIDs=["1"], Capabilities=[["gpu"]]) | {"Runtime": "nvidia"},
            {"NVIDIA_VISIBLE_DEVICES": "all"},
            (GpuClaim(REQUEST, devices=("1",)),),
        ),
        (
            {"Devices": [{"PathOnHost": "/dev/nvidia0"}, {"PathOnHost": "/dev/nvidiactl"}, {"PathOnHost": None}]},
            {},
            (GpuClaim(NODE, devices=("/dev/nvidia0",)),),
        ),
        # What no engine should send.
        ({"DeviceRequests": "x", "Devices": [None, 3], "Annotations": [], "Runtime": 5}, {}, ()),
        (request(Count="x", Capabilities=[None, "gpu"], DeviceIDs="0"), {}, ()),
    ],
)
def test_gpu_claims(host: Mapping[str, Any], environment: dict[str, str | None], claims: tuple[GpuClaim, ...]) -> None:
    assert gpu_claims(host, tuple(environment.items())) == claims


def test_a_container_of_which_nothing_is_known() -> None:
    nothing = containers.described({}, {"Id": "ab" * 32, "Names": [], "Labels": None, "State": "?"})
    assert nothing.name == "abababababab"
    assert nothing.state is ContainerState.UNKNOWN
    assert nothing.labels == {}
    assert nothing.pid is None
    assert nothing.exit_code is None


def test_a_container_with_odd_fields() -> None:
    found = containers.described(
        {
            "Id": "ab" * 32,
            "Name": "/pod-infra",
            "Config": {
                "Env": ["A=1", "NOEQUALS", "", "B=x=y", 7],
                "Cmd": "sleep 1",
                "Labels": {"k": "[red]\x1b[2J\nmore", "n": None},
            },
            "State": {"Status": "configured", "Pid": 0, "FinishedAt": "0001-01-01T00:00:00Z", "Health": None},
            "HostConfig": {"CpuQuota": 150000, "CpuPeriod": 100000, "Tmpfs": {"/tmp": "rw,size=1g"}, "Memory": -1,
                           "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3}},
            "NetworkSettings": {"Ports": {"80/tcp": None, "81/udp": [{"HostIp": "::", "HostPort": "9"}], "x": []},
                                "Networks": None},
        },
        {},
    )  # fmt: skip
    assert found.environment == (("A", "1"), ("NOEQUALS", None), ("", None), ("B", "x=y"))
    assert found.command == ("sleep 1",)
    assert found.labels == {"k": "[red]\nmore"}
    assert found.state is ContainerState.CREATED
    assert found.finished_at is None
    assert found.cpu_limit == 1.5
    assert found.memory_limit_bytes is None
    assert found.restart_policy == "on-failure:3"
    assert [(mount.kind, mount.target) for mount in found.mounts] == [("tmpfs", "/tmp")]
    assert [(port.container_port, port.protocol, port.host_port) for port in found.ports] == [
        (80, "tcp", None),
        (81, "udp", 9),
    ]


def test_an_image_without_names() -> None:
    image = images.described({}, {"Id": "sha256:12", "RepoTags": ["<none>:<none>"], "RepoDigests": None, "Size": 7})
    assert image.name == "12"
    assert image.size_bytes == 7


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = (
    *("Id", "Name", "Config", "HostConfig", "State", "Env", "Cmd", "Labels", "Mounts", "Ports", "Created", "Actor"),
    *("NetworkSettings", "DeviceRequests", "Devices", "RestartPolicy", "status", "progressDetail", "cpu_stats"),
    *("RepoTags", "Image", "Names", "Attributes", "timeNano", "Type", "Action", "id", "Tmpfs", "ExposedPorts"),
)
VALUES = st.recursive(JSON, lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=4), max_leaves=10)
FIELDS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)


@given(FIELDS, FIELDS)
def test_nothing_an_engine_sends_breaks_the_reading(one: dict[str, Any], other: dict[str, Any]) -> None:
    containers.described(one, other)
    images.described(one, other)
    events.described(one)
    pull.described(one)
    usage_of(one, other)
    gpu_claims(one, pairs(other, "Env"))


@pytest.mark.parametrize(
    ("written", "when"),
    [
        ("2024-05-01T12:00:00.123456789Z", 1714564800.123456),
        ("2024-05-01T14:00:00+02:00", 1714564800.0),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
        ("yesterday", None),
        (1714564800, 1714564800.0),
        (0, None),
        (None, None),
    ],
)
def test_moments(written: object, when: float | None) -> None:
    assert moment(written) == when


def sample(*, used: int, system: int, cores: int | None = 2, **memory: object) -> dict[str, Any]:
    cpu = {"cpu_usage": {"total_usage": used}, "system_cpu_usage": system, "online_cpus": cores}
    return {"cpu_stats": cpu, "memory_stats": memory, "pids_stats": {"current": 3}}


def test_usage_is_computed_as_docker_stats_does() -> None:
    before = sample(used=1_000_000_000, system=10_000_000_000)["cpu_stats"]
    now = sample(used=2_500_000_000, system=12_000_000_000, usage=100, limit=1000, stats={"total_inactive_file": 30})
    assert usage_of(now, before) == Usage(cpu_pct=150.0, memory_bytes=70, memory_limit_bytes=1000, pids=3)


@pytest.mark.parametrize(
    ("memory", "bytes_used"),
    [
        ({"usage": 100, "stats": {"inactive_file": 40}}, 60),
        ({"usage": 100, "stats": {"total_inactive_file": 30, "inactive_file": 99}}, 70),
        ({"usage": 100, "stats": {"inactive_file": 200}}, 100),
        ({"usage": 100}, 100),
        ({}, None),
    ],
)
def test_memory_of_both_cgroup_versions(memory: dict[str, object], bytes_used: int | None) -> None:
    assert usage_of(sample(used=1, system=2) | {"memory_stats": memory}, {}).memory_bytes == bytes_used


def test_cpu_use_is_unknown_rather_than_zero_without_two_samples() -> None:
    assert usage_of(sample(used=5, system=10), {}).cpu_pct is None
    assert usage_of(sample(used=5, system=10), sample(used=5, system=10)["cpu_stats"]).cpu_pct is None
    assert usage_of({}, {}) == Usage()


def test_cores_of_an_engine_that_does_not_count_them() -> None:
    now = sample(used=2, system=20, cores=0)
    now["cpu_stats"]["cpu_usage"]["percpu_usage"] = [1, 1, 0, 0]
    assert usage_of(now, sample(used=1, system=10)["cpu_stats"]).cpu_pct == pytest.approx(40.0)


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return (data[start:end] for start, end in pairwise(edges))


FRAMES = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8)


@given(FRAMES, st.lists(st.integers(0, 400), max_size=20))
def test_output_is_the_same_however_it_is_cut(frames: list[tuple[int, bytes]], places: list[int]) -> None:
    data = b"".join(bytes([kind, 0, 0, 0]) + len(text).to_bytes(4, "big") + text for kind, text in frames)
    pieces = list(separated_output(cut(data, places)))
    for name, kind in (("stdout", 1), ("stderr", 2)):
        assert b"".join(piece for stream, piece in pieces if stream == name) == b"".join(
            text for number, text in frames if number == kind
        )
    assert all(piece for _, piece in pieces)


def test_output_cut_off_in_a_frame_gives_what_came() -> None:
    assert list(separated_output([b"\x01\0\0\0\0\0\0\x09abc"])) == [("stdout", b"abc")]
    assert list(separated_output([b"\x01\0\0"])) == []


def test_an_error_of_the_engine_inside_the_output_is_raised() -> None:
    data = b"\x01\0\0\0\0\0\0\x01a\x03\0\0\0\0\0\0\x05oh\x1b[m"
    pieces = separated_output([data])
    assert next(pieces) == ("stdout", b"a")
    with pytest.raises(EngineRefused, match="oh"):
        next(pieces)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3), max_size=5), st.booleans(),
       st.lists(st.integers(0, 400), max_size=20))  # fmt: skip
def test_json_objects_however_they_are_cut(wanted: list[dict[str, str]], newlines: bool, places: list[int]) -> None:
    data = ("\r\n" if newlines else "").join(json.dumps(one) for one in wanted).encode()
    assert list(json_objects(cut(data, places))) == wanted


def test_what_is_no_json_is_skipped() -> None:
    assert list(json_objects([b'nonsense\n{"a": 1}\n[2]\n\xff\n{"b": 2}{"c"'])) == [{"a": 1}, {"b": 2}]


def test_events_of_any_engine() -> None:
    event = events.described(
        {"Type": "container", "Action": "exec_start: sh -c \x1b[2J", "Actor": {"ID": "12", "Attributes":
         {"name": "box\n", "exitCode": "137"}}, "timeNano": 1_500_000_000}
    )  # fmt: skip
    assert (event.action, event.id, event.name, event.exit_code, event.at) == ("exec_start", "12", "box", 137, 1.5)


def test_progress_of_a_layer_and_of_the_whole() -> None:
    first = pull.described({"status": "Pulling from x/y", "id": "latest"})
    assert (first.layer, first.current_bytes) == ("", None)
    layer = pull.described({"status": "Downloading", "id": "ab12", "progressDetail": {"current": 5, "total": 9}})
    assert (layer.layer, layer.current_bytes, layer.total_bytes) == ("ab12", 5, 9)

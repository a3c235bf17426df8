"""What engines tell of a build, how far that is, and why one failed: from words that engines, pip and apt wrote."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from gpuconsole.cli.build_progress import picture
from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.core.errors import Conflict, ConsoleError, EngineRefused, ExitCode, NotFound, Refused
from gpuconsole.engine.buildfailures import StepFailed
from gpuconsole.engine.docker.build import decode
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.engine.model import BuildProgress, PullProgress
from gpuconsole.engine.pullfailures import ImageUnknown
from gpuconsole.images.dockerfile import Recipe
from gpuconsole.images.torchbuilds import shipped_builds
from gpuconsole.services.buildfailures import PackagesUnreached, explained
from gpuconsole.services.buildmeter import BuildMeter
from tests.unit.canned import CannedEngine, answer

RECIPE = Recipe(
    base="nvidia/cuda:12.8.1-base-ubuntu24.04",
    torch="2.9.1",
    vision="0.24.1",
    audio="2.9.1",
    cuda="12.8",
    tools=shipped_builds().tools,
)
PIP = "RUN set -eu; umask 0;     pip install --no-cache-dir torch==2.9.1+cu128"


def told(*answers: dict[str, object], cut: int = 7) -> list[BuildProgress]:
    """What is made of a stream, whatever pieces it arrives in."""
    raw = "\r\n".join(json.dumps(answer) for answer in answers).encode()
    return list(decode(raw[start : start + cut] for start in range(0, len(raw), cut)))


def lines(*texts: str) -> list[dict[str, object]]:
    return [{"stream": text} for text in texts]


@pytest.mark.parametrize(
    "tidies", ["Removing intermediate container 4babc2461e94\n", " ---> Removed intermediate container 4babc2461e94\n"]
)
def test_the_steps_of_dockers_builder(tidies: str) -> None:
    stream = lines(
        "Step 1/3 : FROM base:1\n", " ---> 87351bb0b3dd\n", "Step 2/3 : USER root\n", " ---> Using cache\n",
        " ---> f2dfe805e4e4\n", "Step 3/3 : RUN echo hi", "\n", " ---> Running in 4babc2461e94\n", "hi\na", "b\n",
        tidies, " ---> 265ddf4aa94c\n",
    )  # fmt: skip
    stream += [{"aux": {"ID": f"sha256:{'1' * 64}"}}, {"stream": "Successfully tagged x:1\n"}]
    assert told(*stream) == [
        BuildProgress("FROM base:1", step=1, steps=3),
        BuildProgress(image_id="87351bb0b3dd"),
        BuildProgress("USER root", step=2, steps=3),
        BuildProgress(image_id="f2dfe805e4e4", cached=True),
        BuildProgress("RUN echo hi", step=3, steps=3),
        BuildProgress(container_id="4babc2461e94"),
        BuildProgress("hi"),
        BuildProgress("ab"),
        BuildProgress(image_id="265ddf4aa94c"),
        BuildProgress(image_id=f"sha256:{'1' * 64}"),
        BuildProgress("Successfully tagged x:1"),
    ]


def test_the_steps_of_podmans_builder() -> None:
    stream = lines(
        "STEP 1/2: FROM base:1\n", "STEP 2/2: USER root\n", f"--> Using cache {'f' * 64}\n", "--> f1a857a2d06\n",
        "COMMIT docker.io/x:1\n",
    )  # fmt: skip
    assert told(*stream) == [
        BuildProgress("FROM base:1", step=1, steps=2),
        BuildProgress("USER root", step=2, steps=2),
        BuildProgress(image_id="f1a857a2d06", cached=True),
        BuildProgress("COMMIT docker.io/x:1"),
    ]


def test_a_pull_inside_the_build_and_a_base_that_is_not_there() -> None:
    (first,) = told({"status": "Downloading", "id": "abc", "progressDetail": {"current": 5, "total": 9}})
    assert first.pull == PullProgress("Downloading", "abc", 5, 9)
    with pytest.raises(ImageUnknown):
        told({"error": "manifest for nvidia/cuda:none not found: manifest unknown"})


@pytest.mark.parametrize(
    "text",
    [
        "The command '/bin/sh -c exit 3' returned a non-zero code: 3",
        'building at STEP "RUN exit 3": while running runtime: exit status 3',
    ],
)
def test_a_step_that_fails(text: str) -> None:
    with pytest.raises(StepFailed, match="exit code 3"):
        told({"stream": "Step 1/1 : RUN exit 3\n"}, {"errorDetail": {"code": 3, "message": text}, "error": text})


def test_output_is_made_harmless_and_odd_answers_are_no_trouble() -> None:
    (only,) = told({"stream": "\x1b[31mred\x1b[0m \u202etxt\x07\n"})
    assert only.text == "red txt"
    odd: list[dict[str, object]] = [{"aux": 3}, {"stream": 5}, {"stream": None}, {"aux": {"ID": 7}}, {}, {"id": []}]
    assert told(*odd) == []
    (last,) = told({"stream": "no line end"})
    assert last.text == "no line end"


def test_what_an_engine_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text('{"proxies": {"default": {"httpsProxy": "http://proxy.example:3128"}}}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    server = CannedEngine(tmp_path, {"/build": answer({"stream": "Step 1/1 : FROM x\n"})})
    engine = DockerEngine.connect(Endpoint(server.url, "--host"))
    assert [each.step for each in engine.build("FROM x\n", tag="a/b:1", network="host", fresh=True)] == [1]
    engine.close()
    server.close()
    head, _, body = server.requests[-1].partition(b"\r\n\r\n")
    query = parse_qs(head.split(b" ")[1].decode().partition("?")[2])
    proxies = json.loads(query.pop("buildargs")[0])
    assert (
        proxies["HTTPS_PROXY"] == "http://proxy.example:3128"
    )  # the only thing a build is given, and what docker gives
    assert {name.upper() for name in proxies} == {"HTTPS_PROXY"}
    assert {name: values[0] for name, values in query.items()} == {
        "t": "a/b:1", "rm": "1", "forcerm": "1", "version": "1", "networkmode": "host", "nocache": "1",
    }  # fmt: skip
    assert b"application/x-tar" in head
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert archive.getnames() == ["Dockerfile"]


def meter_after(*parts: BuildProgress) -> BuildMeter:
    clock: Iterator[int] = iter(range(1000))
    meter = BuildMeter("pytorch-cuda:v2.9", RECIPE, clock=lambda: float(next(clock)))
    for part in parts:
        meter.add(part)
    return meter


def test_a_download_is_told_with_bytes_rate_and_time_left() -> None:
    meter = meter_after(
        BuildProgress(PIP, step=8, steps=14),
        BuildProgress("Downloading https://x/whl/torch-2.9.1%2Bcu128-cp312-manylinux_2_28_x86_64.whl (899.7 MB)"),
        *(BuildProgress(f"Progress {count << 20} of {900 << 20}") for count in range(0, 300, 30)),
    )
    state = meter.state
    assert state.words == "installing torch 2.9.1 for CUDA 12.8"
    assert state.line.startswith("downloading torch-2.9.1")
    assert (state.current_bytes, state.total_bytes) == (270 << 20, 900 << 20)
    assert state.download == "270 MiB of 900 MiB, 30 MiB/s, 21 s left"
    assert state.share == 0.5
    assert not any(line.startswith("Progress") for line in meter.lines)
    shown = picture(state, Glyphs(unicode=True), 60, 24, elapsed_s=125.4)
    assert shown[0] == "Building pytorch-cuda:v2.9  2:05"
    assert all(len(line) <= 79 for line in shown)
    assert "270 MiB of 900 MiB" in shown[-1]
    done = meter.add(BuildProgress("Installing collected packages: torch"))
    assert done.download == ""
    assert meter.add(BuildProgress("LABEL a=b", step=9, steps=14)).line == ""


def test_the_pull_of_the_base_is_shown_until_the_first_step() -> None:
    meter = meter_after(BuildProgress(pull=PullProgress("Downloading", "abc", 1 << 20, 4 << 20)))
    assert "pulling the base" in str(meter.state)
    assert any("layers" in line for line in picture(meter.state, Glyphs(unicode=False), 80, 24))
    meter.add(BuildProgress("FROM x", step=1, steps=2))
    assert "pulling" not in str(meter.state)
    for rows in (1, 2, 3):
        assert 1 <= len(picture(meter.state, Glyphs(unicode=True), 20, rows)) <= rows


STEP = f"Step 8/14: {PIP}"
NO_MATCH = (
    "Looking in indexes: https://mirror.example/simple",
    "ERROR: Could not find a version that satisfies the requirement torch==2.9.1+cu128 (from versions: 2.9.1)",
    "ERROR: No matching distribution found for torch==2.9.1+cu128",
)
NO_NETWORK = (
    "WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after connection broken "
    "by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection at 0x7f>: Failed to establish a new "
    "connection: [Errno -3] Temporary failure in name resolution')': /simple/pip/",
    "ERROR: Could not find a version that satisfies the requirement pip==25.3 (from versions: none)",
    "ERROR: No matching distribution found for pip==25.3",
)


@pytest.mark.parametrize(
    ("log", "kind", "words"),
    [
        (NO_MATCH, NotFound, "has no torch==2.9.1+cu128"),
        # That nothing was found follows from the network, which is what is told.
        (NO_NETWORK, PackagesUnreached, "cannot reach the packages"),
        (("Err:1 http://archive.ubuntu.com noble InRelease", "  Temporary failure resolving 'archive.ubuntu.com'"),
         PackagesUnreached, "cannot reach"),
        (("E: Failed to fetch http://archive.ubuntu.com/x.deb  Connection timed out",), PackagesUnreached, "cannot"),
        (("pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool: Read timed out.",),
         PackagesUnreached, "cannot reach"),
        (("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",),
         Conflict, "full"),
        # A line that was bad for a moment is not what it failed of.
        ((NO_NETWORK[0], *NO_MATCH), NotFound, "has no torch==2.9.1+cu128"),
        (("E: You don't have enough free space in /var/cache/apt/archives/.",), Conflict, "full"),
        (("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",),
         EngineRefused, "certificate"),
        (("ERROR: 403 Client Error: Forbidden for url: https://mirror.example/simple/torch/",), Refused, "give"),
        (("WARNING: The repository located at 10.0.0.7 is not a trusted or secure host and is being ignored.",
          "ERROR: No matching distribution found for pip==25.3"), EngineRefused, "by https"),
        (("E: Unable to locate package python3-venv",), NotFound, "no package python3-venv"),
        (("gpuconsole: the base has neither python3 nor apt-get to install it",), NotFound, "has no Python"),
        (("The virtual environment was not created successfully because ensurepip is not available.",),
         NotFound, "virtual environment"),
        (("Traceback (most recent call last):", "AssertionError: ('2.9.1+cpu', None)"), EngineRefused, "2.9.1+cpu"),
        (("AssertionError: ('2.9.1+cu130', '13.0')",), EngineRefused, "for CUDA 13.0, not 2.9.1+cu128"),
        (("exec /bin/sh: exec format error",), NotFound, "another processor"),
        (("ERROR: Cannot install torch because these package versions have conflicting dependencies.",),
         EngineRefused, "do not go together"),
        (("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",), EngineRefused, "promises"),
        (("something odd", "ERROR: the dog ate it"), StepFailed, "the dog ate it"),
        ((), StepFailed, "exit code 1"),
    ],
)  # fmt: skip
def test_why_a_step_failed(log: tuple[str, ...], kind: type[ConsoleError], words: str) -> None:
    failed = StepFailed("A step of the build ended with exit code 1.", hint="x", detail="y")
    earlier = ("Step 4/14: RUN apt-get", "E: Unable to locate package of-an-earlier-step")
    better = explained(failed, (*earlier, STEP, *log), RECIPE)
    assert type(better) is kind
    assert words in better.message
    assert better.hint
    assert "{" not in better.message + better.hint
    assert all(line in better.detail for line in log)
    assert "of-an-earlier-step" not in better.detail


def test_a_step_that_was_killed_ran_out_of_memory_and_what_is_no_step_stays() -> None:
    killed = StepFailed("A step of the build ended with exit code 137.", hint="x")
    assert "memory" in explained(killed, (STEP, "Killed"), RECIPE).message
    other = NotFound("No base.", hint="x")
    assert explained(other, (STEP, *NO_NETWORK), RECIPE) is other
    assert PackagesUnreached("x").exit_code is ExitCode.ENGINE_ERROR

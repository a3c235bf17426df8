"""``catalog`` as it is used: described machines, this one on the simulated driver, files of users, narrow terminals."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.cli.main import main
from gpuconsole.cli.tables import width_of
from gpuconsole.core.errors import ExitCode
from tests.cli.engines import gpuconsole
from tests.rig import prepared
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, NvmlState, a100_mig, gb10, h200, rtx4090
from tests.rig.nvml.gpu import Gpu
from tests.rig.terminal import Terminal
from tests.unit.test_verdict import VECTORS, WORDS

Run = Callable[..., tuple[int, str, str]]


def box_of(*gpus: Gpu) -> NvmlState:
    return NvmlState(gpus=gpus)


@pytest.fixture
def catalog(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run ``catalog`` in this process, without files of users and without an engine; gives code, stdout, stderr."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/gpuconsole-no-engine.sock")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("GPUCONSOLE_CATALOG", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["catalog", *arguments])
        return (code, *capfd.readouterr())

    return run


def document(answer: tuple[int, str, str]) -> Any:
    code, out, talk = answer
    assert code == 0, talk
    found = json.loads(out)
    assert found["schema"] == "gpuconsole.catalog/1"
    return found


@pytest.mark.parametrize(("name", "cc", "arch", "driver", "reference", "expected"), VECTORS)
def test_the_researched_vectors_offline(
    catalog: Run, name: str, cc: str, arch: str, driver: str, reference: str, expected: str
) -> None:
    told = catalog("--all", "--driver", driver, "--cc", cc, "--arch", arch, "--gpu", name, "--json")
    images = {image["reference"]: image for image in document(told)["images"]}
    found = images[reference]
    assert found["verdict"] == WORDS[expected].value
    assert found["reasons"][0]["id"] == expected
    assert found["reasons"][0]["text"]


def test_a_described_machine_asks_nothing_of_this_one(catalog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("this machine was asked")

    monkeypatch.setattr("gpuconsole.gpu.nvml.source.NvmlSource.snapshot", refuse)
    monkeypatch.setattr("gpuconsole.engine.docker.engine.DockerEngine.connect", refuse)
    told = document(catalog("--driver", "580.95.05", "--gpu", "NVIDIA H200", "--json"))
    assert told["host"]["described"] is True
    assert told["host"]["gpu_path"] == "hook"
    assert told["host"]["gpus"][0]["compute_capability"] == "9.0"


def test_the_short_list_and_the_whole(catalog: Run) -> None:
    machine = ("--driver", "580.95.05", "--cc", "9.0", "--arch", "amd64", "--json")
    short, whole = document(catalog(*machine)), document(catalog(*machine, "--all"))
    assert all(image["recommended"] for image in short["images"])
    assert len(short["images"]) < 10
    assert len(whole["images"]) == 171
    assert whole["images"][: len(short["images"])] == short["images"]
    unseen = [image for image in whole["images"] if image["evidence"] == "inferred"]
    assert len(unseen) == 18


def test_each_gpu_of_a_mixed_box_and_the_worst(catalog: Run) -> None:
    pairs = ("--gpu", "NVIDIA GeForce RTX 4090", "--cc", "8.9", "--gpu", "Tesla V100-SXM2-32GB", "--cc", "7.0")
    told = document(catalog("--all", "--driver", "580.95.05", "--arch", "amd64", *pairs, "--json"))
    found = next(each for each in told["images"] if each["reference"].endswith("2.14.1-cuda13.0-cudnn9-runtime"))
    assert [(each["gpu"], each["verdict"]) for each in found["gpus"]] == [
        ("GPU 0 (NVIDIA GeForce RTX 4090)", "runs"),
        ("GPU 1 (Tesla V100-SXM2-32GB)", "will_not_run"),
    ]
    assert found["verdict"] == "will_not_run"
    assert found["needs"] == {
        "capability": "7.0",
        "image": "pytorch/pytorch:2.14.1-cuda12.6-cudnn9-runtime",
    }


def test_the_gpu_path_decides_what_the_hook_would_refuse(catalog: Run) -> None:
    card = ("--all", "--driver", "535.183.01", "--gpu", "NVIDIA GeForce RTX 3090", "--arch", "x86_64", "--json")
    verdicts = {}
    for path in ("hook", "cdi"):
        told = document(catalog(*card, "--gpu-path", path))
        images = {image["reference"]: image for image in told["images"]}
        verdicts[path] = images["pytorch/pytorch:2.9.0-cuda12.8-cudnn9-devel"]
    assert (verdicts["hook"]["verdict"], verdicts["cdi"]["verdict"]) == ("will_not_run", "runs_with")
    assert verdicts["hook"]["needs"]["gpu_path"] == "cdi"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--driver", "latest"), "580.95.05"),
        (("--driver", "31.0.15.4601"), "580.95.05"),
        (("--driver", ""), "580.95.05"),
        (("--cc", "89"), "8.9"),
        (("--cc", "hopper"), "8.9"),
        (("--cc", "99.0"), "no GPU"),
        (("--cc", "0.0"), "no GPU"),
        (("--arch", "sparc"), "amd64 or arm64"),
        (("--gpu-path", "runtime"), "hook or cdi"),
        (("--gpu", " "), "nvidia-smi"),
        (("--gpu", "Voodoo 2"), "--cc"),
        (("--gpu", "NVIDIA H200", "--gpu", "NVIDIA H200", "--cc", "9.0"), "2 times"),
        (("--gpu", "\x1b[31mred\u202e"), "--cc"),
        (("verify-it",), "verify-it"),
        (("verify", "a/b:1"), "after its name"),
    ],
)
def test_values_that_cannot_be_are_wrong_usage(catalog: Run, arguments: tuple[str, ...], words: str) -> None:
    code, out, talk = catalog("--driver", "580.95.05", *arguments)
    assert code == ExitCode.USAGE
    assert words in talk
    assert not out
    assert "Traceback" not in talk
    assert "\x1b" not in talk
    assert "\u202e" not in talk


def test_a_capability_that_is_not_the_names_is_pointed_out(catalog: Run) -> None:
    code, _, talk = catalog("--driver", "580.95.05", "--gpu", "NVIDIA H200", "--cc", "8.0")
    assert code == 0
    assert "has compute capability 9.0, not 8.0" in talk


def test_a_machine_that_is_not_known_is_never_guessed(catalog: Run, nvml: NvmlBox) -> None:
    nvml.write(NvmlState())
    told = document(catalog("--all", "--json", "--arch", "amd64"))
    assert told["host"]["unknown"]["gpus"]
    for image in told["images"]:
        if image["verdict"] == "unknown":
            assert image["needs"]["facts"]
        else:
            assert image["verdict"] == "will_not_run"
            assert image["reasons"][0]["id"] in ("wrong-architecture", "driver-too-old")


@pytest.mark.parametrize(
    ("state", "cc", "words"),
    [
        (box_of(h200(), h200(1)), ["9.0", "9.0"], {"runs"}),
        (box_of(rtx4090()), ["8.9"], {"runs"}),
        (box_of(a100_mig()), ["8.0"], {"runs"}),
    ],
)
def test_this_machine_is_judged_by_what_its_driver_says(
    catalog: Run, nvml: NvmlBox, state: NvmlState, cc: list[str], words: set[str]
) -> None:
    nvml.write(state)
    told = document(catalog("--json"))
    assert [gpu["compute_capability"] for gpu in told["host"]["gpus"]] == cc
    assert told["host"]["driver"] == state.driver
    assert told["host"]["described"] is False
    assert {image["verdict"] for image in told["images"]} >= words


def test_what_one_option_leaves_open_is_this_machines(catalog: Run, nvml: NvmlBox) -> None:
    nvml.write(box_of(rtx4090()))
    host = document(catalog("--driver", "470.256.02", "--json"))["host"]
    assert (host["driver"], host["cuda"]) == ("470.256.02", None)
    assert host["gpus"][0]["name"] == "NVIDIA GeForce RTX 4090"
    host = document(catalog("--cc", "7.0", "--json"))["host"]
    assert host["driver"] == box_of(rtx4090()).driver
    assert [gpu["compute_capability"] for gpu in host["gpus"]] == ["7.0"]


def test_a_board_with_one_memory_is_told_of(catalog: Run, nvml: NvmlBox) -> None:
    nvml.write(box_of(gb10()))
    told = document(catalog("--json", "--arch", "arm64"))
    assert told["host"]["gpus"][0]["unified_memory"] is True
    assert all("nvcr.io" in image["reference"] for image in told["images"])
    assert any("unified-memory" in [reason["id"] for reason in image["reasons"]] for image in told["images"])


def test_an_instance_of_a_divided_gpu_is_described_by_its_name(catalog: Run) -> None:
    told = document(catalog("--driver", "580.95.05", "--gpu", "NVIDIA H200 MIG 1g.18gb", "--json"))
    assert told["host"]["gpus"][0]["mig_instances"] == 1
    assert "mig" in [reason["id"] for reason in told["images"][0]["reasons"]]


MACHINES = (
    (),
    ("--driver", "535.183.01", "--gpu", "NVIDIA GeForce RTX 3090"),
    ("--driver", "580.95.05", "--gpu", "NVIDIA GeForce RTX 4090", "--gpu", "NVIDIA TITAN V", "--gpu", "NVIDIA TITAN V"),
    ("--driver", "570.124.06", "--gpu", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
    ("--driver", "390.157", "--cc", "3.5"),
)


@pytest.mark.parametrize("arguments", MACHINES)
@pytest.mark.parametrize("everything", [(), ("--all",)])
def test_the_table_fits_80_columns_and_cuts_nothing(
    catalog: Run, arguments: tuple[str, ...], everything: tuple[str, ...]
) -> None:
    code, out, _ = catalog(*arguments, *everything, "--arch", "amd64")
    assert code == 0
    for line in out.splitlines():
        assert width_of(line) <= 80, line
        assert "…" not in line


@pytest.mark.engine
def test_a_narrow_terminal_gets_lines_that_fit(engine_modern: Engine, open_terminal: Callable[..., Terminal]) -> None:
    machine = ("--driver", "550.54.15", "--gpu", "NVIDIA GeForce RTX 4090", "--arch", "amd64")
    terminal = open_terminal(engine_modern, "catalog", *machine, columns=56, rows=60)
    terminal.wait_for("catalog --all")
    lines = [line.rstrip() for line in terminal.text.splitlines()]
    assert "    pytorch/pytorch:2.14.1-cuda12.6-cudnn9-runtime" in lines
    assert "    torch 2.14.1 · CUDA 12.6" in lines


def run_apart(*arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return prepared.gpuconsole("catalog", *arguments, env=env)


def test_the_table_says_word_reason_and_what_would_run() -> None:
    machine = ("--driver", "550.54.15", "--gpu", "NVIDIA GeForce RTX 4090", "--arch", "amd64", "--all")
    done = run_apart(*machine, env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm"})
    out, talk = done.stdout.decode(), done.stderr.decode()
    lines = out.splitlines()
    assert "RECOMMENDED" in lines
    assert lines.index("RECOMMENDED") < lines.index("ALL OTHERS")
    at = next(i for i, line in enumerate(lines) if "2.14.1-cuda13.0-cudnn9-runtime" in line)
    assert lines[at].startswith("✗ will not run")
    block = " ".join(line.strip() for line in lines[at + 1 : at + 4])
    assert "driver 550.54.15 is too old for CUDA 13.0, which needs 580.65.06 or newer" in block
    assert "→ instead: pytorch/pytorch:2.14.1-cuda12.6-cudnn9-runtime" in block
    assert any(line.startswith("~ with limits") for line in lines)
    assert any(line.endswith(" *") for line in lines)
    assert "nobody was seen using this tag" in talk


def test_an_ascii_locale_gets_ascii() -> None:
    env = {**os.environ, "LC_ALL": "C", "LANG": "C"}
    done = run_apart("--driver", "550.54.15", "--cc", "8.9", "--gpu", "RTX 4090", env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"x will not run" in done.stdout or b"~ with limits" in done.stdout


# --- files of users


def test_images_of_ones_own_come_first_and_mistakes_are_told(
    catalog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "team.toml"
    monkeypatch.setenv("GPUCONSOLE_CATALOG", str(own))
    own.write_text('[[image]]\nreference = "lab/torch:1"\ntorch = "2.9.1"\ncuda = "12.8"\nrecommended = true\n')
    machine = ("--driver", "580.95.05", "--cc", "9.0", "--arch", "amd64", "--json")
    images = document(catalog(*machine))["images"]
    (mine,) = [image for image in images if image["reference"] == "lab/torch:1"]
    assert (mine["verdict"], mine["source"], mine["needs"]) == (
        "unknown",
        str(own),
        {"facts": ["image platform", "capabilities torch was built for"]},
    )
    own.write_text('[[image]]\nreference = "lab/torch:1"\ntorhc = "2.9.1"\n')
    code, out, talk = catalog(*machine)
    assert code == ExitCode.BAD_FILE
    assert f"{own}:3: image 1, field 'torhc': there is no such field; did you mean 'torch'?" in talk
    assert not out


# --- with an engine


@pytest.mark.engine
def test_the_way_gpus_take_is_the_engines(engine_modern: Engine, nvml_box: NvmlBox) -> None:
    base = {**os.environ, **nvml_box.env()}
    host = gpuconsole(engine_modern, "catalog", "--json", base=base).document["host"]
    assert host["gpu_path"] in ("cdi", "hook")
    assert len(host["gpus"]) == 2
    listed = {path for path in ("hook", "cdi") if path != host["gpu_path"]}
    for path in listed:
        asked = gpuconsole(engine_modern, "catalog", "--json", "--gpu-path", path, base=base).document["host"]
        assert asked["gpu_path"] == path


@pytest.mark.engine
def test_local_images_are_judged_for_this_machine(engine: Engine, nvml_box: NvmlBox) -> None:
    engine.load("small")
    engine.load("cuda-env")
    nvml_box.write(box_of(rtx4090()))
    done = gpuconsole(engine, "images", "--json", base={**os.environ, **nvml_box.env()})
    found = {image["name"]: image for image in done.document["images"]}
    known = found["gpuconsole-test/cuda-env:1"]
    assert (known["verdict"], known["reasons"][0]["id"]) == ("runs", "ok-native")
    plain = found["gpuconsole-test/small:1"]
    assert (plain["verdict"], plain["needs"]["facts"]) == (
        "unknown",
        ["capabilities torch was built for", "CUDA version"],
    )
    table = gpuconsole(engine, "images", base={**os.environ, **nvml_box.env()}).text
    assert "✓ runs" in next(line for line in table.splitlines() if "cuda-env" in line)
    assert "? unknown" in next(line for line in table.splitlines() if "small" in line)


@pytest.mark.engine
def test_what_was_installed_later_is_told_by_the_history(engine: Engine, nvml_box: NvmlBox) -> None:
    """A commit keeps the command of its container, as a build keeps its own."""
    install = "pip install torch==2.9.1 --index-url https://download.pytorch.org/whl/cu128"
    engine.docker("run", "--name", "installs", engine.load("small"), "sh", "-c", f": {install}")
    engine.docker("commit", "installs", "gpuconsole-test/installed:1")
    try:
        done = gpuconsole(engine, "images", "--json", base={**os.environ, **nvml_box.env()})
        found = next(each for each in done.document["images"] if "gpuconsole-test/installed:1" in each["tags"])
        assert found["facts"]["torch"] == {"value": "2.9.1", "source": "history", "key": "torch==2.9.1"}
        assert (found["facts"]["cuda"]["value"], found["verdict"]) == ("12.8", "runs")
    finally:
        engine.docker("rm", "-f", "installs")
        engine.docker("rmi", "gpuconsole-test/installed:1")


@pytest.mark.engine
def test_a_launch_warns_of_an_image_that_will_not_run(engine_modern: Engine, nvml_box: NvmlBox) -> None:
    base = {**os.environ, **nvml_box.env()}
    old = "pytorch/pytorch:2.0.0-cuda11.7-cudnn8-runtime"
    told = gpuconsole(engine_modern, "launch", "--dry-run", "--gpus", "1", old, base=base)
    assert told.code == 0
    assert f"{old} will not run here: its torch has no code for compute capability 9.0" in told.talk
    assert "pytorch/pytorch:2.1.2-cuda11.8-cudnn8-runtime would." in told.talk
    phantom = "pytorch/pytorch:2.9.0-cuda11.8-cudnn9-runtime"
    never = gpuconsole(engine_modern, "launch", "--dry-run", "--gpus", "1", phantom, base=base)
    assert "PyTorch published no image of 2.9 with CUDA 11.8; there are those with 12.6, 12.8, 13.0." in never.talk
    for arguments in (("--gpus", "none", old), ("--gpus", "1", engine_modern.load("small")), ("--gpus", "1", "a/b:1")):
        quiet = gpuconsole(engine_modern, "launch", "--dry-run", *arguments, base=base)
        assert quiet.code == 0
        assert "will not run" not in quiet.talk

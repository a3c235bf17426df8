"""`build` on real engines: a base of the rig, packages from an index on loopback, and everything between is real."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuconsole.images.torchbuilds import shipped_builds
from tests.cli.engines import wait_until
from tests.cli.projects import Project, in_registry, records
from tests.rig.engines import Engine
from tests.rig.packages import PackageIndex, installed_pip, torch_wheels, wheel
from tests.rig.registry import Registry
from tests.rig.terminal import Terminal

pytestmark = pytest.mark.engine

RELEASE = shipped_builds().release("2.9.1")
TOOLS = shipped_builds().tools
BIG = 4 << 20
"""Bytes that pip tells the progress of."""


@pytest.fixture(scope="module")
def wheels() -> list[tuple[str, bytes]]:
    tools = [
        wheel(
            name,
            TOOLS[name],
            {f"{name}/__init__.py": b"def main(): print('here')\n"},
            scripts=(f"{name} = {name}:main",),
        )
        for name in ("jupyterlab", "tensorboard")
    ]
    torch = torch_wheels(RELEASE.torch, RELEASE.vision, RELEASE.audio, cuda="12.8", more=BIG)
    return [
        installed_pip(TOOLS["pip"]),
        wheel("setuptools", TOOLS["setuptools"], {"setuptools/__init__.py": b""}),
        *tools,
        *torch,
    ]


@pytest.fixture
def index(wheels: list[tuple[str, bytes]]) -> Iterator[PackageIndex]:
    server = PackageIndex(wheels)
    yield server
    server.close()


def nameless(engine: Engine) -> set[str]:
    """What a build may leave behind."""
    return set(engine.docker("images", "--all", "--quiet", "--filter", "dangling=true").stdout.split())


def test_an_image_is_built_checked_known_and_left_by_nobody(
    engine_modern: Engine,
    index: PackageIndex,
    tmp_path: Path,
    open_terminal: Callable[..., Terminal],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project, base = Project(engine_modern, tmp_path), engine_modern.load("python")
    options = ("--base", base, "--index-url", index.url, "--network", "host")
    build = ("build", "--torch", "2.9", "--cuda", "12.8", *options)
    before = nameless(engine_modern)

    # What there is to download is told in bytes, the result as JSON, and the check of it as what it is.
    done = project.run(*build, "--tag", "pytorch-cuda:v2.9", "--json")
    first, *events = records(done.text)
    assert first == {
        "schema": "gpuconsole.build/1", "tag": "pytorch-cuda:v2.9", "torch": "2.9.1+cu128", "cuda": "12.8",
        "base": base,
    }  # fmt: skip
    steps = [event for event in events if event["event"] == "progress"]
    assert {step["steps"] for step in steps if step["step"]} == {14}
    (built,) = [event for event in events if event["event"] == "built"]
    assert (built["torch"], built["torchvision"], built["torchaudio"]) == ("2.9.1+cu128", RELEASE.vision, RELEASE.audio)
    assert built["id"] == engine_modern.docker("inspect", "-f", "{{.Id}}", "pytorch-cuda:v2.9").stdout.strip()
    (checked,) = [event for event in events if event["event"] == "checked"]
    assert checked["verdict"]["status"] == "fail"  # a torch of two lines is not fit for training, and that is said
    (verdict,) = [event for event in events if event["event"] == "verdict"]
    assert "seen-in-check" in {reason["id"] for reason in verdict["reasons"]}
    assert done.code == 1

    # Inside: nobody's root, a place to work for any user, and the packages held together.
    inside = (
        "id -u; pwd; jupyterlab; touch here ~/there; pip install --index-url {} torch==1 2>&1 | tail -1; echo $USER"
    )
    told = engine_modern.docker(
        "run", "--rm", "--network", "host", "pytorch-cuda:v2.9", "sh", "-c", inside.format(index.url)
    )
    assert told.stdout.splitlines()[:3] == ["1000", "/workspace", "here"]
    other = "touch here ~/there && pip uninstall -qy tensorboard && python -c 'import getpass as g; print(g.getuser())'"
    told = engine_modern.docker("run", "--rm", "--user", "4321:4321", "pytorch-cuda:v2.9", "sh", "-c", other)
    assert told.stdout.split() == ["torch"]
    history = engine_modern.docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", "pytorch-cuda:v2.9").stdout
    assert "torchvision==0.24.1+cu128" in history

    # What went in, and what the check saw, is known from then on.
    (row,) = [row for row in project.run("images", "--json").document["images"] if "pytorch-cuda:v2.9" in row["tags"]]
    assert row["seen_at"] is not None
    assert row["facts"]["torch"] == {**row["facts"]["torch"], "value": "2.9.1+cu128", "source": "check"}
    assert row["facts"]["system"]["value"] == "debian 12"
    assert "seen-in-check" in {reason["id"] for reason in row["reasons"]}
    shown = project.run("image", "inspect", "pytorch-cuda:v2.9").text
    assert "torch 2.9.1+cu128 (a check on " in shown
    assert "pytorch-cuda:v2.9: what is inside was seen in a check on " in project.run("images").talk
    engine_modern.docker("run", "-d", "--name", "of-ours", "pytorch-cuda:v2.9", "sleep", "1000000")
    assert "torch 2.9.1+cu128 (check)" in project.run("inspect", "of-ours").text
    engine_modern.docker("rm", "-f", "of-ours")

    # The same again costs nothing, and prints the name alone.
    again = project.run(*build, "--no-check")
    assert (again.code, again.text) == (0, "pytorch-cuda:2.9.1-cu128\n")
    assert "installing torch 2.9.1 for CUDA 12.8" in again.talk
    assert "Here: " in again.talk
    assert "\x1b" not in again.talk

    # What the index lacks is named, and nothing is left of the try.
    kept = nameless(engine_modern)
    lacking = project.run("build", "--torch", "2.8", "--cuda", "12.8", *options, "--json")
    assert lacking.code == 5
    assert records(lacking.text)[-1]["event"] == "failed"
    assert "has no torch==2.8.0+cu128" in lacking.talk
    assert nameless(engine_modern) == kept

    # Ctrl+c in the middle of a download ends it in the engine too.
    index.files |= dict(torch_wheels("2.9.0", "0.24.0", "2.9.0", cuda="12.8", more=BIG))
    index.hold.clear()
    terminal = open_terminal(engine_modern, *build[:2], "2.9.0", *build[3:], XDG_STATE_HOME=str(tmp_path / "state"))
    terminal.wait_for("installing torch 2.9.0", patience_s=90)
    wait_until(lambda: any("torch-2.9.0" in path for path in index.asked), "the download of torch")
    terminal.send("\x03")
    assert terminal.wait(patience_s=60) == 130
    assert "was not built" in terminal.text
    assert engine_modern.docker("ps", "--all", "--quiet").stdout == ""
    assert nameless(engine_modern) == kept
    assert before <= kept


def test_an_old_engine_builds_on_a_base_from_a_registry_and_pins_it(
    engine_old: Engine, registry: Registry, index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = Project(engine_old, tmp_path)
    base = in_registry(engine_old, registry, "org/base:1", image="python")
    digest = registry.digest("org/base", "1")
    wanted = ("--torch", "2.9.1", "--base", base, "--index-url", index.url, "--network", "host")
    printed = project.run("build", "--print", *wanted)
    assert f"FROM {base}@{digest}\n" in printed.text
    never = project.run("build", *wanted, "--pull", "never")
    assert never.code == 5
    assert "--pull never forbids" in never.talk
    done = project.run("build", *wanted, "--no-check", env={"GPUCONSOLE_BUILD_NETWORK": "host"})
    assert (done.code, done.text) == (0, "pytorch-cuda:2.9.1-cu128\n"), done.talk
    labels = engine_old.docker("inspect", "-f", "{{json .Config.Labels}}", "pytorch-cuda:2.9.1-cu128").stdout
    assert f'"org.opencontainers.image.base.digest":"{digest}"' in labels
    assert '"gpuconsole.torch":"2.9.1+cu128"' in labels
    # By hand it is the very same: no step has to be carried out again.
    before = engine_old.docker("inspect", "-f", "{{.Id}}", "pytorch-cuda:2.9.1-cu128").stdout
    (tmp_path / "Dockerfile").write_text(printed.text)
    engine_old.docker(
        "build",
        "--network",
        "host",
        "--tag",
        "by-hand:1",
        "--file",
        str(tmp_path / "Dockerfile"),
        str(tmp_path / "state"),
    )
    by_hand = engine_old.docker("inspect", "-f", "{{.RootFS.Layers}}", "by-hand:1").stdout
    assert by_hand == engine_old.docker("inspect", "-f", "{{.RootFS.Layers}}", before.strip()).stdout


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--torch", "2.9", "--cuda", "12.1"), 2, "There are builds for CUDA 12.6, 12.8, 12.9 and 13.0"),
        (("--torch", "3"), 2, "There is no PyTorch 3"),
        (("--index-url", "https://user:secret@mirror.example"), 2, "login"),
        (("--print", "--json"), 2, "one of them"),
        (("--no-check", "--gpus", "1"), 2, "--no-check leaves out"),
        (("--pull", "sometimes"), 2, "sometimes"),
        (("--base", "gpuconsole-test/not-here:1", "--pull", "never"), 5, "is not here"),
        (("--base", "gpuconsole-test/bare:1", "--index-url", "http://127.0.0.1:9/", "--no-check"), 5, "has no /bin/sh"),
        (("--base", "gpuconsole-test/small:1", "--index-url", "http://127.0.0.1:9/", "--no-check"), 5, "has no Python"),
    ],
)
def test_what_cannot_be_built(
    engine_modern: Engine, tmp_path: Path, options: tuple[str, ...], code: int, words: str
) -> None:
    engine_modern.load("small")
    engine_modern.load("bare")
    before = nameless(engine_modern)
    done = Project(engine_modern, tmp_path).run("build", *options)
    assert words in done.talk
    assert "secret" not in done.talk
    assert done.code == code
    assert "Traceback" not in done.talk
    assert done.text == ""
    assert nameless(engine_modern) == before
    assert engine_modern.docker("ps", "--all", "--quiet").stdout == ""


def test_readonly_refuses_it_and_prints_the_dockerfile_all_the_same(engine_modern: Engine, tmp_path: Path) -> None:
    project = Project(engine_modern, tmp_path)
    refused = project.run("--readonly", "build")
    assert refused.code == 7
    base = engine_modern.load("python")
    printed = project.run("--readonly", "build", "--print", "--torch", "2.9", "--cuda", "12.8", "--base", base)
    assert printed.code == 0
    assert f"\nFROM {base}\n" in printed.text
    assert "without a digest" in printed.talk

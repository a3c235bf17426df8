"""``gpuconsole profiles`` and profiles at ``launch``: what is printed, exit codes, and the question about it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from gpuconsole.cli.main import main
from gpuconsole.core.errors import ExitCode
from gpuconsole.services.profiles import user_file
from tests.rig.terminal import Terminal

TRAIN = """
[profiles.base]
image = "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime"
volumes = [".:/workspace"]

[profiles.train]
description = "as always"
extends = "base"
gpus = 2
command = "python train.py --key ${WANDB_API_KEY}"
env = { WANDB_API_KEY = "${WANDB_API_KEY}", LR = 0.1 }
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder one stands in, with a file of profiles."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WANDB_API_KEY", "hush")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    (folder / "gpuconsole.toml").write_text(TRAIN)
    return folder


def said(capture: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capture.readouterr()
    assert "Traceback" not in err
    return code, out, err


def test_the_list_judges_each_profile(project: Path, capsys: Capture) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text('[profiles.mine]\nimage = "a:1"\n')
    code, out, err = said(capsys, "profiles")
    assert (code, err) == (ExitCode.OK, "")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert list(rows) == ["NAME", "base", "train", "mine"]
    assert rows["train"].split()[2:5] == ["2", "asks", "./gpuconsole.toml"]
    assert rows["train"].endswith("as always")
    assert rows["mine"].split()[2:4] == ["–", "ok"]

    (project / "gpuconsole.toml").write_text(TRAIN + 'gpu = 2\nports = ["x"]\n[profiles.loop]\nextends = "loop"\n')
    code, out, err = said(capsys, "profiles")
    assert code == ExitCode.BAD_FILE
    assert "train: line 12, train.gpu: there is no such field; did you mean 'gpus'?" in err
    assert "loop: line 15, loop.extends: it goes in a circle: loop → loop" in err
    assert "mine" in out


REFUSED = {
    "the whole machine": ('volumes = ["/:/host"]', "mounts /, "),
    "the machine's settings": ('volumes = ["/etc:/settings:ro"]', "mounts /etc, to be read"),
    "your home": ('volumes = ["~:/home"]', "/home, "),
    "a device": ('devices = ["/dev/kvm"]', "gives the device /dev/kvm"),
    "every right": ("privileged = true", "(privileged)"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_profile_that_launch_refuses_is_listed_so_with_the_same_words(
    project: Path, capsys: Capture, what: str
) -> None:
    line, words = REFUSED[what]
    made = f"""{TRAIN}
[profiles.danger]
image = "a:1"
{line}
[profiles.below]
extends = "danger"
[profiles.mistaken]
extends = "danger"
ports = ["x"]
[profiles.bare]
{line}
"""
    (project / "gpuconsole.toml").write_text(made)
    code, _, refused = said(capsys, "launch", "danger")
    assert code == ExitCode.REFUSED
    code, out, err = said(capsys, "profiles")
    states = {row.split()[0]: row for row in out.splitlines()}
    told = {row.partition(": ")[0]: row for row in err.splitlines()}
    for name in ("danger", "below"):
        assert " refused " in states[name]
        assert words in told[name]
        reason = told[name].partition("since it ")[2].partition("; --force")[0]
        assert reason in refused, "the list and the launch say the same"
    assert " asks " in states["train"]
    assert "train" not in told
    assert " 1 mistake " in states["mistaken"]
    assert " to extend " in states["bare"]
    assert code == ExitCode.BAD_FILE, "of the mistake"
    (project / "gpuconsole.toml").write_text(made.replace('ports = ["x"]', ""))
    code, out, _ = said(capsys, "profiles", "--json")
    assert code == ExitCode.OK
    listed = {each["name"]: each["refused"] for each in json.loads(out)["profiles"]}
    assert words in listed["danger"]
    assert listed["train"] is None


def test_what_is_refused_of_a_project_is_not_of_ones_own_file(project: Path, capsys: Capture) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text('[profiles.mine]\nimage = "a:1"\nprivileged = true\n')
    code, out, err = said(capsys, "profiles")
    assert (code, err) == (ExitCode.OK, "")
    assert next(line for line in out.splitlines() if line.startswith("mine")).split()[3] == "ok"


def test_a_list_as_json_holds_no_secret(project: Path, capsys: Capture) -> None:
    code, out, _ = said(capsys, "profiles", "--json")
    assert code == ExitCode.OK
    assert "hush" not in out
    listed = json.loads(out)
    assert listed["schema"] == "gpuconsole.profiles/1"
    assert listed["files"] == [{"path": str(project / "gpuconsole.toml"), "of_project": True}]
    train = next(each for each in listed["profiles"] if each["name"] == "train")
    assert train["reaches"] == ["passes WANDB_API_KEY of this shell"]
    assert train["fields"]["env"] == {"WANDB_API_KEY": "${WANDB_API_KEY}", "LR": "0.1"}
    assert train["problems"] == []
    _, shown, _ = said(capsys, "profiles", "show", "train", "--json")
    assert json.loads(shown) == {"schema": "gpuconsole.profile/1", "profile": train}


def test_one_is_shown_with_all_it_extends(project: Path, capsys: Capture) -> None:
    code, out, err = said(capsys, "profiles", "show", "train")
    assert code == ExitCode.OK
    assert out.startswith('[profiles.train]\nimage = "pytorch/pytorch:')
    assert "hush" not in out + err
    assert "It passes WANDB_API_KEY of this shell." in err
    code, _, err = said(capsys, "profiles", "show", "trian")
    assert code == ExitCode.NOT_FOUND
    assert "There is no profile trian; did you mean 'train'?\n" in err


def test_the_schema_is_printed_and_nothing_is_no_failure(project: Path, capsys: Capture) -> None:
    code, out, _ = said(capsys, "profiles", "schema")
    assert (code, json.loads(out)["$id"]) == (ExitCode.OK, "gpuconsole.profiles/1")
    (project / "gpuconsole.toml").unlink()
    code, out, err = said(capsys, "profiles")
    assert (code, out) == (ExitCode.OK, "")
    assert "There is no gpuconsole.toml here" in err
    assert said(capsys, "--readonly", "profiles", "save", "a", "b")[0] == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("train", "--force", "outside-project", "--cpus", "x"), ExitCode.USAGE, "--cpus: 'x' is no number of cores"),
        (("train",), ExitCode.REFUSED, "--force outside-project"),
        (("train", "--force", "outside-project"), ExitCode.NO_ENGINE, "engine"),
        (("trian", "--pull", "never"), ExitCode.NO_ENGINE, "engine"),
        (("Train", "--image", "a"), ExitCode.USAGE, "Did you mean the profile train?"),
        (("pytorch/pytorch:1",), ExitCode.NO_ENGINE, "engine"),
        (("small", "--image", "a"), ExitCode.USAGE, "'small' is no profile, and --image is for one"),
        (("base", "--image", "A B"), ExitCode.USAGE, "IMAGE: 'A B'"),
        (("train", "--format", "toml"), ExitCode.USAGE, "--format says what --dry-run prints"),
        (("train", "--format", "yaml", "--dry-run"), ExitCode.USAGE, "'yaml' is not one of"),
        (("train", "--format", "toml", "--dry-run", "--json"), ExitCode.USAGE, "exclude each other"),
    ],
)
def test_a_word_is_a_profile_or_an_image(
    project: Path, capsys: Capture, arguments: tuple[str, ...], code: ExitCode, told: str
) -> None:
    done, out, err = said(capsys, "launch", *arguments)
    assert (done, out) == (code, ""), err
    assert told in err


def test_a_file_with_mistakes_is_in_the_way_of_its_profiles_only(project: Path, capsys: Capture) -> None:
    (project / "gpuconsole.toml").write_text("[profiles.train]\ngpu = 1\n[profiles.good]\nimage = 'a'\n")
    assert said(capsys, "launch", "train")[0] == ExitCode.BAD_FILE
    assert said(capsys, "launch", "good")[0] == ExitCode.NO_ENGINE
    (project / "gpuconsole.toml").write_text("[profiles.train\n")
    assert said(capsys, "launch", "train")[0] == ExitCode.BAD_FILE
    assert said(capsys, "launch", "pytorch/pytorch:1")[0] == ExitCode.NO_ENGINE


def test_what_a_project_takes_is_asked_once(project: Path, tmp_path: Path) -> None:
    def launch(answer: str) -> tuple[int, str]:
        terminal = Terminal(
            [sys.executable, "-m", "gpuconsole", "launch", "train"], env=os.environ, folder=tmp_path, columns=200
        )
        if answer:
            terminal.wait_for("as long as this stays so? [y/N]")
            terminal.send(answer)
        code = terminal.wait()
        shown = terminal.text
        terminal.close()
        return code, shown

    code, shown = launch("n\n")
    assert code == ExitCode.REFUSED
    assert "passes WANDB_API_KEY of this shell" in shown
    assert launch("y\n")[0] == ExitCode.NO_ENGINE
    code, shown = launch("")
    assert code == ExitCode.NO_ENGINE
    assert "passes" not in shown

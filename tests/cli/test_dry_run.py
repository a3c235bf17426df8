"""``launch --dry-run``: it makes nothing at all, and what it names is made only when that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuconsole.core.errors import ExitCode
from tests.cli.engines import Done, environment
from tests.engine.launching import names
from tests.rig import prepared
from tests.rig.engines import Engine
from tests.rig.gpus import TWO_GPUS
from tests.rig.nvml.presets import h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState

pytestmark = pytest.mark.engine


def run(engine: Engine, *arguments: str, env: dict[str, str], cwd: Path | None = None) -> Done:
    done = prepared.gpuconsole(*arguments, env=environment(engine) | env, folder=cwd)
    return Done(done.returncode, done.stdout, done.stderr)


def _files(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*"))


@pytest.mark.parametrize("form", ["docker", "compose", "toml"])
def test_a_dry_run_of_no_kind_makes_anything(
    engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path, form: str
) -> None:
    nvml_box.write(NvmlState(gpus=tuple(h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)))
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    image = engine_modern.load("small")
    (project / "gpuconsole.toml").write_text(f'[profiles.mine]\nimage = "{image}"\nenv = {{ A = "${{B_TOKEN}}" }}\n')
    env = {
        **nvml_box.env(), "HOME": str(home), "SUDO_UID": "12345", "SUDO_GID": "12345", "B_TOKEN": "xyz",
        **{f"XDG_{kind}_HOME": str(home / kind) for kind in ("STATE", "CONFIG", "CACHE", "DATA")},
    }  # fmt: skip
    before = _files(tmp_path)
    kinds = ("shell", "jupyter", "tensorboard", "torchrun", "script")
    words = {"torchrun": ("--", "train.py"), "script": ("--", "train.py")}
    more = {"tensorboard": ("--logdir", "/w")}
    for kind in kinds:
        arguments = (*more.get(kind, ()), "-v", ".:/w", "-v", "fresh:/fresh", *words.get(kind, ()))
        done = run(engine_modern, "launch", image, "--dry-run", "--format", form, "--kind", kind, *arguments, env=env,
                   cwd=project)  # fmt: skip
        assert done.code == 0, done.talk
    done = run(engine_modern, "launch", "mine", "--dry-run", "--format", form, "-v", ".:/w", env=env, cwd=project)
    assert done.code == 0, done.talk
    assert "xyz" not in done.text
    assert _files(tmp_path) == before
    assert names(engine_modern) == []
    assert not engine_modern.get("/volumes")["Volumes"]


def test_the_files_that_a_printed_form_names_are_made_when_asked_for(engine_modern: Engine, tmp_path: Path) -> None:
    arguments = ("launch", engine_modern.load("small"), "--gpus", "none", "--kind", "jupyter", "--dry-run")
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    told = run(engine_modern, *arguments, env=env)
    assert "--write-files" in told.talk
    made = run(engine_modern, *arguments, "--write-files", env=env)
    (token,) = (tmp_path / "state").rglob("jupyter_token")
    assert f"Made for it: {token}." in made.talk
    assert f"source={token}," in made.text
    for wrong in (
        ("--readonly", *arguments, "--write-files"),
        (*arguments[:-1], "--write-files"),
        (*arguments, "--write-files", "--format", "toml"),
    ):
        assert run(engine_modern, *wrong, env=env).code in (ExitCode.USAGE, ExitCode.REFUSED)


def test_a_bare_word_is_asked_about_before_it_is_pulled_and_an_image_that_is_here_is_one(
    engine_modern: Engine, tmp_path: Path
) -> None:
    image = engine_modern.load("small")
    engine_modern.docker("tag", image, "tt")
    (tmp_path / "gpuconsole.toml").write_text(f'[profiles.t]\nimage = "{image}"\n[profiles.train]\nimage = "{image}"\n')
    for word, meant in (("T", "t"), ("trian", "train"), ("TRAIN", "train"), ("train2", "train")):
        done = run(engine_modern, "launch", word, "--gpus", "none", "--dry-run", env={}, cwd=tmp_path)
        assert (done.code, done.text) == (ExitCode.NOT_FOUND, ""), done.talk
        assert f"Did you mean the profile {meant}?" in done.talk
    here = run(engine_modern, "launch", "tt", "--gpus", "none", "--dry-run", env={}, cwd=tmp_path)
    assert here.code == 0, here.talk
    assert "Note: there is no profile tt, so it is taken as the image; there is a profile t." in here.talk
    other = run(engine_modern, "launch", "nosuchprofile", "--gpus", "none", "--dry-run", env={}, cwd=tmp_path)
    assert "there is no profile nosuchprofile" in other.talk
    engine_modern.docker("rmi", "tt")


def test_a_line_with_line_breaks_says_which_shells_read_it(engine_modern: Engine) -> None:
    arguments = ("launch", engine_modern.load("small"), "--gpus", "none", "--dry-run")
    assert "needs bash" not in run(engine_modern, *arguments, "-e", "A=a b", env={}).talk
    assert "needs bash" in run(engine_modern, *arguments, "-e", "A=a\nb", env={}).talk

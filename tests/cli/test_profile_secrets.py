"""A secret of the shell that a profile puts into a launch: given to the container, and shown and kept nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.engines import Done, environment
from tests.rig import prepared
from tests.rig.engines import Engine

SECRET = "hunter22"  # like an ordinary word, so that only where it came from tells what it is


@pytest.mark.engine
def test_it_is_shown_and_kept_nowhere(engine_modern: Engine, tmp_path: Path) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    project.mkdir()
    (project / "gpuconsole.toml").write_text(
        f'[profiles.base]\nimage = "{engine_modern.load("small")}"\ngpus = "none"\nuser = "image"\n'
        'env = { DB = "${DB_PASSWORD}", URL = "db://me@${DB_PASSWORD}/x" }\n'
        '[profiles.work]\nextends = "base"\nname = "work"\ncommand = ["true", "--db=${DB_PASSWORD}"]\n'
        'labels = { note = "${DB_PASSWORD}" }\n'
    )

    def run(*arguments: str) -> Done:
        env = environment(engine_modern, DB_PASSWORD=SECRET, XDG_STATE_HOME=str(state))
        done = prepared.gpuconsole(*arguments, env=env, folder=project)
        return Done(done.returncode, done.stdout, done.stderr)

    launched = run("launch", "work", "--force", "outside-project", "--json")
    assert launched.code == 0, launched.talk
    inspected = engine_modern.get("/containers/work/json")
    assert {f"DB={SECRET}", f"URL=db://me@{SECRET}/x"} <= set(inspected["Config"]["Env"])
    assert inspected["Config"]["Cmd"] == ["true", f"--db={SECRET}"]
    shown = [launched]
    for arguments in (
        ("profiles",), ("profiles", "--json"), ("profiles", "show", "work"), ("profiles", "show", "work", "--json"),
        ("runs", "work"), ("runs", "--json"), ("diff", "work", "work", "--json"),
        *(("launch", "work", "--dry-run", "--format", form) for form in ("docker", "compose", "toml")),
        ("launch", "work", "--dry-run", "--json"),
    ):  # fmt: skip
        done = run(*arguments)
        assert done.code == 0, (arguments, done.talk)
        shown.append(done)
    assert not [done for done in shown if SECRET in done.text + done.talk]
    kept = [path for path in state.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert kept == []
    assert "${DB_PASSWORD}" in run("profiles", "show", "work").text

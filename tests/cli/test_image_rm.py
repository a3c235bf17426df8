"""`image rm` and `image prune`: what goes, what stays, and that nothing goes unasked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.engines import run_to_end, start
from tests.cli.projects import Project, moved
from tests.rig.engines import Engine
from tests.rig.fresh import fresh_image
from tests.rig.registry import Registry
from tests.rig.terminal import Terminal

pytestmark = pytest.mark.engine


@pytest.fixture
def project(engine: Engine, tmp_path: Path) -> Project:
    return Project(engine, tmp_path)


@pytest.fixture
def modern(engine_modern: Engine, tmp_path: Path) -> Project:
    return Project(engine_modern, tmp_path)


def extra(project: Project, name: str) -> str:
    """An image of its own under ``name``."""
    project.engine.docker("run", "--name", "maker", project.engine.load("small"), "sh", "-c", f"echo {name} > /x")
    project.engine.docker("commit", "maker", name)
    project.engine.docker("rm", "maker")
    return name


def test_a_tag_goes_and_with_the_last_one_the_image(project: Project) -> None:
    first = extra(project, "org/rm:1")
    project.engine.docker("tag", first, "org/rm:2")
    done = project.run("image", "rm", "--yes", first)
    assert done.code == 0, done.talk
    assert done.text == f"{first}\n"
    assert "only this name" in done.talk
    assert project.has("org/rm:2")
    done = project.run("image", "rm", "--yes", "--json", "org/rm:2")
    assert done.code == 0, done.talk
    (row,) = done.document["images"]
    assert row["whole"] is True
    assert done.document["freed_bytes_at_most"] == row["size_bytes"] > 0
    assert not project.has("org/rm:2")
    assert not project.has(row["id"])


def test_by_its_id_an_image_goes_with_all_its_names(project: Project, registry: Registry) -> None:
    first = extra(project, "org/whole:1")
    own = project.engine.docker("inspect", "-f", "{{.Id}}", first).stdout.strip()
    project.engine.docker("tag", first, "org/other-name:1")
    done = project.run("image", "rm", "-y", own.removeprefix("sha256:")[:12])
    assert done.code == 0, done.talk
    assert not project.has(first)
    assert not project.has("org/other-name:1")
    assert not project.has(own)


def test_nothing_goes_unasked(modern: Project) -> None:
    name = extra(modern, "org/asked:1")
    for arguments in (("rm", name), ("prune", "--all")):
        done = modern.run("image", *arguments)
        assert done.code == 7
        assert "--yes" in done.talk
        assert name in done.talk
        assert "MiB" in done.talk
        done = modern.run("--readonly", "image", *arguments, "--yes")
        assert done.code == 7
        done = modern.run("--readonly", "image", *arguments, "--dry-run")
        assert done.code == 0, done.talk
        assert "Nothing was removed" in done.talk
    assert modern.has(name)


@pytest.mark.parametrize(("answer", "code"), [("n", 7), ("y", 0)])
def test_the_answer_counts(modern: Project, open_terminal: Callable[..., Terminal], answer: str, code: int) -> None:
    name = extra(modern, "org/answered:1")
    terminal = open_terminal(modern.engine, "image", "rm", name)
    terminal.wait_for(f"Remove {name}, ")
    terminal.send(f"{answer}\n")
    assert terminal.wait() == code
    assert modern.has(name) is (code != 0)


def retagged(project: Project, name: str) -> None:
    """The name leads to another image."""
    project.engine.docker("tag", extra(project, "org/later:1"), name)


def named_again(project: Project, name: str) -> None:
    """The image has got a name that nobody was asked about."""
    project.engine.docker("tag", name, "org/later:1")


@pytest.mark.parametrize("arguments", [("rm", "org/waited:1"), ("rm", "ID"), ("prune", "--all")])
@pytest.mark.parametrize("change", [retagged, named_again])
def test_what_changes_while_a_question_stands_is_not_what_was_asked(
    project: Project,
    open_terminal: Callable[..., Terminal],
    arguments: tuple[str, ...],
    change: Callable[[Project, str], None],
) -> None:
    name = extra(project, "org/waited:1")
    own = project.engine.docker("inspect", "-f", "{{.Id}}", name).stdout.strip()
    terminal = open_terminal(project.engine, "image", *(own if each == "ID" else each for each in arguments))
    terminal.wait_for("at most?")
    change(project, name)
    there = project.engine.docker("inspect", "-f", "{{.Id}}", name).stdout
    terminal.send("y\n")
    code = terminal.wait()
    assert project.has("org/later:1")
    assert project.engine.docker("inspect", "-f", "{{.Id}}", name).stdout == there
    assert code == (6 if arguments[0] == "rm" else 0)
    terminal.wait_for("org/waited:1 stays")


@pytest.mark.parametrize("running", [True, False])
def test_what_a_container_was_made_from_stays(project: Project, running: bool) -> None:
    name = extra(project, "org/used:1")
    project.engine.docker("run", "-d", "--name", "user", name, *(("sleep", "100000") if running else ("true",)))
    done = project.run("image", "rm", "--yes", name)
    assert done.code == 6
    assert "user was made from it" in done.talk
    assert "gpuconsole rm user" in done.talk
    done = project.run("image", "prune", "--all", "--yes", "--json")
    assert done.code == 0
    assert name in {row["name"] for row in done.document["kept"]}
    assert project.has(name)


def test_what_is_pinned_stays_in_every_project(project: Project, registry: Registry) -> None:
    target = fresh_image(registry, name="org/kept:1", megabytes=())
    assert project.run("pull", "--pin", target).code == 0
    digest = registry.digest("org/kept", "1")
    pinned = f"{target.rpartition(':')[0]}@{digest}"
    moved(registry, target)
    project.engine.docker("pull", target)  # now the pinned one has no tag any more
    elsewhere = project.folder / "elsewhere"
    elsewhere.mkdir()
    other = project.folder.parent / f"{project.folder.name}-other"
    other.mkdir()
    for folder in (project.folder, elsewhere, other):
        done = project.run("image", "prune", "--yes", "--json", folder=folder)
        assert done.code == 0, done.talk
        (row,) = [row for row in done.document["kept"] if "pins it" in row["why"]]
        assert "<none>" not in row["name"]
        done = project.run("image", "prune", "--all", "--yes", folder=folder)
        assert done.code == 0, done.talk
        assert project.has(pinned)
        done = project.run("image", "rm", "--yes", pinned, folder=folder)
        assert done.code == 6
        assert f"gpuconsole pin --remove {target}" in done.talk
    assert not project.has(target)
    assert project.run("pin", "--remove", target).code == 0
    done = project.run("image", "prune", "--yes")
    assert done.code == 0, done.talk
    assert not project.has(pinned)


def test_leftovers_without_a_name_go(modern: Project) -> None:
    name = extra(modern, "org/left:1")
    own = modern.engine.docker("inspect", "-f", "{{.Id}}", name).stdout.strip()
    modern.engine.docker("run", "--name", "maker", modern.engine.load("small"), "sh", "-c", "echo 2 > /y")
    modern.engine.docker("commit", "maker", name)
    modern.engine.docker("rm", "maker")
    done = modern.run("image", "prune", "--yes", "--json")
    assert done.code == 0, done.talk
    assert own in {row["id"] for row in done.document["images"]}
    assert not modern.has(own)
    assert modern.has(name)
    assert "Nothing to remove" in modern.run("image", "prune").talk


def test_an_image_others_are_made_from_stays_and_the_rest_goes(modern: Project) -> None:
    base = extra(modern, "org/base:1")
    modern.engine.docker("run", "--name", "maker", base, "sh", "-c", "echo 2 > /y")
    modern.engine.docker("commit", "maker", "org/child:1")
    modern.engine.docker("rm", "maker")
    own = modern.engine.docker("inspect", "-f", "{{.Id}}", base).stdout.strip()
    done = modern.run("image", "rm", "--yes", base, "org/child:1")
    assert done.code == 0, done.talk
    assert not modern.has("org/child:1")
    assert not modern.has(base)
    assert not modern.has(own)


def test_what_is_not_there(modern: Project) -> None:
    name = extra(modern, "org/there:1.0")
    done = modern.run("image", "rm", "--yes", "org/there:1.1")
    assert done.code == 5
    assert f"Did you mean {name}" in done.talk
    done = modern.run("image", "rm", "--yes", "no-such-thing-at-all", name)
    assert done.code == 5
    assert not modern.has(name)


def test_pins_that_cannot_be_read_stop_a_prune(modern: Project) -> None:
    name = extra(modern, "org/unsure:1")
    modern.lock.write_text("x = ")
    done = modern.run("image", "prune", "--all", "--yes")
    assert done.code == 8
    assert "not known which images are pinned" in done.talk
    assert modern.has(name)


def test_a_container_of_another_image_is_no_reason(modern: Project) -> None:
    start(modern.engine, "alive")
    run_to_end(modern.engine, "over", command=("true",))
    name = extra(modern, "org/free:1")
    assert modern.run("image", "rm", "-y", name).code == 0
    assert not modern.has(name)

"""`start`, `stop`, `restart`, `pause` and `rm` on real engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.engines import gpuconsole, run_to_end, start, state
from tests.rig.engines import Engine
from tests.rig.kinds import RUNTIMES
from tests.rig.terminal import Terminal

pytestmark = pytest.mark.engine(*RUNTIMES)
MINE = ("--label", "gpuconsole.user=root")
THEIRS = ("--label", "gpuconsole.user=mei")


def test_the_whole_life(engine: Engine) -> None:
    start(engine, "box", *MINE)
    for arguments, after in [
        (["pause", "box"], "paused"),
        (["pause", "--resume", "box"], "running"),
        (["restart", "-t", "0", "box"], "running"),
        (["stop", "-t", "0", "box"], "exited"),
        (["start", "box"], "running"),
        (["rm", "--yes", "--force", "box"], ""),
    ]:
        done = gpuconsole(engine, *arguments)
        assert (done.code, done.text) == (0, "box\n"), done.talk
        assert state(engine, "box") == after


def test_what_is_already_so_is_a_success_with_a_note(engine_modern: Engine) -> None:
    start(engine_modern, "on")
    run_to_end(engine_modern, "off", command=("true",))
    for arguments, note in [
        (["start", "on"], "on: already running"),
        (["stop", "off"], "off: already stopped"),
        (["pause", "--resume", "on"], "on: is not paused"),
    ]:
        done = gpuconsole(engine_modern, *arguments)
        assert done.code == 0
        assert note in done.talk
    engine_modern.docker("pause", "on")
    assert "already paused" in gpuconsole(engine_modern, "pause", "on").talk
    done = gpuconsole(engine_modern, "start", "on")
    assert done.code == 6
    assert "pause --resume on" in done.talk
    assert gpuconsole(engine_modern, "pause", "off").code == 6


def test_one_that_fails_does_not_stop_the_others(engine_modern: Engine) -> None:
    start(engine_modern, "one")
    start(engine_modern, "two")
    done = gpuconsole(engine_modern, "stop", "-t", "0", "one", "nobody", "two", "one")
    assert (done.code, done.text) == (5, "one\ntwo\n")
    assert "'nobody'" in done.talk
    assert [state(engine_modern, name) for name in ("one", "two")] == ["exited", "exited"]


def test_grace_is_given(engine_modern: Engine) -> None:
    script = "trap 'sleep 2; echo saved; exit 0' TERM; while :; do sleep 0.1; done"
    start(engine_modern, "saves", command=("sh", "-c", script))
    start(engine_modern, "stubborn")
    assert gpuconsole(engine_modern, "stop", "-t", "20", "saves").code == 0
    assert "saved" in engine_modern.docker("logs", "saves").stdout
    assert gpuconsole(engine_modern, "stop", "-t", "1", "stubborn").code == 0
    assert engine_modern.docker("inspect", "-f", "{{.State.ExitCode}}", "stubborn").stdout.strip() == "137"


def test_a_paused_container_can_be_stopped_and_restarted(engine: Engine) -> None:
    start(engine, "box")
    engine.docker("pause", "box")
    assert gpuconsole(engine, "restart", "-t", "0", "box").code == 0
    assert state(engine, "box") == "running"
    engine.docker("pause", "box")
    assert gpuconsole(engine, "stop", "-t", "0", "box").code == 0
    assert state(engine, "box") == "exited"


def test_removing_asks_and_nobody_there_is_a_no(engine_modern: Engine) -> None:
    run_to_end(engine_modern, "box", command=("true",))
    done = gpuconsole(engine_modern, "rm", "box")
    assert (done.code, done.out) == (7, b"")
    assert "Remove container box" in done.talk
    assert "--yes" in done.talk
    assert state(engine_modern, "box") == "exited"
    assert gpuconsole(engine_modern, "rm", "--yes", "box").code == 0
    assert state(engine_modern, "box") == ""


@pytest.mark.parametrize(("answer", "code", "after"), [("y\r", 0, ""), ("n\r", 7, "exited"), ("\r", 7, "exited")])
def test_the_question_names_the_object_and_no_is_the_default(
    answer: str, code: int, after: str, engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    run_to_end(engine_modern, "precious", command=("true",))
    terminal = open_terminal(engine_modern, "rm", "precious")
    terminal.wait_for("Remove container precious (gpuconsole-test/small:1)?")
    terminal.send(answer)
    assert terminal.wait() == code
    assert state(engine_modern, "precious") == after


def test_ctrl_c_at_the_question_is_a_no(engine_modern: Engine, open_terminal: Callable[..., Terminal]) -> None:
    run_to_end(engine_modern, "precious", command=("true",))
    terminal = open_terminal(engine_modern, "rm", "precious")
    terminal.wait_for("?")
    terminal.wait_until_it_reads()
    terminal.send("\x03")
    assert terminal.wait() == 130
    assert state(engine_modern, "precious") == "exited"


def test_a_running_container_is_removed_with_force_only(engine_modern: Engine) -> None:
    start(engine_modern, "box")
    done = gpuconsole(engine_modern, "rm", "--yes", "box")
    assert done.code == 6
    assert "--force" in done.talk
    assert state(engine_modern, "box") == "running"


def test_anonymous_volumes_go_when_asked_for(engine: Engine) -> None:
    run_to_end(engine, "box", "-v", "/scratch", "-v", "kept:/data", command=("true",))
    assert len(engine.docker("volume", "ls", "-q").stdout.split()) == 2
    assert gpuconsole(engine, "rm", "--yes", "--volumes", "box").code == 0
    assert engine.docker("volume", "ls", "-q").stdout.split() == ["kept"]


CHANGES = {
    "start": "exited", "stop": "running", "restart": "running", "restart-stopped": "exited", "pause": "running",
    "resume": "paused", "rm": "exited", "check": "running",
}  # fmt: skip
"""What changes a container, or runs something in it, and how the container is before."""


def theirs(engine: Engine, before: str) -> None:
    """Make a container of another user, in the state ``before``."""
    start(engine, "theirs", *THEIRS)
    if before == "exited":
        engine.docker("kill", "theirs")
    elif before == "paused":
        engine.docker("pause", "theirs")


def words_of(change: str, *options: str) -> list[str]:
    """The command line for a change."""
    verb = {"restart-stopped": "restart", "resume": "pause"}.get(change, change)
    more = {"resume": ["--resume"], "stop": ["-t", "0"], "restart": ["-t", "0"], "restart-stopped": ["-t", "0"]}
    return [verb, *more.get(change, []), *options, "theirs"]


def signs_of_life(engine: Engine) -> str:
    return engine.docker("inspect", "-f", "{{.State.Status}} {{.State.StartedAt}}", "theirs").stdout


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_someone_elses_is_left_alone_where_nobody_is_asked(change: str, engine_modern: Engine) -> None:
    theirs(engine_modern, CHANGES[change])
    before = signs_of_life(engine_modern)
    for options in ([], ["--yes"]):
        done = gpuconsole(engine_modern, *words_of(change, *options))
        assert done.code == 7, done.talk
        assert "belongs to mei" in done.talk
        assert "--yes --others" in done.talk
    assert signs_of_life(engine_modern) == before
    done = gpuconsole(engine_modern, *words_of(change, "--yes", "--others"))
    assert "belongs to" not in done.talk
    assert done.code == (1 if change == "check" else 0), done.talk  # there is no Python in it, says the check
    if change == "rm":
        assert state(engine_modern, "theirs") == ""
    elif change != "check":
        assert signs_of_life(engine_modern) != before


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_someone_elses_asks_for_its_name(
    change: str, engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    theirs(engine_modern, CHANGES[change])
    before = signs_of_life(engine_modern)
    terminal = open_terminal(engine_modern, *words_of(change))
    terminal.wait_for("belongs to mei. Type its name to")
    terminal.send("y\r")
    assert terminal.wait() == 7
    assert signs_of_life(engine_modern) == before
    terminal = open_terminal(engine_modern, *words_of(change))
    terminal.wait_for("Type its name to")
    terminal.send("theirs\r")
    assert terminal.wait() == (1 if change == "check" else 0)


def test_removing_what_is_someone_elses_needs_both_options(engine_modern: Engine) -> None:
    run_to_end(engine_modern, "theirs", *THEIRS, command=("true",))
    assert gpuconsole(engine_modern, "rm", "--yes", "theirs").code == 7
    assert state(engine_modern, "theirs") == "exited"
    assert gpuconsole(engine_modern, "rm", "--yes", "--others", "theirs").code == 0


def test_a_main_process_of_another_user_counts_without_a_label(engine: Engine) -> None:
    start(engine, "theirs", "--user", "54321")
    done = gpuconsole(engine, "stop", "theirs")
    assert done.code == 7
    assert "belongs to 54321" in done.talk


def test_behind_sudo_the_caller_is_who_called_it(engine_modern: Engine) -> None:
    start(engine_modern, "box", *THEIRS)
    assert gpuconsole(engine_modern, "stop", "-t", "0", "box", SUDO_USER="mei").code == 0


def test_readonly_refuses_what_changes_something(engine_modern: Engine) -> None:
    start(engine_modern, "box")
    for verb in ("start", "stop", "restart", "pause", "rm", "shell", "attach", "check"):
        done = gpuconsole(engine_modern, "--readonly", verb, "box")
        assert (done.code, done.out) == (7, b""), verb
        assert "--readonly" in done.talk
        assert state(engine_modern, "box") == "running"
    for allowed in (["ps"], ["inspect", "box"], ["logs", "box"]):
        assert gpuconsole(engine_modern, "--readonly", *allowed).code == 0

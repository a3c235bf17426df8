"""`shell` on real engines, in real terminals."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuconsole.cli.main import main
from gpuconsole.core.errors import ExitCode
from tests.cli.engines import US, environment, start, state, wait_until
from tests.rig.engines import Engine
from tests.rig.fixtures import Bench
from tests.rig.kinds import RUNTIMES
from tests.rig.terminal import Terminal
from tests.rig.tmux import Tmux

pytestmark = pytest.mark.engine(*RUNTIMES)

LEAVE = "\x1d\x11"


def processes(engine: Engine, name: str) -> str:
    return engine.docker("top", name).stdout


def test_a_shell_gives_back_its_exit_code(engine: Engine, open_terminal: Callable[..., Terminal]) -> None:
    start(engine, "box")
    terminal = open_terminal(engine, "shell", "box")
    terminal.wait_for("#")
    terminal.send("echo $((40+2))\r")
    terminal.wait_for("42")
    terminal.send("exit 7\r")
    assert terminal.wait() == 7
    assert "ctrl+] ctrl+q" in terminal.text


def test_the_shell_has_the_terminals_size_and_follows_it(
    engine: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine, "box")
    terminal = open_terminal(engine, "shell", "box", columns=101, rows=37)
    terminal.wait_for("#")
    ask = "echo size=$(busybox stty size)=\r"
    terminal.send(ask)
    terminal.wait_for("size=37 101=")
    terminal.resize(66, 21)
    deadline = time.monotonic() + 60
    while "size=21 66=" not in terminal.text and time.monotonic() < deadline:
        terminal.send(ask)
        time.sleep(0.3)
    assert "size=21 66=" in terminal.text


def test_ctrl_c_and_ctrl_p_reach_the_shell_at_once(
    engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine_modern, "box")
    terminal = open_terminal(engine_modern, "shell", "box")
    terminal.wait_for("#")
    terminal.send("echo once-$((1+1))\r")
    terminal.wait_for("once-2")
    terminal.send("sleep 4321\r")
    wait_until(lambda: "sleep 4321" in processes(engine_modern, "box"), "sleep does not run")
    terminal.send("\x03")
    wait_until(lambda: "sleep 4321" not in processes(engine_modern, "box"), "sleep goes on")
    terminal.send("cat -v\r")
    wait_until(lambda: "cat -v" in processes(engine_modern, "box"), "cat does not run")
    terminal.send("\x10")
    terminal.wait_for("^P")


def test_detaching_leaves_the_shell_and_the_container_running(
    engine: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine, "box")
    terminal = open_terminal(engine, "shell", "box")
    terminal.wait_for("#")
    terminal.send("sleep 98765\r")
    wait_until(lambda: "sleep 98765" in processes(engine, "box"), "sleep does not run")
    terminal.send(LEAVE)
    assert terminal.wait() == 0
    assert "it goes on" in terminal.text
    assert "escape" not in terminal.text
    assert state(engine, "box") == "running"
    assert "sleep 98765" in processes(engine, "box")


def test_ten_times_in_and_out_leave_the_terminal_as_it_was(engine_modern: Engine, rig_bench: Bench) -> None:
    start(engine_modern, "box")
    tmux = Tmux(rig_bench.rig, env=environment(engine_modern))
    try:
        pane = tmux.session("sh")
        pane.send("PS1='out> '; stty -a > before; clear")
        pane.keys("Enter")
        for round_ in range(10):
            pane.send(f"{' '.join(US)} shell --here box; echo came-back-$(({round_}+200))")
            pane.keys("Enter")
            pane.wait_for("Shell in box")
            pane.send(f"echo in-$(({round_}+100))")
            pane.keys("Enter")
            pane.wait_for(f"in-{round_ + 100}")
            if round_ % 2:
                pane.keys("C-d")
            else:
                pane.keys("C-]", "C-q")
            pane.wait_for(f"came-back-{round_ + 200}")
        pane.send("clear; stty -a > after; cmp before after && echo same-$((1+1))")
        pane.keys("Enter")
        pane.wait_for("same-2")
    finally:
        tmux.close()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_the_terminal_restored(
    ending: signal.Signals, engine_modern: Engine, rig_bench: Bench, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine_modern, "box")
    folder = rig_bench.rig.folder
    ours_then = f"{' '.join(US)} shell box; echo code=$?"
    script = f"stty -a > {folder}/before; {ours_then}; stty -a > {folder}/after; echo all-done; sleep 1000"
    env = environment(engine_modern)
    terminal = Terminal(["sh", "-c", script], env=env, folder=folder)
    try:
        terminal.wait_for("#")
        ours = subprocess.run(["pgrep", "-P", str(terminal.process.pid)], capture_output=True, text=True, check=True)
        os.kill(int(ours.stdout.split()[0]), ending)
        terminal.wait_for(f"code={128 + ending}")
        terminal.wait_for("all-done")
        assert (folder / "after").read_text() == (folder / "before").read_text()
    finally:
        terminal.close()


def test_a_full_screen_program_left_behind_gives_the_screen_back(
    engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine_modern, "box")
    terminal = open_terminal(engine_modern, "shell", "box")
    terminal.wait_for("#")
    terminal.send("printf '\\033[?1049h'; echo full-$((1+1)); sleep 1000\r")
    terminal.wait_for("full-2")
    terminal.send(LEAVE)
    assert terminal.wait() == 0
    assert "\x1b[?1049l" in terminal.text


def test_a_frozen_engine_can_be_left(engine_modern: Engine, open_terminal: Callable[..., Terminal]) -> None:
    start(engine_modern, "box")
    terminal = open_terminal(engine_modern, "shell", "box")
    terminal.wait_for("#")
    engine_modern.freeze()
    try:
        terminal.resize(70, 20)
        terminal.send("x" * 100 + LEAVE)
        assert terminal.wait() == 0
    finally:
        engine_modern.thaw()


def test_an_engine_that_dies_is_told(
    start_own_engine: Callable[..., Engine], open_terminal: Callable[..., Terminal]
) -> None:
    engine = start_own_engine("26.1")
    start(engine, "box")
    terminal = open_terminal(engine, "shell", "box")
    terminal.wait_for("#")
    engine.kill()
    assert terminal.wait() == 4
    assert "connection to" in terminal.text
    assert "lost" in terminal.text


def test_an_image_without_a_shell_is_told(engine: Engine, open_terminal: Callable[..., Terminal]) -> None:
    start(engine, "box", image="bare", command=("1000000",))
    terminal = open_terminal(engine, "shell", "box")
    assert terminal.wait() == 5
    assert "no sh in its image" in terminal.text
    assert "OCI runtime" not in terminal.text


def test_an_entrypoint_that_swallows_commands_does_not_matter(
    engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine_modern, "box", image="entrypoint")
    terminal = open_terminal(engine_modern, "shell", "box")
    terminal.wait_for("#")
    terminal.send("exit\r")
    assert terminal.wait() == 0


def test_user_and_folder(engine: Engine, open_terminal: Callable[..., Terminal]) -> None:
    start(engine, "box")
    terminal = open_terminal(engine, "shell", "--user", "65534", "--workdir", "/tmp", "box")
    terminal.wait_for("$")
    terminal.send("echo who=$(id -u)=$(pwd)=\r")
    terminal.wait_for("who=65534=/tmp=")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (("--user", "nobody-here"), "knows no user 'nobody-here'"),
        (("--workdir", "/etc/passwd"), "has no folder '/etc/passwd'"),
    ],
)
def test_a_user_or_folder_that_is_not_there_is_named(
    option: tuple[str, str], says: str, engine: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine, "box")
    terminal = open_terminal(engine, "shell", *option, "box")
    assert terminal.wait() == 5
    assert says in terminal.text
    assert "OCI runtime" not in terminal.text


@pytest.mark.parametrize(("term", "inside"), [("tmux-256color", "xterm-256color"), ("x'; id; '", "xterm-256color")])
def test_the_terminals_name_is_one_the_image_knows(
    term: str, inside: str, engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine_modern, "box")
    terminal = open_terminal(engine_modern, "shell", "--here", "box", TERM=term)
    terminal.wait_for("#")
    terminal.send("echo term=$TERM=\r")
    terminal.wait_for(f"term={inside}=")


def test_bash_is_taken_where_there_is_one(engine_modern: Engine, open_terminal: Callable[..., Terminal]) -> None:
    start(engine_modern, "box", image="pytorch")
    terminal = open_terminal(engine_modern, "shell", "box")
    terminal.wait_for("#")
    terminal.send("echo shell=${BASH_VERSION%%.*}=\r")
    terminal.wait_for("shell=5=")
    terminal.send("exit 3\r")
    assert terminal.wait() == 3


def piped(engine: Engine, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*US, *arguments], input=stdin, capture_output=True, env=environment(engine), timeout=60, check=False
    )


def test_a_script_on_standard_input_is_run(engine: Engine) -> None:
    start(engine, "box")
    done = piped(engine, "shell", "box", stdin=b"echo out; echo err >&2; exit 5\n")
    assert (done.stdout, done.returncode) == (b"out\n", 5)
    assert b"err" in done.stderr


def test_megabytes_on_standard_input_arrive_whole(engine: Engine) -> None:
    start(engine, "box")
    data = os.urandom(6 * 2**20).hex().encode()
    done = piped(engine, "shell", "box", stdin=b"wc -c <<'END'\n" + data + b"\nEND\n")
    assert done.stdout.strip() == str(len(data) + 1).encode()


@pytest.mark.parametrize("verb", ["shell", "attach"])
def test_a_container_that_does_not_run_is_refused_with_the_way_to_start_it(verb: str, engine_modern: Engine) -> None:
    engine_modern.docker("create", "--name", "box", engine_modern.load("small"), "sleep", "1000")
    done = piped(engine_modern, verb, "box")
    assert done.returncode == 6
    assert b"gpuconsole start box" in done.stderr


def test_paused_containers_are_told_apart(engine_modern: Engine) -> None:
    start(engine_modern, "box")
    engine_modern.docker("pause", "box")
    done = piped(engine_modern, "shell", "box")
    assert done.returncode == 6
    assert b"pause --resume box" in done.stderr


def test_detach_keys_that_are_none_are_refused(engine_modern: Engine) -> None:
    done = piped(engine_modern, "shell", "--detach-keys", "ctrl-ü", "box")
    assert done.returncode == 2
    assert b"not a key" in done.stderr


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("--user", "2147483648", "above 2147483647"),
        ("--user", "1000:99999999999", "above 2147483647"),
        ("--user", "9" * 5000, "above 2147483647"),
        ("--user", "\udcff", "no UTF-8"),
        ("--workdir", "src", "no absolute path"),
        ("--workdir", "~/x", "no absolute path"),
        ("--workdir", "/\udcff", "no UTF-8"),
    ],
)
def test_what_no_container_can_take_is_refused_before_an_engine_is_asked(
    option: str, text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--host", f"unix://{tmp_path}/none.sock", "shell", option, text, "x"]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert f"gpuconsole: {option}: " in err
    assert told in err

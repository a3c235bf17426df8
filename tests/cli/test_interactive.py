"""`shell` and `attach` on real engines, in real terminals and a real tmux."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.engines import US, environment, start, state, wait_until
from tests.rig.engines import Engine
from tests.rig.fixtures import Bench
from tests.rig.terminal import Terminal
from tests.rig.tmux import Pane, Tmux

pytestmark = pytest.mark.engine

LEAVE = "\x1d\x11"


@pytest.fixture
def open_terminal(rig_bench: Bench) -> Iterator[Callable[..., Terminal]]:
    """Give a function that runs gpuconsole in a terminal of its own."""
    opened: list[Terminal] = []

    def run(engine: Engine, *arguments: str, columns: int = 80, rows: int = 24, **more: str) -> Terminal:
        argv = [*US, *arguments]
        env = environment(engine) | {"TERM": "xterm-256color"} | more
        terminal = Terminal(argv, env=env, folder=rig_bench.rig.folder, columns=columns, rows=rows)
        opened.append(terminal)
        return terminal

    yield run
    for terminal in opened:
        terminal.close()


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
    deadline = time.monotonic() + 20
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
            pane.send(f"{' '.join(US)} shell --here box; echo came-back-{round_}")
            pane.keys("Enter")
            pane.wait_for("Shell in box")
            pane.send(f"echo in-$(({round_}+100))")
            pane.keys("Enter")
            pane.wait_for(f"in-{round_ + 100}")
            if round_ % 2:
                pane.keys("C-d")
            else:
                pane.keys("C-]", "C-q")
            pane.wait_for(f"came-back-{round_}\n")
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


# -- attach


COUNTING = ("sh", "-c", "trap 'echo got-int' INT; i=0; while :; do i=$((i+1)); echo tick-$i; sleep 0.2; done")


def test_attach_without_a_terminal_ctrl_c_leaves_the_container_running(
    engine: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine, "box", command=COUNTING)
    terminal = open_terminal(engine, "attach", "box")
    terminal.wait_for("tick-")
    assert "ctrl+c leaves it running" in terminal.text
    terminal.send("\x03")
    assert terminal.wait() == 0
    assert "it goes on" in terminal.text
    assert state(engine, "box") == "running"
    assert "got-int" not in engine.docker("logs", "box").stdout


@pytest.mark.parametrize("options", [("-i",), ()])
def test_leaving_does_not_end_a_container_that_reads_its_input(
    options: tuple[str, ...], engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine_modern, "box", *options, command=("sh", "-c", "while :; do echo tick-; sleep 0.2; done & cat; exit 9"))
    if not options:
        assert state(engine_modern, "box") == "exited"  # cat had no input at all
        return
    terminal = open_terminal(engine_modern, "attach", "box")
    terminal.wait_for("tick-")
    terminal.send("\x03")
    assert terminal.wait() == 0
    time.sleep(0.5)
    assert state(engine_modern, "box") == "running"


def test_attach_to_a_terminal_joins_the_program_and_the_keys_leave_it(
    engine: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine, "box", "-it", command=("sh",))
    terminal = open_terminal(engine, "attach", "box", columns=91, rows=33)
    terminal.wait_for("ctrl+] ctrl+q leaves it running")
    terminal.send("echo sum-$((20+3)) $(busybox stty size)\r")
    terminal.wait_for("sum-23 33 91")
    terminal.send("\x03")
    terminal.send("echo still-$((20+4))\r")
    terminal.wait_for("still-24")
    terminal.send(LEAVE)
    assert terminal.wait() == 0
    assert state(engine, "box") == "running"


def test_attach_gives_back_the_containers_exit_code(engine: Engine, open_terminal: Callable[..., Terminal]) -> None:
    start(engine, "box", "-it", "--rm", command=("sh",))
    terminal = open_terminal(engine, "attach", "box")
    terminal.wait_for("#")
    terminal.send("exit 4\r")
    assert terminal.wait() == 4
    assert "ended: exit code 4" in terminal.text


def test_what_a_container_without_a_terminal_writes_is_harmless(
    engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    hostile = r"while :; do printf '\033]0;pwned\007\033[2J\302\2332J tick\n'; sleep 0.2; done"
    start(engine_modern, "box", command=("sh", "-c", hostile))
    terminal = open_terminal(engine_modern, "attach", "box")
    terminal.wait_for("tick")
    terminal.send("\x03")
    assert terminal.wait() == 0
    assert "pwned" not in terminal.text
    assert "\x1b[2J" not in terminal.text


# -- tmux


@pytest.fixture
def desk(engine_modern: Engine, rig_bench: Bench) -> Iterator[Pane]:
    """Give a pane of a tmux whose server knows nothing of the engine."""
    env = environment(engine_modern)
    tmux = Tmux(rig_bench.rig, env={key: value for key, value in env.items() if not key.startswith("DOCKER_")})
    pane = tmux.session("sh", env={"DOCKER_HOST": engine_modern.host, "DOCKER_CONFIG": env["DOCKER_CONFIG"]})
    pane.send("PS1='out> '; clear")
    pane.keys("Enter")
    yield pane
    tmux.close()


def active(tmux: Tmux) -> str:
    listed = tmux.run("list-windows", "-a", "-F", "#{window_active} #{window_name} #{pane_id}")
    return next(line[2:] for line in listed.splitlines() if line.startswith("1 "))


def type_line(pane: Pane, text: str) -> None:
    pane.send(text)
    pane.keys("Enter")


def test_inside_tmux_a_shell_opens_a_window_of_its_own_and_is_found_again(desk: Pane, engine_modern: Engine) -> None:
    start(engine_modern, "llama.ft")
    type_line(desk, f"{' '.join(US)} shell llama.ft; echo code=$?")
    desk.wait_for("code=0")
    wait_until(lambda: active(desk.server).startswith("llama_ft "), "no window")
    window = Pane(desk.server, active(desk.server).split()[1])
    window.wait_for("Shell in llama.ft")
    type_line(window, "echo host=$(hostname)")
    window.wait_for("host=" + engine_modern.docker("inspect", "-f", "{{.Config.Hostname}}", "llama.ft").stdout.strip())
    desk.server.run("select-window", "-t", desk.id)
    type_line(desk, f"clear; {' '.join(US)} shell llama.ft; echo again=$?")
    desk.wait_for("again=0")
    assert active(desk.server).split()[1] == window.id
    assert len(desk.server.windows()) == 2
    window.keys("C-d")
    wait_until(lambda: len(desk.server.windows()) == 1, "the window stays")


def test_an_attached_window_shows_how_the_container_ended(desk: Pane, engine_modern: Engine) -> None:
    start(engine_modern, "job", "-it", "--rm", command=("sh",))
    type_line(desk, f"{' '.join(US)} attach job")
    wait_until(lambda: active(desk.server).startswith("job "), "no window")
    window = Pane(desk.server, active(desk.server).split()[1])
    window.wait_for("Attached to job")
    window.wait_for("#")
    type_line(window, "exit 3")
    window.wait_for("exit code 3")
    window.wait_for("Press a key")
    window.keys("q")
    wait_until(lambda: len(desk.server.windows()) == 1, "the window stays")


def test_a_failure_in_the_window_can_be_read(desk: Pane, engine_modern: Engine) -> None:
    start(engine_modern, "box", image="bare", command=("1000000",))
    type_line(desk, f"{' '.join(US)} shell box")
    wait_until(lambda: active(desk.server).startswith("box "), "no window")
    window = Pane(desk.server, active(desk.server).split()[1])
    window.wait_for("no sh in its image")
    window.wait_for("Press a key")


def test_here_stays_in_the_pane(desk: Pane, engine_modern: Engine) -> None:
    start(engine_modern, "box")
    type_line(desk, f"{' '.join(US)} shell --here box")
    desk.wait_for("Shell in box")
    assert len(desk.server.windows()) == 1


def test_a_tmux_that_is_gone_is_no_obstacle(
    engine_modern: Engine, open_terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    start(engine_modern, "box")
    terminal = open_terminal(engine_modern, "shell", "box", TMUX=f"{tmp_path}/gone,1,0")
    terminal.wait_for("Staying in this terminal")
    terminal.wait_for("#")
    assert re.search(r"tmux did not do it: .+\.", terminal.text)

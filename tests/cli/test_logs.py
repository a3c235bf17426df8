"""`logs` on real engines: whole, harmless, and quiet when it is left."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from gpuconsole.cli.logs import since
from tests.cli.engines import OBEYED, US, environment, gpuconsole, run_to_end, start, state
from tests.rig.engines import Engine
from tests.rig.kinds import NEWEST
from tests.rig.terminal import Terminal

pytestmark = pytest.mark.engine(*NEWEST)


def said(engine: Engine, script: str, *options: str) -> str:
    run_to_end(engine, "box", *options, command=("sh", "-c", script))
    return "box"


def test_each_channel_goes_to_its_own(engine: Engine) -> None:
    done = gpuconsole(engine, "logs", said(engine, "echo out; echo err >&2; printf partial"))
    assert (done.code, done.out, done.err) == (0, b"out\npartial\n", b"err\n")


def test_a_container_with_a_terminal(engine: Engine) -> None:
    done = gpuconsole(engine, "logs", said(engine, "echo out; echo err >&2", "-t"))
    assert (done.out, done.err) == (b"out\nerr\n", b"")


def test_what_a_terminal_would_obey_is_gone_and_raw_gives_it(engine: Engine) -> None:
    script = r"printf '\033]0;pwned\007\033[2Jred \033[31mtext\033[0m \342\200\256 \302\2332J[/red] \377 end\n\0\n'"
    said(engine, script, "--log-driver", "local")  # the usual one replaces what is not UTF-8 itself
    done = gpuconsole(engine, "logs", "box")
    assert not OBEYED & set(done.text)
    assert "red text" in done.text
    assert "[/red] � end\n" in done.text
    assert "pwned" not in done.text
    raw = gpuconsole(engine, "logs", "--raw", "box")
    assert raw.out == b"\x1b]0;pwned\x07\x1b[2Jred \x1b[31mtext\x1b[0m \xe2\x80\xae \xc2\x9b2J[/red] \xff end\n\0\n"


def test_a_progress_bar_shows_its_last_state(engine_modern: Engine) -> None:
    done = gpuconsole(engine_modern, "logs", said(engine_modern, r"printf ' 10%%\r 50%%\r100%%\ndone\n'"))
    assert done.out == b"100%\ndone\n"


def test_a_line_of_ninety_thousand_characters_is_whole_in_a_pipe(engine: Engine) -> None:
    done = gpuconsole(engine, "logs", said(engine, "head -c 90000 /dev/zero | tr '\\0' x; echo; echo next"))
    assert done.out == b"x" * 90000 + b"\nnext\n"
    stamped = gpuconsole(engine, "logs", "-t", "box")
    assert stamped.text.splitlines()[0].count("x") == 90000
    assert stamped.text.count("Z ") == 2


def test_and_cut_on_a_terminal(engine_modern: Engine, open_terminal: Callable[..., Terminal]) -> None:
    said(engine_modern, "head -c 90000 /dev/zero | tr '\\0' x; echo; echo next")
    terminal = open_terminal(engine_modern, "logs", "box")
    assert terminal.wait() == 0
    terminal.wait_for("next")
    assert terminal.text.count("x") < 9000
    assert "81,808 more characters; --raw shows all" in terminal.text


def test_the_last_lines_and_those_since(engine_modern: Engine) -> None:
    said(engine_modern, "echo one; sleep 2; echo two; echo three")
    assert gpuconsole(engine_modern, "logs", "-n", "2", "box").out == b"two\nthree\n"
    assert gpuconsole(engine_modern, "logs", "-n", "0", "box").out == b""
    first = gpuconsole(engine_modern, "logs", "-t", "box").text.split()[0]
    later = gpuconsole(engine_modern, "logs", "--since", first[:19] + "Z", "box")
    assert later.out == b"one\ntwo\nthree\n"
    assert gpuconsole(engine_modern, "logs", "--since", "1h", "box").out == b"one\ntwo\nthree\n"
    assert gpuconsole(engine_modern, "logs", "--since", "yesterday", "box").code == 2
    assert gpuconsole(engine_modern, "logs", "-n", "many", "box").code == 2


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", 600), ("2h30m", 9000), ("1.5h", 5400), ("90s", 90), ("1d", 86400), ("250ms", 0.25)]
)
def test_spans(text: str, seconds: float) -> None:
    assert since(text, now=1_000_000.0) == pytest.approx(1_000_000.0 - seconds)


def test_moments() -> None:
    assert since("1700000000", now=0) == 1_700_000_000
    assert since("2023-11-14T22:13:20Z", now=0) == 1_700_000_000
    assert since("2023-11-14T23:13:20+01:00", now=0) == 1_700_000_000


def test_following_ends_with_the_container(engine_modern: Engine) -> None:
    start(engine_modern, "box", command=("sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.5; done"))
    done = gpuconsole(engine_modern, "logs", "-f", "box")
    assert (done.code, done.out, done.err) == (0, b"1\n2\n3\n", b"")


def follow(engine: Engine, *arguments: str, **options: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*US, "logs", "-f", *arguments], env=environment(engine), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_ctrl_c_leaves_quietly(engine: Engine) -> None:
    start(engine, "box", command=("sh", "-c", "while :; do echo tick; sleep 0.2; done"))
    ours = follow(engine, "box")
    assert ours.stdout is not None
    assert ours.stdout.readline() == b"tick\n"
    ours.send_signal(signal.SIGINT)
    _, err = ours.communicate(timeout=60)
    assert (ours.returncode, err) == (130, b"")
    assert state(engine, "box") == "running"


def test_a_reader_that_has_enough_is_no_failure(engine_modern: Engine) -> None:
    start(engine_modern, "box", command=("yes",))
    line = f"{' '.join(US)} logs -f box 2>err | head -n 3; echo ${{PIPESTATUS[0]}}; cat err"
    done = subprocess.run(
        ["bash", "-c", f"cd $(mktemp -d); {line}"],
        env=environment(engine_modern),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == b"y\ny\ny\n0\n"
    engine_modern.docker("kill", "box")


def test_a_flood_is_followed_without_end_and_without_growing(engine_modern: Engine) -> None:
    start(engine_modern, "box", "--log-opt", "max-size=5m", "--log-opt", "max-file=2", command=("yes", "z" * 200))
    ours = follow(engine_modern, "box")
    assert ours.stdout is not None

    def resident_kib() -> int:
        with open(f"/proc/{ours.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    ours.stdout.read(2 * 2**20)
    before = resident_kib()
    ours.stdout.read(20 * 2**20)
    assert resident_kib() < before + 20_000
    ours.kill()
    ours.communicate()
    engine_modern.docker("kill", "box")


def test_a_terminal_shows_progress_while_it_lasts(
    engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    # An engine's log holds whole lines only; what is attached to sees a line while it grows.
    bar = r"for i in 1 2 3 4 5 6 7 8 9; do printf '\r%s0%% \033[2Jbar' $i; sleep 0.5; done; echo; echo finished"
    waits = "until [ -e /tmp/go ]; do echo waits; sleep 0.1; done"
    start(engine_modern, "box", command=("sh", "-c", f"{waits}; {bar}"))
    terminal = open_terminal(engine_modern, "attach", "box")
    terminal.wait_for("waits")  # it is heard from here on
    engine_modern.docker("exec", "box", "touch", "/tmp/go")
    terminal.wait_for("\r\x1b[K40% bar")
    assert "finished" not in terminal.text
    terminal.wait_for("finished")
    assert terminal.wait() == 0
    assert "\x1b[2J" not in terminal.text
    assert "90% bar\r\n" in terminal.text


def test_a_frozen_engine_can_be_left(engine_modern: Engine) -> None:
    start(engine_modern, "box", command=("sh", "-c", "while :; do echo tick; sleep 0.2; done"))
    ours = follow(engine_modern, "box")
    assert ours.stdout is not None
    ours.stdout.readline()
    engine_modern.freeze()
    try:
        time.sleep(0.5)
        ours.send_signal(signal.SIGINT)
        ours.communicate(timeout=60)
        assert ours.returncode == 130
    finally:
        engine_modern.thaw()

"""The contract of engines: output, processes inside, events, usage, and the end of them all."""

from __future__ import annotations

import threading
import time

import pytest

from gpuconsole.core.errors import EngineUnavailable, NotFound
from gpuconsole.core.text import plain
from gpuconsole.engine.model import EngineEvent
from tests.engine.contract import PATIENCE_S, Ground, clause, logged, outcome, reader, stream_into, until


@clause
def output_comes_by_stream(ground: Ground) -> None:
    identity = ground.finished("output", "sh", "-c", "echo out; echo err >&2; echo out2")
    assert logged(ground, identity) == {"stdout": b"out\nout2\n", "stderr": b"err\n"}


@clause
def output_through_a_terminal_is_one_stream(ground: Ground) -> None:
    identity = ground.finished("tty", "sh", "-c", "echo out; echo err >&2", tty=True)
    assert logged(ground, identity) == {"stdout": b"out\r\nerr\r\n", "stderr": b""}


HOSTILE = rb"\033]0;owned\007[red]\033[2J \302\233 \342\200\256 \377\376 done".decode()
SENT = b"\x1b]0;owned\x07[red]\x1b[2J \xc2\x9b \xe2\x80\xae \xff\xfe done"


@clause
def hostile_output_can_be_made_harmless(ground: Ground) -> None:
    for word, tty in (("hostile", False), ("hostile-tty", True)):
        identity = ground.finished(word, "printf", HOSTILE, tty=tty)
        raw = logged(ground, identity)["stdout"]
        # Docker's log files hold text, so invalid bytes have become U+FFFD in them; Podman's hold bytes.
        assert raw in (SENT, SENT.decode(errors="replace").encode())
        text = plain(raw)
        assert "[red]" in text
        assert text.endswith("done")
        assert not any(mark in text for mark in ("\x1b", "\x07", "\x9b", "\u202e"))


@clause
def a_very_long_line_arrives_whole(ground: Ground) -> None:
    identity = ground.finished("line", "sh", "-c", "head -c 90000 /dev/zero | tr '\\0' x; echo")
    assert logged(ground, identity)["stdout"] == b"x" * 90_000 + b"\n"


@clause
def the_end_of_the_output_alone(ground: Ground) -> None:
    identity = ground.finished("tail", "seq", "100")
    assert logged(ground, identity, tail=2)["stdout"] == b"99\n100\n"
    assert logged(ground, identity, tail=0)["stdout"] == b""
    assert logged(ground, identity, since=time.time() + 3600)["stdout"] == b""
    assert logged(ground, identity, since=time.time() - 3600)["stdout"].startswith(b"1\n2\n")
    first = logged(ground, identity, timestamps=True)["stdout"].split(b"\n")[0]
    assert first.startswith(b"20")
    assert first.endswith(b"Z 1")


@clause
def output_is_followed_to_the_end(ground: Ground) -> None:
    identity = ground.run("follow", "sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done")
    assert logged(ground, identity, follow=True)["stdout"] == b"1\n2\n3\n"


@clause
def following_ends_when_it_is_closed(ground: Ground) -> None:
    identity = ground.run("silent", "sh", "-c", "echo first; sleep 1000")
    stream = ground.engine.logs(identity, follow=True)
    pieces: list[bytes] = []
    with reader(stream_into(stream, pieces)) as thread:
        until(lambda: bool(pieces), what="the first line")
        stream.close()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert pieces == [b"first\n"]


@clause
def a_process_inside_has_streams_and_an_exit_code(ground: Ground) -> None:
    identity = ground.run("exec")
    process = ground.engine.execute(identity, ["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert outcome(process) == (b"out\n", b"err\n", 7)


@clause
def any_bytes_come_through(ground: Ground) -> None:
    identity = ground.run("bytes")
    assert outcome(ground.engine.execute(identity, ["printf", HOSTILE]))[0] == SENT


@clause
def megabytes_go_through_a_process_and_back(ground: Ground) -> None:
    identity = ground.run("echo")
    data = bytes(range(256)) * 20_000
    process = ground.engine.execute(identity, ["cat"])
    for start in range(0, len(data), 1_000_000):
        process.write(data[start : start + 1_000_000])
    process.close_input()
    out, err, code = outcome(process)
    assert out == data
    assert (err, code) == (b"", 0)


@clause
def input_can_end_while_output_goes_on(ground: Ground) -> None:
    identity = ground.run("half")
    process = ground.engine.execute(identity, ["sh", "-c", "cat >/dev/null; echo all read; sleep 0.2; echo more"])
    process.write(b"text")
    process.close_input()
    assert outcome(process) == (b"all read\nmore\n", b"", 0)


@clause
def input_that_nobody_reads_is_no_error(ground: Ground) -> None:
    identity = ground.run("unread")
    process = ground.engine.execute(identity, ["sh", "-c", "exit 4"])
    process.write(b"x" * 3_000_000)
    process.close_input()
    assert outcome(process) == (b"", b"", 4)


@clause
def a_process_without_input_sees_its_end_at_once(ground: Ground) -> None:
    identity = ground.run("noinput")
    assert outcome(ground.engine.execute(identity, ["cat"], stdin=False)) == (b"", b"", 0)


@clause
def a_process_runs_as_asked(ground: Ground) -> None:
    identity = ground.run("as-asked")
    process = ground.engine.execute(
        identity,
        ["sh", "-c", 'pwd; id -u; echo "$A|$B"; tty'],
        user="1000",
        working_dir="/tmp",
        environment={"A": "1 2", "B": "x=y"},
    )
    out, _, code = outcome(process)
    assert out == b"/tmp\n1000\n1 2|x=y\nnot a tty\n"
    assert code == 1


@clause
def a_process_with_a_terminal_has_one_stream(ground: Ground) -> None:
    identity = ground.run("terminal")
    process = ground.engine.execute(identity, ["sh", "-c", "tty; echo err >&2"], tty=True)
    out, err, code = outcome(process)
    assert out.startswith(b"/dev/pts/")
    assert out.endswith(b"\r\nerr\r\n")
    assert (err, code) == (b"", 0)


@clause
def a_missing_program_inside_shows(ground: Ground) -> None:
    identity = ground.run("nothing")
    try:
        process = ground.engine.execute(identity, ["no-such-program"])
    except NotFound as error:
        said, code = error.message, 127
    else:
        out, err, code = outcome(process)  # type: ignore[assignment]
        said = plain(out + err)
    assert code in (126, 127)
    assert "no-such-program" in said


@clause
def a_process_that_runs_has_no_exit_code_yet(ground: Ground) -> None:
    identity = ground.run("still")
    process = ground.engine.execute(identity, ["sleep", "1000"])
    assert process.exit_code() is None
    pieces: list[bytes] = []
    with reader(stream_into(process.output, pieces)) as thread:
        process.close()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@clause
def events_tell_a_life(ground: Ground) -> None:
    stream = ground.engine.events()
    seen: list[EngineEvent] = []

    def read() -> None:
        seen.extend(stream)

    def actions() -> list[str]:
        return [event.action for event in seen if event.id == identity]

    with reader(read):
        identity = ground.run("events", "sh", "-c", "exit 5")
        ground.engine.wait(identity, timeout_s=PATIENCE_S)
        ground.engine.remove(identity)
        until(lambda: "destroy" in actions() or "remove" in actions(), what="the last event")
        stream.close()
    assert [action for action in actions() if action in ("create", "start")] == ["create", "start"]
    end = next(event for event in seen if event.id == identity and event.action in ("die", "died"))
    assert end.exit_code == 5
    assert end.name == ground.name("events")
    assert end.kind == "container"
    assert end.at is not None
    assert abs(end.at - time.time()) < 600


@clause
def events_of_the_past_can_be_had(ground: Ground) -> None:
    began = time.time() - 1
    identity = ground.create("past")
    stream = ground.engine.events(since=began)
    for event in stream:
        if event.id == identity and event.action == "create":
            break
    stream.close()


@clause
def usage_is_measured(ground: Ground) -> None:
    busy, idle = ground.run("busy", "sh", "-c", "while :; do :; done"), ground.run("idle")
    ended = ground.finished("over", "true")
    found = ground.engine.usages([busy, idle, ended, "f" * 64])
    assert set(found) - {ended} == {busy, idle}
    one = found[busy]
    assert one.cpu_pct is not None
    quiet = found[idle].cpu_pct
    assert quiet is not None
    assert one.cpu_pct > quiet
    assert one.memory_bytes is not None
    assert 0 < one.memory_bytes < 64 << 20
    assert one.memory_limit_bytes is not None
    assert one.pids == 1
    assert ground.engine.usage(ended).cpu_pct is None


@clause
def a_memory_limit_shows_in_the_usage(ground: Ground) -> None:
    identity = ground.run("limit", memory_bytes=64 << 20)
    assert ground.engine.usage(identity).memory_limit_bytes == 64 << 20


@clause
def closing_ends_every_stream_and_refuses_more(ground: Ground) -> None:
    identity = ground.run("close")
    streams = [ground.engine.events(), ground.engine.logs(identity, follow=True)]
    process = ground.engine.execute(identity, ["cat"])
    readers = [threading.Thread(target=lambda one=one: list(one), daemon=True) for one in (*streams, process.output)]
    for thread in readers:
        thread.start()
    ground.engine.close()
    for thread in readers:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    for attempt in (ground.engine.containers, ground.engine.events, ground.engine.ping):
        with pytest.raises(EngineUnavailable, match="closed"):
            attempt()
    for call in (ground.engine.usage, ground.engine.logs, ground.engine.wait):
        with pytest.raises(EngineUnavailable, match="closed"):
            call(identity)

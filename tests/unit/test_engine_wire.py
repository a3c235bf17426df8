"""What comes over the wire that no real engine says on demand: silence, resets, refusals, odd answers, early bytes."""

from __future__ import annotations

import netrc
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuconsole.core.errors import (
    BadFile,
    Conflict,
    ConsoleError,
    EngineRefused,
    EngineUnavailable,
    NotFound,
    TimedOut,
    UsageError,
)
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.engine.model import ContainerState
from gpuconsole.engine.request import CreateRequest
from tests.unit.canned import VERSION, CannedEngine, Reply, answer

ID = "ab" * 32
ODD_VERSIONS: list[object] = [
    "new",
    "1",
    "1.2.3",
    "1.",
    "-1.41",
    "1.4_1",
    "9" * 5000 + ".1",
    1.41,
    41,
    True,
    [1],
    {"1": 41},
]
TOO_OLD = "client version 1.45 is too old. Minimum supported API version is 1.99, please upgrade your client"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., CannedEngine]]:
    servers: list[CannedEngine] = []

    def start(replies: dict[str, Reply] | None = None) -> CannedEngine:
        servers.append(CannedEngine(tmp_path, replies or {}))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def connect(server: CannedEngine, *, timeout_s: float = 5, api_limit: tuple[int, int] | None = None) -> DockerEngine:
    return DockerEngine.connect(Endpoint(server.url, "--host", api_limit=api_limit), timeout_s=timeout_s)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize(
    ("newest", "oldest", "agreed"),
    [("1.41", "1.12", "1.41"), ("1.45", "1.24", "1.45"), ("1.60", "1.44", "1.51"), ("1.70", "1.60", "1.60")],
)
def test_the_version_is_negotiated(serve: Callable[..., CannedEngine], newest: str, oldest: str, agreed: str) -> None:
    server = serve({"/version": answer(VERSION | {"ApiVersion": newest, "MinAPIVersion": oldest})})
    engine = connect(server)
    engine.ping()
    assert f"/v{agreed}/".encode() in server.requests[-1] or b"/_ping" in server.requests[-1]
    assert engine.connection.version.agreed == agreed
    engine.close()


def test_an_engine_that_is_too_old(serve: Callable[..., CannedEngine]) -> None:
    with pytest.raises(EngineRefused, match=r"too old: Docker 1\.13") as caught:
        connect(serve({"/version": answer({"Version": "1.13", "ApiVersion": "1.26"})}))
    assert "20.10" in caught.value.hint


def test_an_engine_that_refuses_the_version(serve: Callable[..., CannedEngine]) -> None:
    refused = answer({"message": TOO_OLD}, status="400 Bad Request")
    engine = connect(serve({"/containers": refused, "/events": refused}))
    for attempt in (engine.containers, engine.events):
        with pytest.raises(EngineRefused, match=r"version 1\.45 of its interface; its limit is 1\.99"):
            attempt()
    engine.close()


@pytest.mark.parametrize(
    "reply",
    [
        answer(["no", "engine"]),
        answer({"hello": "world"}),
        *(answer({"ApiVersion": odd}) for odd in ODD_VERSIONS),
        b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"[" * 200_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ],
)
def test_something_that_is_no_engine(serve: Callable[..., CannedEngine], reply: bytes) -> None:
    with pytest.raises(EngineUnavailable, match="no container engine"):
        connect(serve({"/version": reply}))


@pytest.mark.parametrize("odd", ODD_VERSIONS)
def test_an_odd_oldest_version_is_taken_for_an_old_one(serve: Callable[..., CannedEngine], odd: object) -> None:
    engine = connect(serve({"/version": answer(VERSION | {"MinAPIVersion": odd})}))
    assert engine.connection.version.minimum == "1.12"
    engine.close()


@pytest.mark.parametrize(
    ("limit", "agreed"), [((1, 40), "1.40"), ((1, 43), "1.43"), ((1, 45), "1.45"), ((1, 99), "1.45"), ((2, 0), "1.45")]
)
def test_a_version_that_was_asked_for_is_not_passed(
    serve: Callable[..., CannedEngine], limit: tuple[int, int], agreed: str
) -> None:
    server = serve({"/version": answer(VERSION | {"ApiVersion": "1.45", "MinAPIVersion": "1.24"})})
    engine = connect(server, api_limit=limit)
    engine.containers()
    assert f"/v{agreed}/containers".encode() in server.requests[-1]
    engine.close()


@pytest.mark.parametrize(
    ("limit", "told"),
    [((1, 24), "1.24, and gpuconsole needs 1.40 at least"), ((1, 41), r"1.41, and the engine at \S+ speaks 1.44")],
)
def test_a_version_that_was_asked_for_and_nobody_speaks_is_refused(
    serve: Callable[..., CannedEngine], limit: tuple[int, int], told: str
) -> None:
    server = serve({"/version": answer(VERSION | {"ApiVersion": "1.51", "MinAPIVersion": "1.44"})})
    with pytest.raises(UsageError, match=f"DOCKER_API_VERSION is {told}") as caught:
        connect(server, api_limit=limit)
    assert "Unset it" in caught.value.hint


def test_silence_when_connecting(serve: Callable[..., CannedEngine]) -> None:
    with pytest.raises(TimedOut, match="did not answer"):
        connect(serve({"/version": None}), timeout_s=0.3)


def test_silence_later(serve: Callable[..., CannedEngine]) -> None:
    engine = connect(serve({"/containers": None}), timeout_s=1)
    with pytest.raises(TimedOut, match="did not answer"):
        engine.containers()
    engine.close()


def test_a_reset_is_tried_again_when_nothing_changes_by_it(serve: Callable[..., CannedEngine]) -> None:
    replies: list[Reply] = [reset, answer([])]

    def once(connection: socket.socket) -> None:
        reply = replies.pop(0)
        if callable(reply):
            reply(connection)
        elif reply:
            connection.sendall(reply)

    engine = connect(serve({"/containers": once}))
    assert engine.containers() == ()
    engine.close()


def test_a_reset_is_told_when_something_may_have_changed(serve: Callable[..., CannedEngine]) -> None:
    server = serve({"/start": reset})
    engine = connect(server)
    with pytest.raises(EngineUnavailable, match="broke off"):
        engine.start(ID)
    assert sum(b"/start" in request for request in server.requests) == 1
    engine.close()


def test_an_engine_that_goes_away_while_a_container_is_made(serve: Callable[..., CannedEngine]) -> None:
    nothing = answer({"message": "no such container: train"}, status="404 Not Found")
    looks: list[Reply] = [nothing, *[reset] * 9]

    def look(connection: socket.socket) -> None:
        reply = looks.pop(0)
        if callable(reply):
            reply(connection)
        elif reply:
            connection.sendall(reply)

    server = serve({"/containers/create": reset, "/containers/train/json": look})
    engine = connect(server)
    with pytest.raises(EngineUnavailable, match="broke off") as caught:
        engine.create(CreateRequest(image="small", name="train"))
    assert "A container train may have been made nevertheless." in caught.value.message
    assert "gpuconsole ps" in caught.value.hint
    engine.close()


def test_an_engine_that_is_gone_when_connections_are_kept(serve: Callable[..., CannedEngine], tmp_path: Path) -> None:
    first = serve({"/containers/json": answer([])})
    engine = connect(first)
    assert engine.containers() == ()
    first.close()
    with pytest.raises(EngineUnavailable, match="not running"):
        engine.containers()
    first.path.unlink()
    with pytest.raises(EngineUnavailable, match="no such socket"):
        engine.containers()
    second = serve({"/containers/json": answer([])})
    assert engine.containers() == ()
    assert second.requests
    engine.close()


def test_containers_as_other_engines_describe_them(serve: Callable[..., CannedEngine]) -> None:
    summaries = [
        {"Id": ID, "Names": [], "Image": "x", "ImageID": "sha256:1", "Labels": None, "State": "running", "Created": 5},
        {"Id": "cd" * 32, "Names": ["/gone"]},
        {"Id": "ef" * 32, "Names": ["/a/link", "/broken"], "State": "exited", "Created": 3},
        {"Id": None},
    ]
    inspection = {"Id": ID, "Name": "", "Config": {"Env": ["A", "B=", "=C"], "Labels": None, "Cmd": None}}
    engine = connect(
        serve(
            {
                "/containers/json": answer(summaries),
                f"/containers/{ID}/json": answer(inspection),
                f"/containers/{'cd' * 32}/json": answer({"message": "No such container: x"}, status="404 Not Found"),
                f"/containers/{'ef' * 32}/json": answer({"message": "open config.v2.json"}, status="500 Oh"),
            }
        )
    )
    nameless, broken = engine.containers()
    assert (nameless.name, nameless.image, nameless.state) == (ID[:12], "x", ContainerState.RUNNING)
    assert nameless.environment == (("A", None), ("B", ""), ("", "C"))
    assert (broken.name, broken.error) == ("broken", "Open config.v2.json.")
    engine.close()


def test_an_answer_of_another_form(serve: Callable[..., CannedEngine]) -> None:
    engine = connect(
        serve({"/containers": answer({"error": "no message"}, status="404 Not Found"), "/info": b"HTTP/1.1 200 OK\r\n"
               b"Content-Length: 3\r\n\r\nabc", "/images": answer("text", status="500 Oh")})
    )  # fmt: skip
    for attempt in (engine.containers, engine.info, engine.images):
        with pytest.raises(ConsoleError) as caught:
            attempt()
        assert caught.value.message
    engine.close()


def test_bytes_that_come_with_the_headers_of_an_exec_are_not_lost(serve: Callable[..., CannedEngine]) -> None:
    def start(connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\n"
            b"Upgrade: tcp\r\n\r\n\x01\0\0\0\0\0\0\x05early"
        )
        assert connection.recv(100) == b"input"
        connection.sendall(b"\x02\0\0\0\0\0\0\x04late")
        assert connection.recv(100) == b""
        connection.close()

    engine = connect(
        serve({"/exec/7/start": start, "/exec/7/json": answer({"Running": False, "ExitCode": 0}), "/exec":
               answer({"Id": "7"}, status="201 Created")})
    )  # fmt: skip
    process = engine.execute(ID, ["x"])
    process.write(b"input")
    process.close_input()
    assert list(process.output) == [("stdout", b"early"), ("stderr", b"late")]
    assert process.exit_code() == 0
    engine.close()


def test_an_exec_without_an_upgrade_works_too(serve: Callable[..., CannedEngine]) -> None:
    def start(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\nhello")
        connection.close()

    engine = connect(serve({"/exec/7/start": start, "/exec": answer({"Id": "7"}, status="201 Created")}))
    assert list(engine.execute(ID, ["x"], tty=True).output) == [("stdout", b"hello")]
    engine.close()


def chunked(*pieces: bytes, end: bool = True) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + (b"0\r\n\r\n" if end else b"")


def test_a_stream_that_breaks_off_is_told_apart_from_one_that_ends(serve: Callable[..., CannedEngine]) -> None:
    def broken(connection: socket.socket) -> None:
        connection.sendall(chunked(b'{"Type":"container","Action":"die","Actor":{"ID":"1"}}\n', end=False))
        connection.close()

    engine = connect(serve({"/events": broken}))
    events = iter(engine.events())
    assert next(events).action == "die"
    with pytest.raises(EngineUnavailable, match="broke off"):
        next(events)
    engine.close()


def test_closing_ends_a_silent_stream_and_a_pull_that_has_not_begun(serve: Callable[..., CannedEngine]) -> None:
    server = serve({"/events": chunked(end=False), "/images/create": None})
    engine = connect(server)
    for stream in (engine.events(), engine.pull("x:1")):
        thread = threading.Thread(target=lambda stream=stream: list(stream), daemon=True)
        thread.start()
        while not any(b"/images/create" in request or b"/events" in request for request in server.requests):
            time.sleep(0.01)
        stream.close()
        thread.join(5)
        assert not thread.is_alive()
        server.requests.clear()
    engine.close()


def test_a_stream_closed_before_it_began_is_empty(serve: Callable[..., CannedEngine]) -> None:
    engine = connect(serve())
    stream = engine.pull("x:1")
    stream.close()
    assert list(stream) == []
    engine.close()


def test_a_failure_inside_a_pull_is_raised(serve: Callable[..., CannedEngine]) -> None:
    pieces = [b'{"status":"Pulling from x","id":"1"}\r\n', b'{"errorDetail":{"message":"?"},', b'"error":'
              b'"manifest for x:1 not found: manifest unknown"}\r\n']  # fmt: skip
    engine = connect(serve({"/images/create": chunked(*pieces)}))
    steps = iter(engine.pull("x:1"))
    assert next(steps).status == "Pulling from x"
    with pytest.raises(NotFound, match="x:1"):
        next(steps)
    engine.close()


def test_a_creation_whose_answer_is_lost_is_undone(serve: Callable[..., CannedEngine]) -> None:
    made: list[bytes] = []
    inspection = {
        "Id": ID,
        "Name": "/box",
        "State": {"Status": "created"},
        "Config": {"Image": "x", "Labels": {"a": "1"}},
    }

    def create(connection: socket.socket) -> None:
        made.append(b"")
        reset(connection)

    def inspect(connection: socket.socket) -> None:
        missing = answer({"message": "No such container: box"}, status="404 Not Found")
        connection.sendall(answer(inspection) if made else missing)

    server = serve({"/containers/create": create, "/containers/box/json": inspect, f"DELETE /v1.45/containers/{ID}":
                    b"HTTP/1.1 204 No Content\r\n\r\n"})  # fmt: skip
    engine = connect(server)
    with pytest.raises(EngineUnavailable):
        engine.create(CreateRequest(image="x", name="box", labels={"a": "1"}))
    assert any(request.startswith(b"DELETE") for request in server.requests)
    server.requests.clear()
    inspection["Config"] = {"Image": "x", "Labels": {"a": "2"}}
    made.clear()
    with pytest.raises(EngineUnavailable):
        engine.create(CreateRequest(image="x", name="box", labels={"a": "1"}))
    assert not any(request.startswith(b"DELETE") for request in server.requests), "it is somebody else's"
    engine.close()


def test_a_taken_name_is_seen_before_anything_is_asked_for(serve: Callable[..., CannedEngine]) -> None:
    server = serve({"/containers/box/json": answer({"Id": ID, "Name": "/box"})})
    engine = connect(server)
    with pytest.raises(Conflict, match="box"):
        engine.create(CreateRequest(image="x", name="box"))
    assert not any(b"/containers/create" in request for request in server.requests)
    engine.close()


def test_no_login_of_another_program_is_sent_along(
    serve: Callable[..., CannedEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "netrc"
    file.write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(file))
    assert netrc.netrc(str(file)).hosts
    server = serve({"/containers/json": answer([])})
    engine = connect(server)
    engine.containers()
    assert not any(b"authorization" in request.lower() for request in server.requests)
    engine.close()


def test_a_proxy_is_never_between(serve: Callable[..., CannedEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    engine = connect(serve({"/containers/json": answer([])}))
    assert engine.containers() == ()
    engine.close()


def test_logins_that_cannot_be_understood_are_named(
    serve: Callable[..., CannedEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text('{"auths": {"r": {"auth": "!"}}}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    engine = connect(serve())
    with pytest.raises(BadFile, match="logins"):
        engine.containers()
    engine.close()


def test_a_credential_helper_that_fails_is_named(
    serve: Callable[..., CannedEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = tmp_path / "docker-credential-broken"
    helper.write_text("#!/bin/sh\necho 'Cannot autolaunch D-Bus without X11 $DISPLAY'\nexit 1\n")
    helper.chmod(0o755)
    (tmp_path / "config.json").write_text('{"credsStore": "broken"}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    engine = connect(serve())
    with pytest.raises(EngineRefused, match="D-Bus") as caught:
        engine.pull("x:1")
    assert "credsStore" in caught.value.hint
    engine.close()

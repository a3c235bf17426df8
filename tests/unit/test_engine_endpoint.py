"""Where the engine is: the order of the sources, addresses, and configuration that cannot be understood."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gpuconsole.core.errors import BadFile, ConsoleError, ExitCode, NotFound, UsageError
from gpuconsole.engine.endpoint import Endpoint, normalised, resolve


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".docker").mkdir()
    return tmp_path


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}


@pytest.fixture
def listening() -> Iterator[list[socket.socket]]:
    sockets: list[socket.socket] = []
    yield sockets
    for one in sockets:
        one.close()


def listen(path: Path, sockets: list[socket.socket]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    one = socket.socket(socket.AF_UNIX)
    one.bind(str(path))
    sockets.append(one)
    return path


def store_context(home: Path, name: str, meta: object, *, tls: tuple[str, ...] = ()) -> Path:
    key = hashlib.sha256(name.encode()).hexdigest()
    folder = home / ".docker" / "contexts" / "meta" / key
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(meta if isinstance(meta, str) else json.dumps(meta))
    for file in tls:
        path = home / ".docker" / "contexts" / "tls" / key / "docker" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("PEM")
    return folder / "meta.json"


def meta(name: str, host: str, *, skip: bool = False) -> dict[str, object]:
    return {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": skip}}}


def configure(home: Path, content: object) -> None:
    path = home / ".docker" / "config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def find(environ: Mapping[str, str], home: Path, host: str | None = None) -> Endpoint:
    return resolve(host, environ=environ, default_socket=str(home / "default.sock"))


def test_the_option_goes_before_everything(home: Path, environ: dict[str, str]) -> None:
    environ |= {"DOCKER_HOST": "unix:///tmp/a.sock", "DOCKER_CONTEXT": "gone"}
    configure(home, "not json")
    assert find(environ, home, "tcp://box:1") == Endpoint("tcp://box:1", "--host")


def test_docker_host_goes_before_contexts(home: Path, environ: dict[str, str]) -> None:
    environ |= {"DOCKER_HOST": "unix:///tmp/a.sock", "DOCKER_CONTEXT": "gone"}
    assert find(environ, home) == Endpoint("unix:///tmp/a.sock", "DOCKER_HOST")


def test_docker_context_goes_before_the_file(home: Path, environ: dict[str, str]) -> None:
    configure(home, {"currentContext": "gone"})
    store_context(home, "box", meta("box", "unix:///tmp/b.sock"))
    environ["DOCKER_CONTEXT"] = "box"
    assert find(environ, home) == Endpoint("unix:///tmp/b.sock", "context box")


def test_the_current_context_of_the_file(home: Path, environ: dict[str, str]) -> None:
    configure(home, {"auths": {}, "currentContext": "box"})
    store_context(home, "box", meta("box", "ssh://me@box:2222"))
    assert find(environ, home) == Endpoint("ssh://me@box:2222", "context box")


def test_docker_config_is_another_folder(home: Path, environ: dict[str, str], tmp_path: Path) -> None:
    configure(home, {"currentContext": "gone"})
    environ["DOCKER_CONFIG"] = str(tmp_path / "elsewhere")
    assert find(environ, home).source == "default"


@pytest.mark.parametrize("content", ["", "{}", '{"currentContext": ""}', '{"currentContext": "default"}'])
def test_the_default_context(home: Path, environ: dict[str, str], content: str) -> None:
    configure(home, content)
    assert find(environ, home) == Endpoint(f"unix://{home}/default.sock", "default")


def test_a_contexts_tls_files(home: Path, environ: dict[str, str]) -> None:
    store_context(home, "box", meta("box", "tcp://box:2376"), tls=("ca.pem", "cert.pem", "key.pem"))
    environ["DOCKER_CONTEXT"] = "box"
    endpoint = find(environ, home)
    assert endpoint.tls is not None
    assert [Path(file).name for file in endpoint.tls] == ["ca.pem", "cert.pem", "key.pem"]
    assert endpoint.verify
    assert not endpoint.local


def test_a_context_that_does_not_verify(home: Path, environ: dict[str, str]) -> None:
    store_context(home, "box", meta("box", "tcp://box:2376", skip=True))
    environ["DOCKER_CONTEXT"] = "box"
    assert find(environ, home) == Endpoint("tcp://box:2376", "context box", tls=("", "", ""), verify=False)


def test_tls_from_the_environment(home: Path, environ: dict[str, str]) -> None:
    for name in ("ca.pem", "cert.pem"):
        (home / name).write_text("PEM")
    environ |= {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(home)}
    assert find(environ, home) == Endpoint(
        "tcp://localhost:2376", "default", tls=(f"{home}/ca.pem", f"{home}/cert.pem", "")
    )
    environ |= {"DOCKER_HOST": "tcp://box:1", "DOCKER_TLS_VERIFY": "", "DOCKER_TLS": "1"}
    assert find(environ, home).verify is False
    environ["DOCKER_HOST"] = "unix:///tmp/a.sock"
    assert find(environ, home).tls is None


def test_tls_without_an_authority_is_an_error(home: Path, environ: dict[str, str]) -> None:
    environ |= {"DOCKER_TLS_VERIFY": "1", "DOCKER_HOST": "tcp://box:1"}
    with pytest.raises(BadFile, match=r"ca\.pem") as caught:
        find(environ, home)
    assert "DOCKER_CERT_PATH" in caught.value.hint


def test_other_engines_are_found_in_order_when_the_default_socket_is_missing(
    home: Path, environ: dict[str, str], listening: list[socket.socket]
) -> None:
    listen(home / "run/podman/podman.sock", listening)
    assert find(environ, home) == Endpoint(f"unix://{home}/run/podman/podman.sock", "podman")
    listen(home / ".docker/desktop/docker.sock", listening)
    assert find(environ, home).source == "docker desktop"
    listen(home / "run/docker.sock", listening)
    assert find(environ, home) == Endpoint(f"unix://{home}/run/docker.sock", "rootless")
    listen(home / "default.sock", listening)
    assert find(environ, home).source == "default"


def test_other_engines_are_not_taken_when_something_was_said(
    home: Path, environ: dict[str, str], listening: list[socket.socket]
) -> None:
    listen(home / "run/docker.sock", listening)
    environ["DOCKER_HOST"] = f"unix://{home}/default.sock"
    assert find(environ, home).source == "DOCKER_HOST"


def test_an_unknown_context_names_the_known_ones_and_the_nearest(home: Path, environ: dict[str, str]) -> None:
    store_context(home, "workstation", meta("workstation", "unix:///a"))
    store_context(home, "hostile", meta("[red]\x1b[2Jx", "unix:///a"))
    store_context(home, "broken", "{")
    environ["DOCKER_CONTEXT"] = "workstatoin"
    with pytest.raises(NotFound) as caught:
        find(environ, home)
    assert "'workstatoin'" in caught.value.message
    assert "DOCKER_CONTEXT" in caught.value.message
    assert caught.value.hint == "Did you mean workstation? Known contexts: default, [red]x, workstation."


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"currentContext":', "line 1, column"),
        ("[]", "does not hold a JSON object"),
        ('{"currentContext": 5}', "currentContext"),
        ("\x00", "line 1, column 1"),
    ],
)
def test_a_malformed_configuration_names_the_file_and_the_place(
    home: Path, environ: dict[str, str], content: str, words: str
) -> None:
    configure(home, content)
    with pytest.raises(BadFile) as caught:
        find(environ, home)
    assert words in caught.value.message
    assert str(home / ".docker/config.json") in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code is ExitCode.BAD_FILE


def test_a_configuration_that_is_not_utf8(home: Path, environ: dict[str, str]) -> None:
    (home / ".docker/config.json").write_bytes(b'{"currentContext": "\xff\xfe"}')
    with pytest.raises(BadFile, match="UTF-8"):
        find(environ, home)


def test_a_configuration_that_is_a_folder(home: Path, environ: dict[str, str]) -> None:
    (home / ".docker/config.json").mkdir()
    with pytest.raises(BadFile, match="cannot be read"):
        find(environ, home)


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ({"Endpoints": []}, "Endpoints.docker"),
        ({"Endpoints": {"docker": "unix:///x"}}, "Endpoints.docker"),
        ({"Endpoints": {"docker": {"Host": 7}}}, "Endpoints.docker.Host"),
    ],
)
def test_a_malformed_context_names_the_key(
    home: Path, environ: dict[str, str], content: dict[str, object], key: str
) -> None:
    path = store_context(home, "box", content)
    environ["DOCKER_CONTEXT"] = "box"
    with pytest.raises(BadFile) as caught:
        find(environ, home)
    assert key in caught.value.message
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("unix://", "unix:///var/run/docker.sock"),
        ("  unix:///tmp/y.sock ", "unix:///tmp/y.sock"),
        ("tcp://10.0.0.7", "tcp://10.0.0.7:2375"),
        ("10.0.0.7", "tcp://10.0.0.7:2375"),
        ("box:1234", "tcp://box:1234"),
        ("tcp://", "tcp://localhost:2375"),
        ("tcp://:1234", "tcp://localhost:1234"),
        ("tcp://[::1]:1", "tcp://[::1]:1"),
        ("tcp://[fe80::1%eth0]", "tcp://[fe80::1%eth0]:2375"),
        ("tcp://127.0.0.1:1/path", "tcp://127.0.0.1:1/path"),
        ("ssh://box", "ssh://box"),
        ("ssh://me@box:22", "ssh://me@box:22"),
        ("ssh://me@box/run/user/7/docker.sock", "ssh://me@box/run/user/7/docker.sock"),
    ],
)
def test_addresses_as_docker_reads_them(written: str, meant: str) -> None:
    assert normalised(written, "--host") == meant


@pytest.mark.parametrize("host", [None, "tcp://box:1", "ssh://Box"])
def test_the_version_asked_for_goes_with_every_address(home: Path, environ: dict[str, str], host: str | None) -> None:
    assert find(environ, home, host).api_limit is None
    for written, limit in (("1.43", (1, 43)), ("v1.41", (1, 41)), ("", None), ("2.0", (2, 0))):
        assert find(environ | {"DOCKER_API_VERSION": written}, home, host).api_limit == limit


@pytest.mark.parametrize(
    "written", ["new", "1", "1.", ".43", "1.43.1", "-1.43", "1.43 ", "1,43", "١.٤", "9" * 5000 + ".1", "\x1b[2J"]
)
def test_a_version_asked_for_that_is_none_is_refused(home: Path, environ: dict[str, str], written: str) -> None:
    with pytest.raises(UsageError, match="DOCKER_API_VERSION is") as caught:
        find(environ | {"DOCKER_API_VERSION": written}, home)
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) < 200
    assert "1.43" in caught.value.hint


def test_a_relative_socket_is_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalised("unix://x.sock", "--host") == f"unix://{tmp_path}/x.sock"


@pytest.mark.parametrize(
    "written",
    [
        "http://127.0.0.1:2",
        "foo://bar",
        "npipe:////./pipe/docker_engine",
        "fd://",
        "tcp://box:99999",
        "tcp://a b",
        "ssh://",
        "ssh://-oProxyCommand=evil",
        "ssh://me@-oProxyCommand=evil",
        "ssh://a@b@c",
        "ssh://box:port",
    ],
)
def test_addresses_that_are_none(written: str) -> None:
    with pytest.raises(UsageError) as caught:
        normalised(written, "DOCKER_HOST")
    assert caught.value.message.startswith("DOCKER_HOST names ")
    assert caught.value.hint


def test_hostile_names_are_harmless_in_messages(home: Path, environ: dict[str, str]) -> None:
    environ["DOCKER_CONTEXT"] = "\x1b]0;owned\x07[red]\nname"
    with pytest.raises(ConsoleError) as caught:
        find(environ, home)
    assert "\x1b" not in caught.value.message
    assert "\n" not in caught.value.message

"""A registry's odd answers: token servers, redirects, rubbish, too much, other digests."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.images.catalog import Catalog, Evidence, entry
from gpuconsole.images.findings import Finding, Trouble, apply, load_findings, save_findings
from gpuconsole.images.reference import parse
from gpuconsole.images.registry import Registries, RegistryError
from gpuconsole.services.verifying import verify

MANIFEST = json.dumps(
    {"config": {"digest": "sha256:aa", "size": 10}, "layers": [{"size": 100}, {"size": 200}]}
).encode()
CONFIG = json.dumps({"os": "linux", "architecture": "amd64"}).encode()
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"
Reply = tuple[int, dict[str, str], bytes]


class Server:
    """An HTTP server on loopback that answers as a test says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.answer: Callable[[str, str | None], Reply] = lambda *_: (404, {}, b"")
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                authorization = self.headers.get("Authorization")
                outer.asked.append((self.path, authorization))
                code, headers, body = outer.answer(self.path, authorization)
                self.send_response(code)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


@pytest.fixture
def other() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


def plain(path: str, _: str | None) -> Reply:
    return 200, {}, CONFIG if "/blobs/" in path else MANIFEST


def describe(server: Server, login: tuple[str, str] | None = None) -> Any:
    return Registries(lambda _: login).describe(parse(f"{server.address}/lab/torch:1"))


def trouble(server: Server, login: tuple[str, str] | None = None) -> RegistryError:
    with pytest.raises(RegistryError) as raised:
        describe(server, login)
    return raised.value


def test_digest_platform_and_size(server: Server) -> None:
    server.answer = plain
    found = describe(server)
    assert (found.digest, found.sizes) == (DIGEST, {"linux/amd64": 310})


def test_a_token_server_is_asked_and_its_token_shown(server: Server) -> None:
    def answer(path: str, authorization: str | None) -> Reply:
        if path.startswith("/token"):
            return 200, {}, b'{"token": "abc"}'
        if authorization != "Bearer abc":
            realm = f'Bearer realm="http://{server.address}/token",service="lab",scope="x"'
            return 401, {"WWW-Authenticate": realm}, b""
        return plain(path, authorization)

    server.answer = answer
    assert describe(server).digest == DIGEST
    (token,) = [path for path, _ in server.asked if path.startswith("/token")]
    assert token == "/token?service=lab&scope=repository%3Alab%2Ftorch%3Apull"


def test_a_login_is_shown_to_the_token_server_only(server: Server, other: Server) -> None:
    other.answer = lambda *_: (200, {}, b'{"access_token": "abc"}')

    def answer(path: str, authorization: str | None) -> Reply:
        if authorization != "Bearer abc":
            return 401, {"WWW-Authenticate": f'Bearer realm="http://{other.address}/token",service="s"'}, b""
        return plain(path, authorization)

    server.answer = answer
    assert describe(server, ("me", "secret")).digest == DIGEST
    assert [shown for _, shown in other.asked] == ["Basic bWU6c2VjcmV0"]
    assert {shown for _, shown in server.asked} == {None, "Bearer abc"}


def test_a_blob_on_another_server_does_not_see_the_login(server: Server, other: Server) -> None:
    other.answer = lambda *_: (200, {}, CONFIG)

    def answer(path: str, authorization: str | None) -> Reply:
        if authorization is None:
            return 401, {"WWW-Authenticate": "Basic realm=lab"}, b""
        if "/blobs/" in path:
            return 307, {"Location": f"http://{other.address}/blob"}, b""
        return plain(path, authorization)

    server.answer = answer
    assert describe(server, ("me", "secret")).sizes == {"linux/amd64": 310}
    assert other.asked == [("/blob", None)]


@pytest.mark.parametrize("realm", ["http://example.com/token", "ftp://x/", "", "file:///etc/passwd"])
def test_a_login_is_never_shown_in_the_clear_to_strangers(server: Server, realm: str) -> None:
    server.answer = lambda *_: (401, {"WWW-Authenticate": f'Bearer realm="{realm}",service="s"'}, b"")
    assert trouble(server, ("me", "secret")).trouble is Trouble.ANSWER


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ((404, {}, b""), Trouble.GONE),
        ((403, {}, b""), Trouble.REFUSED),
        ((401, {"WWW-Authenticate": "Basic realm=x"}, b""), Trouble.REFUSED),
        ((401, {}, b""), Trouble.ANSWER),
        ((429, {}, b""), Trouble.LIMIT),
        ((500, {}, b""), Trouble.ANSWER),
        ((200, {}, b"<html>"), Trouble.ANSWER),
        ((200, {}, b"[]"), Trouble.ANSWER),
        ((200, {}, b"{}"), Trouble.ANSWER),
        ((200, {}, b"[" * 100_000), Trouble.ANSWER),
        ((200, {}, b'{"config": {"digest": "sha256:aa", "size": -1}}'), Trouble.ANSWER),
        ((200, {"Docker-Content-Digest": f"sha256:{'0' * 64}"}, MANIFEST), Trouble.ANSWER),
        ((200, {}, b" " * (5 * 2**20)), Trouble.ANSWER),
    ],
)
def test_other_answers_are_told_for_what_they_are(server: Server, reply: Reply, expected: Trouble) -> None:
    server.answer = lambda *_: reply
    found = trouble(server)
    assert found.trouble is expected
    assert found.text
    assert "\n" not in found.text


def test_a_registry_that_cannot_be_reached_is_asked_once(server: Server) -> None:
    server.answer = lambda *_: (429, {}, b"")
    found = verify([f"{server.address}/lab/torch:{number}" for number in range(30)], lambda _: None)
    assert {each.trouble for each in found} == {Trouble.LIMIT}
    assert len(server.asked) <= 4, "as many as ask at once"


def test_findings_are_kept_added_to_and_survive_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "folder/findings.json"
    there = Finding("a/b:1", 1.0, digest=DIGEST, sizes={"linux/amd64": 5})
    gone = Finding("a/b:2", 1.0, trouble=Trouble.GONE, text="it has no such image")
    save_findings([there, gone, Finding("a/b:3", 1.0, trouble=Trouble.UNREACHED)], path)
    save_findings([Finding("a/b:1", 2.0, trouble=Trouble.UNREACHED, text="x")], path)
    assert load_findings(path) == {"a/b:1": there, "a/b:2": gone}
    catalog = apply(Catalog(tuple(entry({"reference": f"a/b:{number}"}) for number in (1, 2, 3))), load_findings(path))
    first, second, third = catalog.images
    assert (first.digest, first.platforms, first.evidence) == (DIGEST, ("linux/amd64",), Evidence.REGISTRY)
    assert (second.gone, third.gone, third.evidence) == (True, False, Evidence.OWN)
    schema = '"schema": "gpuconsole.catalog-findings/1"'
    for rubbish in ("", "[]", "{}", '{"schema": "other/1", "images": []}', "\x00", f'{{{schema}, "images": [3]}}'):
        path.write_text(rubbish)
        assert load_findings(path) == {}
    save_findings([there], path)
    assert load_findings(path) == {"a/b:1": there}

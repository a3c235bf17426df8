"""A registry's odd answers: token servers, redirects, rubbish, too much, other digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from gpuconsole.core.errors import Refused
from gpuconsole.images.findings import Trouble
from gpuconsole.images.reference import parse
from gpuconsole.images.registry import Registries
from gpuconsole.images.registrycalls import RegistryError
from gpuconsole.services.verifying import verify
from tests.rig.answering import Reply, Server


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


CONFIG = json.dumps({"os": "linux", "architecture": "amd64"}).encode()
MANIFEST = json.dumps(
    {"config": {"digest": digest_of(CONFIG), "size": 10}, "layers": [{"size": 100}, {"size": 200}]}
).encode()
DIGEST = digest_of(MANIFEST)
PLATFORMS = ("linux/amd64", "linux/arm64", "linux/ppc64le")
INDEX = json.dumps(
    {
        "manifests": [
            {"digest": DIGEST, "platform": dict(zip(("os", "architecture"), each.split("/"), strict=True))}
            for each in (*PLATFORMS, "unknown/unknown")
        ]
    }
).encode()


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
        ((200, {}, b'{"config": {"size": 1}}'), Trouble.ANSWER),
        ((200, {}, b" " * (5 * 2**20)), Trouble.ANSWER),
    ],
)
def test_other_answers_are_told_for_what_they_are(server: Server, reply: Reply, expected: Trouble) -> None:
    server.answer = lambda *_: reply
    found = trouble(server)
    assert found.trouble is expected
    assert found.text
    assert "\n" not in found.text


HOSTILE = (
    "",
    "sha256:",
    "\x1bc",
    "sha256:\x1bc",
    "\x1b]0;x\x07",
    "../../../x",
    "sha256:" + "A" * 64,
    f"sha512:{'a' * 128}",
)
NO_DIGESTS = (*HOSTILE, f"sha256:{'0' * 64}", f"{DIGEST}0", f"x{DIGEST}")
"""What a registry may say in the place of the digest of what it sent."""


def with_top(top: bytes, path: str, _: str | None) -> Reply:
    return 200, {}, top if path.endswith("/manifests/1") else MANIFEST


@pytest.mark.parametrize("said", NO_DIGESTS)
def test_only_the_digest_of_what_was_sent_is_taken(server: Server, said: str) -> None:
    """Wherever a registry names a digest: in a header, of a manifest in an index, of a configuration."""

    def header(path: str, _: str | None) -> Reply:
        return 200, {"Docker-Content-Digest": said}, CONFIG if "/blobs/" in path else MANIFEST

    server.answer = header
    assert trouble(server).trouble is Trouble.ANSWER
    for inside in (
        {"manifests": [{"digest": said, "platform": {"os": "linux", "architecture": "amd64"}}]},
        {"config": {"digest": said, "size": 1}, "layers": []},
    ):
        top = json.dumps(inside).encode()
        server.answer = partial(with_top, top)
        assert trouble(server).trouble is Trouble.ANSWER


@pytest.mark.parametrize("said", HOSTILE)
def test_a_digest_by_itself_is_one_or_is_reckoned(server: Server, said: str) -> None:
    reference = parse(f"{server.address}/lab/torch:1")
    server.answer = lambda *_: (200, {"Docker-Content-Digest": said} if said else {}, MANIFEST)
    if said:
        with pytest.raises(RegistryError) as raised:
            Registries(lambda _: None).digest(reference)
        assert raised.value.trouble is Trouble.ANSWER
    else:
        assert Registries(lambda _: None).digest(reference) == DIGEST
    assert set(server.methods) == {"HEAD", "GET"}


def test_what_is_asked_for_by_a_digest_has_it(server: Server) -> None:
    server.answer = plain
    other = parse(f"{server.address}/lab/torch@sha256:{'0' * 64}")
    for question in (Registries(lambda _: None).describe, Registries(lambda _: None).digest):
        with pytest.raises(RegistryError) as raised:
            question(other)
        assert raised.value.trouble is Trouble.ANSWER


@pytest.mark.parametrize("size", [-1, 1.5, True, "5", None, 2**63, 10**400])
def test_a_size_is_a_number_of_bytes(server: Server, size: object) -> None:
    manifest = json.dumps({"config": {"digest": digest_of(CONFIG), "size": 1}, "layers": [{"size": size}]}).encode()
    server.answer = lambda path, _: (200, {}, CONFIG if "/blobs/" in path else manifest)
    assert trouble(server).trouble is Trouble.ANSWER


@pytest.mark.parametrize(
    "address",
    [
        "https://[x",
        "https://[::1",
        "https://é\udcff.example/t",
        f"https://{'a' * 70}.example/t",
        f"https://ä{'ö' * 80}.example/t",
        "https://a..b/t",
        "https://x:port/t",
        "https://x y/t",
        "https://",
        "//",
        "https://\t[/",
    ],
)
def test_addresses_that_are_none_are_the_registrys_fault(server: Server, address: str) -> None:
    """Where it sends somebody for a token, and where it sends on to; no crash, whatever is written there."""
    raw = address.encode("utf-8", "surrogateescape").decode("latin-1")
    for reply in ((401, {"WWW-Authenticate": f'Bearer realm="{raw}",service="s"'}, b""), (307, {"Location": raw}, b"")):
        server.answer = lambda *_, reply=reply: reply
        assert trouble(server, ("me", "secret")).trouble in (Trouble.ANSWER, Trouble.UNREACHED)


def test_a_bad_address_of_one_registry_leaves_the_others_their_answer(server: Server, other: Server) -> None:
    server.answer = lambda *_: (401, {"WWW-Authenticate": 'Bearer realm="https://[x"'}, b"")
    other.answer = plain
    bad, good = verify([f"{each.address}/lab/torch:1" for each in (server, other)], lambda _: None)
    assert (bad.trouble, good.digest) == (Trouble.ANSWER, DIGEST)


@pytest.mark.parametrize("kind", ["token", "password"])
def test_a_login_that_runs_out_is_made_anew(server: Server, kind: str) -> None:
    """A token is good for some minutes; a session with many images lasts longer."""
    given: list[str] = []

    def answer(path: str, authorization: str | None) -> Reply:
        if path.startswith("/token"):
            given.append(f"token-{len(given)}")
            return 200, {}, json.dumps({"token": given[-1]}).encode()
        if kind == "token" and (not given or authorization != f"Bearer {given[-1]}"):
            return 401, {"WWW-Authenticate": f'Bearer realm="http://{server.address}/token",service="s"'}, b""
        if kind == "password" and authorization is None:
            return 401, {"WWW-Authenticate": "Basic realm=lab"}, b""
        return plain(path, authorization)

    server.answer = answer
    registries = Registries(lambda _: ("me", "secret"))
    reference = parse(f"{server.address}/lab/torch:1")
    for _ in range(3):
        assert registries.describe(reference).digest == DIGEST
        given.append("the last one ran out")
    assert len([name for name in given if name.startswith("token")]) == (3 if kind == "token" else 0)


def test_a_login_that_is_refused_is_asked_with_once_more_only(server: Server) -> None:
    server.answer = lambda *_: (401, {"WWW-Authenticate": "Basic realm=lab"}, b"")
    registries = Registries(lambda _: ("me", "wrong"))
    for _ in range(2):
        server.asked.clear()
        with pytest.raises(RegistryError) as raised:
            registries.digest(parse(f"{server.address}/lab/torch:1"))
        assert raised.value.trouble is Trouble.REFUSED
        assert len(server.asked) == 2


def test_a_login_that_cannot_be_read_keeps_nobody_from_public_images(server: Server) -> None:
    def unread(_: str) -> tuple[str, str] | None:
        raise Refused("The helper is broken.", hint="Mend it.")

    reference = parse(f"{server.address}/lab/torch:1")
    server.answer = plain
    assert Registries(unread).describe(reference).digest == DIGEST
    assert not Registries(unread).has_login(server.address)
    for refusal in ((401, {"WWW-Authenticate": "Basic realm=lab"}, b""), (401, {}, b"")):
        server.answer = lambda *_, refusal=refusal: refusal
        with pytest.raises(RegistryError) as raised:
            Registries(unread).describe(reference)
        assert raised.value.trouble is (Trouble.REFUSED if refusal[1] else Trouble.ANSWER)


def several(path: str, _: str | None) -> Reply:
    return (
        200,
        {"Docker-Content-Digest": digest_of(INDEX)} if path.endswith("/1") else {},
        (INDEX if path.endswith("/1") else MANIFEST),
    )


@pytest.mark.parametrize(("platform", "fetched"), [(None, 3), ("linux/arm64", 1), ("linux/s390x", 0)])
def test_of_many_platforms_only_the_wanted_ones_are_fetched(server: Server, platform: str | None, fetched: int) -> None:
    server.answer = several
    found = Registries(lambda _: None).describe(parse(f"{server.address}/lab/torch:1"), platform)
    assert (found.digest, found.platforms) == (digest_of(INDEX), PLATFORMS)
    assert len(found.sizes) == len(found.layers) == fetched
    assert server.methods == ["GET"] * (1 + fetched)


def test_a_digest_costs_no_manifest(server: Server) -> None:
    server.answer = several
    assert Registries(lambda _: None).digest(parse(f"{server.address}/lab/torch:1")) == digest_of(INDEX)
    assert server.methods == ["HEAD"]


@pytest.mark.parametrize("code", [404, 403, 429])
def test_a_refusal_of_a_digest_is_not_asked_about_again(server: Server, code: int) -> None:
    server.answer = lambda *_: (code, {}, b"")
    with pytest.raises(RegistryError):
        Registries(lambda _: None).digest(parse(f"{server.address}/lab/torch:1"))
    assert server.methods == ["HEAD"]


@pytest.mark.parametrize("code", [405, 501])
def test_a_registry_that_knows_no_heads_is_asked_for_the_whole(server: Server, code: int) -> None:
    server.answer = lambda path, _: (code, {}, b"") if server.methods[-1] == "HEAD" else plain(path, _)
    assert Registries(lambda _: None).digest(parse(f"{server.address}/lab/torch:1")) == DIGEST


def test_a_registry_that_cannot_be_reached_is_asked_once(server: Server) -> None:
    server.answer = lambda *_: (429, {}, b"")
    found = verify([f"{server.address}/lab/torch:{number}" for number in range(30)], lambda _: None)
    assert {each.trouble for each in found} == {Trouble.LIMIT}
    assert len(server.asked) <= 4, "as many as ask at once"

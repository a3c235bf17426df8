"""Image references: read as docker reads them, written short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.images.reference import Reference, is_image_id, parse, short

SHA = "sha256:3fe1" + "0" * 60


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("ubuntu", "docker.io", "library/ubuntu", "latest", None),
        ("ubuntu:24.04", "docker.io", "library/ubuntu", "24.04", None),
        (
            "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime",
            "docker.io",
            "pytorch/pytorch",
            "2.9.0-cuda12.8-cudnn9-runtime",
            None,
        ),
        ("docker.io/pytorch/pytorch", "docker.io", "pytorch/pytorch", "latest", None),
        ("index.docker.io/pytorch/pytorch", "docker.io", "pytorch/pytorch", "latest", None),
        ("nvcr.io/nvidia/pytorch:25.10-py3", "nvcr.io", "nvidia/pytorch", "25.10-py3", None),
        ("localhost:5000/a/b/c:v1", "localhost:5000", "a/b/c", "v1", None),
        ("127.0.0.1:5000/x", "127.0.0.1:5000", "x", "latest", None),
        ("localhost/x", "localhost", "x", "latest", None),
        (f"ubuntu@{SHA}", "docker.io", "library/ubuntu", None, SHA),
        (f"ubuntu:24.04@{SHA}", "docker.io", "library/ubuntu", "24.04", SHA),
        ("[::1]:5000/x:1", "[::1]:5000", "x", "1", None),
    ],
)
def test_parts(text: str, registry: str, repository: str, tag: str | None, digest: str | None) -> None:
    assert parse(text) == Reference(registry=registry, repository=repository, tag=tag, digest=digest)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not an image name"),
        ("Ubuntu", "lower case"),
        ("ubuntu:", "not a tag"),
        ("ubuntu:-x", "not a tag"),
        ("ubuntu:a b", "not a tag"),
        ("ubuntu@sha256:12", "not a digest"),
        ("ubuntu@", "not a digest"),
        ("a//b", "not an image name"),
        ("bad_host.com/x", "not a registry"),
        (SHA, "not its name"),
        ("--privileged", "not an image name"),
        ("x\x1b[2J", "not an image name"),
    ],
)
def test_what_is_no_reference_is_refused_with_the_part_named(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse(text)


@pytest.mark.parametrize(
    ("text", "digest", "expected"),
    [
        ("pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime", SHA, "pytorch 2.9.0-cu128 @3fe1"),
        ("pytorch/pytorch:2.9.0-cuda12.8-cudnn9-devel", None, "pytorch 2.9.0-cu128-devel"),
        ("ghcr.io/pytorch/pytorch:2.14.1-cuda13.0-cudnn9-runtime", None, "pytorch 2.14.1-cu130"),
        ("nvcr.io/nvidia/pytorch:25.10-py3", "sha256:a81c" + "1" * 60, "ngc 25.10 @a81c"),
        ("nvcr.io/nvidia/pytorch:25.10-py3-igpu", None, "ngc 25.10-igpu"),
        ("gpuconsole-test/small:1", None, "small 1"),
        ("ubuntu", None, "ubuntu"),
        (f"pytorch/pytorch@{SHA}", None, "pytorch @3fe1"),
        (SHA, None, "id 3fe100000000"),
        ("not a reference", None, "not a reference"),
    ],
)
def test_short_form(text: str, digest: str | None, expected: str) -> None:
    assert short(text, digest=digest) == expected


components = st.from_regex(r"\A[a-z0-9]{1,8}(?:[._-][a-z0-9]{1,5})?\Z")
registries = st.sampled_from(["docker.io", "nvcr.io", "localhost", "localhost:5000", "10.0.0.1:443", "ghcr.io"])
tags = st.none() | st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}\Z")
digests = st.none() | st.from_regex(r"\Asha256:[0-9a-f]{64}\Z")


@given(registries, st.lists(components, min_size=1, max_size=4), tags, digests)
def test_written_and_read_back_it_is_the_same(
    registry: str, parts: list[str], tag: str | None, digest: str | None
) -> None:
    repository = "/".join(["library", *parts] if registry == "docker.io" and len(parts) == 1 else parts)
    reference = Reference(registry, repository, tag or (None if digest else "latest"), digest)
    assert parse(str(reference)) == reference


@given(st.text(max_size=60))
def test_any_text_is_a_reference_or_a_value_error(text: str) -> None:
    assert short(text) or text == ""
    try:
        reference = parse(text)
    except ValueError:
        return
    assert parse(str(reference)) == reference
    assert not is_image_id(text)

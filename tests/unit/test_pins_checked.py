"""What is said of pins by what their registries answer, and when they do not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuconsole.images.findings import Trouble
from gpuconsole.images.pins import Pin
from gpuconsole.images.reference import Reference
from gpuconsole.images.registry import Manifest, Registries
from gpuconsole.images.registrycalls import RegistryError
from gpuconsole.services.pins import Pinner, PinState
from gpuconsole.services.session import Session
from gpuconsole.services.verifying import verify

OLD, NEW = "sha256:" + "1" * 64, "sha256:" + "2" * 64
PIN = Pin("registry.example/team/torch:1", digest=OLD)


class Saying(Registries):
    """Registries that say of a tag and of a digest what they were given; an error is raised."""

    def __init__(self, *, tag: str | Trouble, digest: str | Trouble) -> None:
        self._tag, self._digest = tag, digest

    def digest(self, reference: Reference) -> str:
        said = self._tag if reference.digest is None else self._digest
        if isinstance(said, Trouble):
            raise RegistryError(said, f"it is {said.name}")
        return said


def pinner(tmp_path: Path, ask: Registries) -> Pinner:
    return Pinner(Session(host=f"unix://{tmp_path}/none.sock"), ask)


NO_ANSWER = [each for each in Trouble if each is not Trouble.GONE]


@pytest.mark.parametrize(
    ("tag", "digest", "state"),
    [
        (OLD, OLD, PinState.SAME),
        (NEW, OLD, PinState.MOVED),
        (Trouble.GONE, OLD, PinState.MOVED),
        (NEW, Trouble.GONE, PinState.GONE),
        (Trouble.GONE, Trouble.GONE, PinState.GONE),
        *((trouble, OLD, PinState.UNKNOWN) for trouble in NO_ANSWER),
        *((NEW, trouble, PinState.UNKNOWN) for trouble in NO_ANSWER),
        *((Trouble.GONE, trouble, PinState.UNKNOWN) for trouble in NO_ANSWER),
    ],
)
def test_a_pin_is_only_what_its_registry_was_heard_to_say(
    tmp_path: Path, tag: str | Trouble, digest: str | Trouble, state: PinState
) -> None:
    check = pinner(tmp_path, Saying(tag=tag, digest=digest)).check([PIN])[0]
    assert check.state is state
    if state is PinState.UNKNOWN:
        silent = tag if isinstance(tag, Trouble) and tag is not Trouble.GONE else digest
        assert isinstance(silent, Trouble)
        assert silent.name in check.text
    if tag == NEW:
        assert check.now == NEW
        assert "the tag leads to" in check.text
    elif tag is Trouble.GONE and state is not PinState.GONE:
        assert "the tag is gone" in check.text


class Silent(Registries):
    """Registries that never answer."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def digest(self, reference: Reference) -> str:
        self.over.wait()
        raise RegistryError(Trouble.UNREACHED, "it was too late")

    def describe(self, reference: Reference, platform: str | None = None) -> Manifest:
        return Manifest(self.digest(reference), ())


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    registries = Silent()
    monkeypatch.setattr("gpuconsole.services.verifying.Registries", lambda login: registries)
    monkeypatch.setattr("gpuconsole.services.verifying._DEADLINE_S", 0.05)
    monkeypatch.setattr("gpuconsole.services.pins._DEADLINE_S", 0.05)
    yield registries
    registries.over.set()


def test_a_registry_that_is_late_is_not_told_as_an_engine(tmp_path: Path, silent: Silent) -> None:
    check = pinner(tmp_path, silent).check([PIN])[0]
    finding = verify([PIN.reference], lambda registry: None)[0]
    assert check.state is PinState.UNKNOWN
    for text in (check.text, finding.text or ""):
        assert "in time" in text
        assert "engine" not in text
    assert "registry" in check.text

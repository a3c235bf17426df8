"""What a name is, is told in one place: of what was meant, and of the image a container was made from."""

from __future__ import annotations

import pytest

from gpuconsole.core.nearness import did_you_mean, nearest_names
from gpuconsole.engine.model import Container, ContainerState, Image
from gpuconsole.launch.labels import IMAGE
from gpuconsole.services.imagenames import written_name

ID = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("trian", ("train",)),
        ("rain", ("train", "trainer-two")),
        ("two", ("trainer-two",)),
        ("", ()),
        ("zzzz", ()),
    ],
)
def test_the_most_similar_names_come_first_then_those_it_is_a_part_of(word: str, found: tuple[str, ...]) -> None:
    assert nearest_names(word, ["prep", "train", "trainer-two", "train"])[: len(found)] == found
    assert bool(did_you_mean(word, ["prep", "train", "trainer-two"])) is bool(found)


def test_three_are_enough() -> None:
    assert did_you_mean("train", [f"train{number}" for number in range(9)]).count(" or ") == 2


@pytest.mark.parametrize(
    ("written", "label", "known", "told"),
    [
        ("pytorch:2", None, True, "pytorch:2"),
        (ID, "pytorch:2@sha256:1", True, "pytorch:2@sha256:1"),
        (ID, None, True, "team/train:1"),
        (ID, None, False, ID),
        (ID.removeprefix("sha256:")[:12], None, True, "team/train:1"),
        ("abab", "ignored", True, "team/train:1"),
    ],
)
def test_an_image_is_called_as_it_was_written_else_as_it_is_called_now(
    written: str, label: str | None, known: bool, told: str
) -> None:
    container = Container("c", "train", written, ID, ContainerState.RUNNING, labels={IMAGE: label} if label else {})
    images = {ID: Image(ID, ("team/train:1",))} if known else {}
    assert written_name(container, images) == told

"""What every engine must do when it builds an image."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.engine.buildfailures import StepFailed
from gpuconsole.engine.model import BuildProgress
from tests.engine.contract import Ground, clause, until

FINE = """\
FROM {image}
USER 0:0
SHELL ["/bin/sh", "-c"]
RUN echo first; echo '\033[31msecond' >&2; \\
    echo {name} > /said
ENV WHERE=/opt:${{PATH:-/nowhere}}
LABEL gpuconsole.torch="2.9.1+cu128" \\
      other="two words"
WORKDIR /made
ENTRYPOINT []
CMD ["/bin/sh"]
"""
BROKEN = "FROM {image}\nRUN echo {name} > /said\nRUN echo about to fail; exit 3\n"
ENDLESS = "FROM {image}\nRUN echo {name} > /said\nRUN echo waiting; sleep 1000\n"


def written(text: str, ground: Ground, word: str) -> str:
    return text.format(image=ground.image, name=ground.name(word))


def images_of(told: list[BuildProgress]) -> list[str]:
    """What the steps left, the newest first, without the base and what was built."""
    steps = told[next((number for number, each in enumerate(told) if each.step == 2), len(told)) :]
    return [each.image_id for each in steps if each.image_id and not each.image_id.startswith("sha256:")][::-1]


@clause
def it_builds_and_tells_each_step(ground: Ground) -> None:
    tag = f"{ground.name('built')}:1"
    told = list(ground.engine.build(written(FINE, ground, "built"), tag=tag))
    image = ground.engine.image(tag)
    try:
        begun = [each for each in told if each.step is not None]
        assert [each.step for each in begun] == list(range(1, 10))
        assert {each.steps for each in begun} == {9}
        assert begun[3].text.startswith("RUN echo first")
        texts = [each.text for each in told]
        assert "first" in texts
        assert "second" in texts  # without the colour
        whole = [each.image_id for each in told if each.image_id.startswith("sha256:")]
        assert whole == [image.id]
        assert image.labels["gpuconsole.torch"] == "2.9.1+cu128"
        assert image.labels["other"] == "two words"
        assert image.working_dir == "/made"
        assert (dict(image.environment)["WHERE"] or "").startswith("/opt:/")
        again = list(ground.engine.build(written(FINE, ground, "built"), tag=tag))
        assert any(each.cached for each in again)
        assert ground.engine.image(tag).id == image.id
    finally:
        ground.engine.remove_image(tag)


@clause
def a_step_that_fails_is_told_with_its_code_and_leaves_no_container(ground: Ground) -> None:
    tag = f"{ground.name('broken')}:1"
    told: list[BuildProgress] = []
    with pytest.raises(StepFailed, match="exit code 3"):
        told.extend(ground.engine.build(written(BROKEN, ground, "broken"), tag=tag))
    assert "about to fail" in [each.text for each in told]
    with pytest.raises(NotFound):
        ground.engine.image(tag)
    assert not {each.container_id for each in told if each.container_id} & running(ground)
    forget(ground, images_of(told))


@clause
def a_build_that_is_closed_ends_in_the_engine_too(ground: Ground) -> None:
    tag = f"{ground.name('endless')}:1"
    told: list[BuildProgress] = []
    before = running(ground)
    stream = ground.engine.build(written(ENDLESS, ground, "endless"), tag=tag)
    for each in stream:
        told.append(each)
        if each.text == "waiting":
            threading.Thread(target=stream.close).start()
    until(lambda: running(ground) <= before, what="the end of the step's container")
    with pytest.raises(NotFound):
        ground.engine.image(tag)
    forget(ground, images_of(told))


@clause
def a_dockerfile_that_is_none_is_refused(ground: Ground) -> None:
    with pytest.raises(ConsoleError) as caught:
        list(ground.engine.build(f"FROM {ground.image}\nRUNN true\n", tag=f"{ground.name('none')}:1"))
    assert "RUNN" in f"{caught.value.message} {caught.value.detail}".upper()
    assert caught.value.hint


def running(ground: Ground) -> set[str]:
    return {container.id[:12] for container in ground.engine.containers()}


def forget(ground: Ground, images: list[str]) -> None:
    """Remove what the steps of a build that did not end left."""
    for image in images:
        with suppress(ConsoleError):
            ground.engine.remove_image(image)

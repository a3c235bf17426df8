"""What may be killed and removed: only what the payload itself can have made."""

from __future__ import annotations

import pytest

from gpuconsole.probes.ending import Traces


@pytest.mark.parametrize(
    "folder",
    ["/tmp/gpuconsole-check-ab12cd", "/dev/shm/gpuconsole-check-x_y_z1", "/workspace/gpuconsole-check-ab12cd"],
)
def test_folders_of_the_payload_are_noted(folder: str) -> None:
    traces = Traces()
    traces.add_folder(folder, workdir="/workspace/")
    assert traces.folder == folder


@pytest.mark.parametrize(
    "folder",
    [
        "",
        "/",
        "/workspace",
        "/tmp",
        "/tmp/gpuconsole-check-",
        "/tmp/gpuconsole-check-../../etc",
        "/tmp/gpuconsole-check-ab/../..",
        "/home/gpuconsole-check-abcdef",
        "gpuconsole-check-abcdef",
        "/tmp/gpuconsole-check-abcdef/",
    ],
)
def test_no_other_folder_is(folder: str) -> None:
    traces = Traces()
    traces.add_folder(folder, workdir="/workspace")
    assert not traces.folder


def test_the_first_folder_stays() -> None:
    traces = Traces()
    traces.add_folder("/tmp/gpuconsole-check-aaaa", workdir="/")
    traces.add_folder("/tmp/gpuconsole-check-bbbb", workdir="/")
    assert traces.folder == "/tmp/gpuconsole-check-aaaa"


def test_no_group_that_would_mean_others_is_noted() -> None:
    traces = Traces()
    for number in (None, 0.0, 1.0, -5.0, 42.0, 42.0, 43.0):
        traces.add_group(number)
    assert traces.groups == [42, 43]

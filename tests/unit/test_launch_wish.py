"""``--gpus`` read as docker reads it, and docker's traps refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.launch.spec import GpuWish, GpuWishKind
from gpuconsole.launch.wish import parse_gpus

UUID = "GPU-3fe1b2c4-0000-1111-2222-333344445555"


def devices(*names: str) -> GpuWish:
    return GpuWish(GpuWishKind.DEVICES, devices=names)


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("all", GpuWish(GpuWishKind.ALL)),
        ("ALL", GpuWish(GpuWishKind.ALL)),
        ("none", GpuWish(GpuWishKind.NONE)),
        ("auto", GpuWish(GpuWishKind.AUTO)),
        ("2", GpuWish(GpuWishKind.COUNT, count=2)),
        (" 2 ", GpuWish(GpuWishKind.COUNT, count=2)),
        ("count=3", GpuWish(GpuWishKind.COUNT, count=3)),
        ("count=all", GpuWish(GpuWishKind.ALL)),
        ("device=0", devices("0")),
        ("device=0,2", devices("0", "2")),
        ('"device=0,2"', devices("0", "2")),
        ("'\"device=0,2\"'", devices("0", "2")),
        ("'device=0,2'", devices("0", "2")),
        ("device=0, 2", devices("0", "2")),
        ("device=0,0", devices("0")),
        (f"device={UUID}", devices(UUID)),
        ("device=GPU-3fe1,1", devices("GPU-3fe1", "1")),
        ("device=MIG-11111111-2222,0:1", devices("MIG-11111111-2222", "0:1")),
        ("device=MIG-GPU-3fe1b2c4/1/0", devices("MIG-GPU-3fe1b2c4/1/0")),
    ],
)
def test_forms_that_are_read(text: str, wish: GpuWish) -> None:
    assert parse_gpus(text) == wish


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "write a number"),
        ("0", "device=0 for GPU 0"),
        ("-1", "write all"),
        ("0,2", "write device=0,2"),
        (UUID, f"write device={UUID}"),
        ("two", "'two' names no GPUs"),
        ("device=", "a device is missing"),
        ("device=0,,1", "a device is missing"),
        ("device=/dev/nvidia0", "no index and no UUID"),
        ("device=0,capabilities=utility", "no index and no UUID"),
        ("all,capabilities=utility", "cannot be chosen"),
        ("driver=nvidia,count=1", "cannot be chosen"),
        ("1.5", "names no GPUs"),
        ("٣", "names no GPUs"),
    ],
)
def test_forms_that_are_refused_with_what_to_write(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_gpus(text)
    assert told in str(caught.value)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        wish = parse_gpus(text)
    except ValueError:
        return
    assert parse_gpus(str(wish)) == wish

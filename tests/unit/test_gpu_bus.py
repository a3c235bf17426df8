"""Without a driver: what to do depends on whether a GPU waits for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuconsole.gpu.nvml import bus
from gpuconsole.gpu.nvml.bus import on_bus
from gpuconsole.gpu.nvml.codes import LIBRARY_NOT_FOUND
from gpuconsole.gpu.nvml.gateway import Failure, Gateway
from gpuconsole.gpu.nvml.source import NvmlSource
from gpuconsole.host.machine import read_machine


def device(root: Path, name: str, vendor: str, kind: str) -> None:
    folder = root / "sys/bus/pci/devices" / name
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "class").write_text(f"{kind}\n")


DEVICES = {
    "none": (),
    "a card": (("0x10de", "0x030000"),),
    "a server's card": (("0x8086", "0x060000"), ("0x10de", "0x030200")),
    "its sound only": (("0x10de", "0x040300"),),
    "another maker's": (("0x1002", "0x030000"),),
}


@pytest.mark.parametrize("kind", DEVICES)
def test_the_same_gpus_are_seen_as_by_the_doctor_and_the_advice_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    for number, each in enumerate(DEVICES[kind]):
        device(tmp_path, f"0000:0{number}:00.0", *each)
    monkeypatch.setattr(bus, "_WSL", str(tmp_path / "dxg"))
    there = on_bus(tmp_path / "sys")
    assert there is bool(read_machine(tmp_path).pci_gpus)

    monkeypatch.setattr(Gateway, "start", lambda self: Failure(LIBRARY_NOT_FOUND))
    snapshot = NvmlSource(sysfs=tmp_path / "sys").snapshot()
    assert snapshot.reason == "no-library"
    assert snapshot.hint is not None
    assert ("Install" in snapshot.hint, "none is needed" in snapshot.hint) == (there, not there)


def test_where_the_bus_does_not_tell_a_driver_is_advised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "_WSL", str(tmp_path / "dxg"))
    assert on_bus(tmp_path / "sys") is None
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "dxg").touch()
    assert on_bus(tmp_path / "sys") is None, "WSL"

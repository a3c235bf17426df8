"""Facts read from a machine's files: trees shaped like real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuconsole.host.machine import Machine, PciGpu, disk_space, read_machine


def put(root: Path, path: str, text: str | bytes = "") -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())


def pci(root: Path, address: str, *, vendor: str, cls: str, driver: str | None) -> None:
    put(root, f"sys/bus/pci/devices/{address}/vendor", vendor + "\n")
    put(root, f"sys/bus/pci/devices/{address}/class", cls + "\n")
    if driver:
        (root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
        (root / f"sys/bus/pci/devices/{address}/driver").symlink_to(f"../../drivers/{driver}")


def test_gpus_are_found_on_the_bus_with_the_driver_that_owns_them(tmp_path: Path) -> None:
    pci(tmp_path, "0000:01:00.0", vendor="0x10de", cls="0x030000", driver="nvidia")
    pci(tmp_path, "0000:01:00.1", vendor="0x10de", cls="0x040300", driver="snd_hda_intel")  # its audio function
    pci(tmp_path, "0000:02:00.0", vendor="0x10de", cls="0x030200", driver="nouveau")
    pci(tmp_path, "0000:03:00.0", vendor="0x10de", cls="0x030200", driver=None)
    pci(tmp_path, "0000:04:00.0", vendor="0x8086", cls="0x030000", driver="i915")
    assert read_machine(tmp_path).pci_gpus == (
        PciGpu("0000:01:00.0", "nvidia"),
        PciGpu("0000:02:00.0", "nouveau"),
        PciGpu("0000:03:00.0", None),
    )


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n", "535.129.03"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n", "580.159.04"),
        ("garbage", None),
    ],
)
def test_the_loaded_module_names_its_version(tmp_path: Path, text: str, version: str | None) -> None:
    put(tmp_path, "proc/driver/nvidia/version", text)
    assert read_machine(tmp_path).module_version == version


def test_the_library_version_is_in_the_name_of_the_file_behind_the_link(tmp_path: Path) -> None:
    put(tmp_path, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.460.73.01")
    (tmp_path / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.460.73.01")
    assert read_machine(tmp_path).library_version == "460.73.01"


def test_a_dangling_library_link_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.535.1")
    assert read_machine(tmp_path).library_version is None


@pytest.mark.parametrize(
    ("release", "family", "name"),
    [
        ('ID=ubuntu\nID_LIKE=debian\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n', "ubuntu", "Ubuntu 24.04.1 LTS"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\nPRETTY_NAME="Linux Mint 22"\n', "ubuntu", "Linux Mint 22"),
        ('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12"\n', "debian", "Debian GNU/Linux 12"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nPRETTY_NAME="Rocky Linux 9.4"\n', "fedora", "Rocky Linux 9.4"),
        ("ID=nixos\nPRETTY_NAME=NixOS\n", "other", "NixOS"),
        ("", "other", "Linux"),
    ],
)
def test_the_distribution_decides_which_package_manager_is_named(
    tmp_path: Path, release: str, family: str, name: str
) -> None:
    put(tmp_path, "etc/os-release", release)
    machine = read_machine(tmp_path)
    assert (machine.os_family, machine.os_name) == (family, name)


def test_nouveau_secure_boot_wsl_and_containers_are_seen(tmp_path: Path) -> None:
    put(tmp_path, "proc/modules", "nouveau 2678784 0 - Live 0x0\n")
    put(tmp_path, "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", b"\x06\0\0\0\x01")
    put(tmp_path, "proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2")
    put(tmp_path, ".dockerenv")
    machine = read_machine(tmp_path)
    assert (machine.nouveau_loaded, machine.secure_boot, machine.wsl, machine.in_container) == (True, True, True, True)


def test_a_module_built_for_another_kernel_only_is_told_from_no_index_at_all(tmp_path: Path) -> None:
    assert read_machine(tmp_path).module_for_kernel is None
    put(tmp_path, f"lib/modules/{os.uname().release}/modules.dep", "kernel/fs/ext4.ko:\n")
    assert read_machine(tmp_path).module_for_kernel is False
    put(tmp_path, f"lib/modules/{os.uname().release}/modules.dep", "updates/dkms/nvidia.ko.zst: kernel/x.ko\n")
    assert read_machine(tmp_path).module_for_kernel is True


def test_an_empty_machine_is_read_without_an_error(tmp_path: Path) -> None:
    machine = read_machine(tmp_path)
    assert machine == Machine(os_name="Linux", os_family="other", kernel=os.uname().release)


def test_disk_space_of_a_folder_that_is_not_made_yet_is_that_of_its_parent(tmp_path: Path) -> None:
    here = disk_space(str(tmp_path))
    assert here is not None
    assert here[1] == disk_space(str(tmp_path / "a/b"))[1]  # type: ignore[index]

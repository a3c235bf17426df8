"""What of a machine bears on a benchmark, read from its files."""

from __future__ import annotations

from pathlib import Path

from gpuconsole.services import benchhost


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_server(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC\x1b[2J 9654\nflags\t\t: fpu vme\n\n"
            "processor\t: 1\nmodel name\t: other\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/bus/pci/devices/0000:17:00.0/numa_node": "1\n",
            "sys/bus/pci/devices/0000:65:00.0/numa_node": "-1\n",
        },
    )
    assert benchhost.cpu_model(root) == "AMD EPYC 9654"
    assert (benchhost.governor(root), benchhost.is_virtual(root)) == ("powersave", False)
    buses = ("00000000:17:00.0", "0000:17:00.0", "00000000:65:00.0", "00000000:99:00.0", "../../etc", None)
    assert [benchhost.numa_node(bus, root) for bus in buses] == [1, 1, None, None, None, None]


def test_a_virtual_one_and_one_of_arm(tmp_path: Path) -> None:
    virtual = machine(tmp_path / "a", {"proc/cpuinfo": "model name : Xeon\nflags : fpu hypervisor\n"})
    assert (benchhost.is_virtual(virtual), benchhost.governor(virtual)) == (True, None)
    arm = machine(tmp_path / "b", {"proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"})
    assert (benchhost.cpu_model(arm), benchhost.is_virtual(arm)) == ("ARM 0x41 0xd4f", None)
    assert benchhost.cpu_model(tmp_path / "none") is None

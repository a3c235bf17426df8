"""What a machine has for giving GPUs to containers: CDI specifications as nvidia-ctk writes them, toolkit, board."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.host.blockyaml import YamlError, read_yaml
from gpuconsole.host.cdi import CdiDevice, read_cdi
from gpuconsole.host.facts import LaunchFacts, launch_facts

# The form of nvidia-ctk's own output: keys sorted, sequences at their key's indent, indices in quotes, UUIDs without.
WRITTEN_BY_CTK = """\
---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidia-modeset
  - path: /dev/nvidiactl
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  hooks:
  - args:
    - nvidia-cdi-hook
    - create-symlinks
    - --link
    - libcuda.so.1::/usr/lib/x86_64-linux-gnu/libcuda.so
    env:
    - NVIDIA_CTK_DEBUG=false
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
  mounts:
  - containerPath: /usr/bin/nvidia-smi
    hostPath: /usr/bin/nvidia-smi
    options:
    - ro
    - nosuid
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia1
    - path: /dev/dri/card1
    hooks:
    - args: []
      path: /usr/bin/nvidia-cdi-hook
  name: "0"
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia1
  name: GPU-3fe1b2c4-0000-1111-2222-333344445555
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia1
    - path: /dev/nvidia0
  name: all
kind: nvidia.com/gpu
"""
# The same content as people and other tools write it.
WRITTEN_BY_HAND = """\
# made by hand
cdiVersion: '0.5.0'   # quoted
kind: "nvidia.com/gpu"

devices:
    -   name: 0
        containerEdits: {deviceNodes: [{path: /dev/nvidia1, major: 195}, {"path": "/dev/dri/card1"}], hooks: []}
    -   name: "GPU-3fe1b2c4-0000-1111-2222-333344445555"
        containerEdits:
            deviceNodes:
                -
                    path: /dev/nvidia1   # one
    -   name: all
        containerEdits:
            deviceNodes:
                - {path: /dev/nvidia1}
                - path: /dev/nvidia0
...
ignored: [after the end
"""


def names(text: str, folder: Path, *, suffix: str = ".yaml") -> dict[str, tuple[str, ...]]:
    (folder / f"nvidia{suffix}").write_text(text)
    found = read_cdi([str(folder)])
    assert found.problems == ()
    return {device.short_name: device.nodes for device in found.devices}


@pytest.mark.parametrize("text", [WRITTEN_BY_CTK, WRITTEN_BY_HAND], ids=["by-ctk", "by-hand"])
def test_device_names_and_nodes_are_read_from_yaml(text: str, tmp_path: Path) -> None:
    assert names(text, tmp_path) == {
        "0": ("/dev/nvidia1", "/dev/dri/card1"),
        "GPU-3fe1b2c4-0000-1111-2222-333344445555": ("/dev/nvidia1",),
        "all": ("/dev/nvidia1", "/dev/nvidia0"),
    }


def test_json_is_read_and_names_are_qualified(tmp_path: Path) -> None:
    document = {"kind": "nvidia.com/gpu", "devices": [{"name": "0"}, {"name": 1}, {}, "x", {"name": "2"}]}
    (tmp_path / "nvidia.json").write_text(json.dumps(document))
    source = str(tmp_path / "nvidia.json")
    assert read_cdi([str(tmp_path)]).devices == (
        CdiDevice("nvidia.com/gpu=0", (), source),
        CdiDevice("nvidia.com/gpu=2", (), source),
    )


def test_other_kinds_and_other_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "nic.yaml").write_text("kind: vendor.example/nic\ndevices:\n- name: '0'\n")
    (tmp_path / "nvidia.yaml.bak").write_text("[")
    assert read_cdi([str(tmp_path)]) == read_cdi([])


def test_a_later_folder_overrides_an_earlier_one(tmp_path: Path) -> None:
    for folder, node in (("etc", "/dev/nvidia0"), ("run", "/dev/nvidia1")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.yaml").write_text(
            f"kind: nvidia.com/gpu\ndevices:\n- name: '0'\n  containerEdits:\n    deviceNodes:\n    - path: {node}\n"
        )
    found = read_cdi([str(tmp_path / "etc"), str(tmp_path / "run"), str(tmp_path / "absent")])
    assert [device.nodes for device in found.devices] == [("/dev/nvidia1",)]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"kind: nvidia.com/gpu\ndevices: *anchor\n", "line 2"),
        (b"kind: |\n  nvidia.com/gpu\n", "line 1"),
        (b"\tkind: x\n", "line 1: indented with a tab"),
        (b"a: 1\na: 2\n", "line 2: 'a' stands twice"),
        (b"a: b: c\n", "line 1"),
        (b"a: [1, 2\n", "line 1"),
        (b'a: "x\n', "line 1"),
        (b"a: 1\n  b: 2\n", "line"),
        (b"--- \na: 1\n---\nb: 2\n", "second document"),
        (b"- a\nb: c\n", "line 2"),
        (b"\xff\xfe", "cannot be read"),
        (b"just text\n", "no CDI specification"),
        (b"", "no CDI specification"),
        (b"[" * 5000, "cannot be read"),
    ],
)
def test_what_is_not_understood_is_said_and_never_guessed(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(content)
    (tmp_path / "good.yaml").write_text(WRITTEN_BY_CTK)
    found = read_cdi([str(tmp_path)])
    assert len(found.devices) == 3
    assert len(found.problems) == 1
    assert str(tmp_path / "bad.yaml") in found.problems[0]
    assert told in found.problems[0]


def test_a_broken_json_file_and_an_endless_one_are_said(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_bytes(b" " * (4 * 2**20 + 1))
    (tmp_path / "c.json").mkdir()
    assert len(read_cdi([str(tmp_path)]).problems) == 3


def test_scalars() -> None:
    text = (
        "a: 'it''s'\nb: \"tab\\t\\u00e9\\x41\"\nc: ~\nd:\ne: x # y\nf: x#y\ng: one\n  two\nh: []\ni: {}\nj: 'a # b'\n"
    )
    assert read_yaml(text) == {
        "a": "it's", "b": "tab\té" + "A", "c": None, "d": None, "e": "x", "f": "x#y", "g": "one two", "h": [], "i": {},
        "j": "a # b",
    }  # fmt: skip
    assert read_yaml("- a\n- - b\n  - c\n-\n  d: e\n- f: g\n  h: i\n") == [
        "a", ["b", "c"], {"d": "e"}, {"f": "g", "h": "i"},
    ]  # fmt: skip
    assert read_yaml("# nothing\n") is None


PLAIN = st.from_regex(r"[A-Za-z/][A-Za-z0-9/._=-]{0,12}", fullmatch=True).filter(
    lambda text: text.lower() not in ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
)
KEYS = st.from_regex(r"[A-Za-z][A-Za-z0-9.]{0,8}", fullmatch=True)
ANYTHING = st.recursive(
    PLAIN | st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def written(value: object, indent: int = 0) -> str:
    """``value`` in block style, as the YAML libraries of Go write it."""
    pad = " " * indent
    if isinstance(value, dict) and value:
        return "".join(f"{pad}{key}:{below(part, indent)}" for key, part in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{pad}- {written(part, indent + 2).lstrip(' ')}" for part in value)
    return f"{pad}{scalar(value)}\n"


def below(value: object, indent: int) -> str:
    if isinstance(value, list) and value:
        return "\n" + written(value, indent)
    return "\n" + written(value, indent + 2) if isinstance(value, dict) and value else f" {scalar(value)}\n"


def scalar(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@given(ANYTHING)
def test_what_is_written_in_block_style_is_read_back(value: object) -> None:
    assert read_yaml(written(value)) == value


@given(ANYTHING)
def test_json_is_yaml(value: object) -> None:
    assert read_yaml(json.dumps(value)) == value


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_yaml(text)
    except YamlError:
        pass


@given(st.text(alphabet=" \n-:[]{},'\"#ab\\"))
def test_any_text_of_yamls_own_characters_is_read_or_refused(text: str) -> None:
    try:
        read_yaml(text)
    except YamlError:
        pass


def test_a_bare_machine_has_nothing(tmp_path: Path) -> None:
    assert launch_facts(root=tmp_path, search_path="") == LaunchFacts()


def test_the_toolkit_is_found_and_its_settings_read(tmp_path: Path) -> None:
    hook = tmp_path / "usr/bin/nvidia-container-runtime-hook"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    assert launch_facts(root=tmp_path, search_path="").hook is None  # not executable
    hook.chmod(0o755)
    config = tmp_path / "etc/nvidia-container-runtime/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[nvidia-container-cli]\nno-cgroups = true\n[nvidia-container-runtime]\nmode = "cdi"\n')
    facts = launch_facts(root=tmp_path, search_path="")
    assert (facts.hook, facts.toolkit_mode, facts.no_cgroups) == (str(hook), "cdi", True)
    config.write_text("mode = [")
    assert launch_facts(root=tmp_path, search_path="").toolkit_mode is None


def test_a_program_on_the_path_comes_before_the_usual_places(tmp_path: Path) -> None:
    tool = tmp_path / "opt/nvidia-ctk"
    tool.parent.mkdir()
    tool.write_text("")
    tool.chmod(0o755)
    assert launch_facts(root=tmp_path / "void", search_path=f"/nowhere{os.pathsep}{tool.parent}").ctk == str(tool)


@pytest.mark.parametrize(
    ("path", "content", "tegra", "wsl"),
    [
        ("etc/nv_tegra_release", "R36", True, False),
        ("sys/devices/soc0/family", "Tegra\n", True, False),
        ("proc/device-tree/compatible", "nvidia,p3737\0nvidia,tegra234\0", True, False),
        ("proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n", False, True),
        ("dev/dxg", "", False, True),
        ("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n", False, False),
    ],
)
def test_the_kind_of_board(path: str, content: str, tegra: bool, wsl: bool, tmp_path: Path) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(content)
    facts = launch_facts(root=tmp_path, search_path="")
    assert (facts.tegra, facts.wsl) == (tegra, wsl)


def test_specifications_are_read_where_the_engine_reads_them(tmp_path: Path) -> None:
    folder = tmp_path / "opt/cdi"
    folder.mkdir(parents=True)
    (folder / "nvidia.yaml").write_text(WRITTEN_BY_CTK)
    assert len(launch_facts(cdi_dirs=("/opt/cdi",), root=tmp_path, search_path="").cdi.devices) == 3
    assert launch_facts(root=tmp_path, search_path="").cdi.devices == ()

"""What a GPU's name says."""

from __future__ import annotations

import pytest

from gpuconsole.images.boards import Segment, board, brands


@pytest.mark.parametrize(
    ("name", "cc", "segment", "brand"),
    [
        ("NVIDIA GeForce RTX 4090", (8, 9), Segment.GEFORCE, ("geforce", "geforcertx")),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", (8, 9), Segment.GEFORCE, ("geforce", "geforcertx")),
        ("NVIDIA GeForce GTX 1080 Ti", (6, 1), Segment.GEFORCE, ("geforce",)),
        ("NVIDIA TITAN RTX", (7, 5), Segment.GEFORCE, ("titan", "titanrtx")),
        ("NVIDIA H200", (9, 0), Segment.DATACENTER, ("tesla", "nvidia")),
        ("NVIDIA H20", (9, 0), Segment.DATACENTER, ("tesla", "nvidia")),
        ("NVIDIA A100-SXM4-80GB", (8, 0), Segment.DATACENTER, ("tesla", "nvidia")),
        ("NVIDIA A10", (8, 6), Segment.DATACENTER, ("tesla", "nvidia")),
        ("Tesla V100-SXM2-32GB", (7, 0), Segment.DATACENTER, ("tesla",)),
        ("Tesla V100-FHHL-16GB", (7, 0), Segment.DATACENTER, ("tesla",)),
        ("Tesla T4", (7, 5), Segment.DATACENTER, ("tesla",)),
        ("V100", (7, 0), Segment.DATACENTER, ("tesla", "nvidia")),
        ("A100", (8, 0), Segment.DATACENTER, ("tesla", "nvidia")),
        ("NVIDIA RTX A6000", (8, 6), Segment.WORKSTATION, ("nvidiartx", "quadrortx", "quadro")),
        ("Quadro RTX 6000", (7, 5), Segment.WORKSTATION, ("quadro", "quadrortx")),
        ("NVIDIA RTX 6000 Ada Generation", (8, 9), Segment.WORKSTATION, ("nvidiartx", "quadrortx", "quadro")),
        ("DGX Spark GB10", (12, 1), Segment.SOC, ("nvidia",)),
        ("NVIDIA GB10", (12, 1), Segment.SOC, ("nvidia",)),
        ("Orin (nvgpu)", (8, 7), Segment.JETSON, ("nvidia",)),
        # not in the table, but the name says what kind it is
        ("NVIDIA GeForce RTX 9090", None, Segment.GEFORCE, ("geforce", "geforcertx")),
        ("NVIDIA RTX PRO 1234 Blackwell", None, Segment.WORKSTATION, ("nvidiartx", "quadrortx", "quadro")),
    ],
)
def test_names_of_nvml_and_of_people(
    name: str, cc: tuple[int, int] | None, segment: Segment, brand: tuple[str, ...]
) -> None:
    found = board(name)
    assert found is not None
    assert (found.capability, found.segment) == (cc, segment)
    assert brands(name, segment) == brand


@pytest.mark.parametrize("name", ["", "GPU", "NVIDIA Graphics Device", "Voodoo 2", "NVIDIA H20000", "4090"])
def test_a_name_that_says_nothing_is_no_board(name: str) -> None:
    assert board(name) is None
    assert brands(name, None) == ()

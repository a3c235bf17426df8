"""``NVIDIA_REQUIRE_*`` read as NVIDIA's hook reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.images.compatibility import shipped_compatibility
from gpuconsole.images.requirements import Malformed, Offer, demands, meets

H100 = Offer(driver="535.183.01", cuda="12.2", arch=(9, 0), brand="nvidia")
BASE = "cuda>=13.0 brand=tesla,driver>=535,driver<536 brand=nvidia,driver>=535,driver<536 brand=nvidia,driver>=550"


@pytest.mark.parametrize(
    ("demand", "offer", "expected"),
    [
        (BASE, H100, True),
        (BASE, Offer("545.23.08", "12.3", arch=(9, 0), brand="nvidia"), False),
        (BASE, Offer("535.183.01", "12.2", arch=(8, 6), brand="geforcertx"), False),
        (BASE, Offer("580.65.06", "13.0", arch=(8, 6), brand="geforcertx"), True),
        # and binds closer than or; names are equal whatever their case; a missing part of a version is zero
        ("brand=TESLA,driver>=600 cuda>=12.2", H100, True),
        ("brand=NVIDIA", H100, True),
        ("brand!=geforce", H100, True),
        ("driver=535.183.1", H100, True),
        ("cuda=12.2.0", H100, True),
        ("cuda>12.2", H100, False),
        ("arch>=8.0,arch<9.0", H100, False),
        ("arch=9.0", H100, True),
        ("driver<536", H100, True),
        ("driver<=535", H100, False),
        # 12.10 is newer than 12.9
        ("cuda>=12.9", Offer(cuda="12.10"), True),
        # empty parts are passed over, and what demands nothing is met
        ("  cuda>=12.0,, ", H100, True),
        ("", H100, True),
        # what is unknown leaves open only what depends on it
        ("cuda>=13.0 brand=tesla", Offer(driver="535.183.01", cuda="12.2"), None),
        ("cuda>=12.0 brand=tesla", Offer(driver="535.183.01", cuda="12.2"), True),
        ("brand=tesla,driver>=600", Offer(driver="535.183.01"), False),
        ("driver>=535", Offer(), None),
        # a CUDA version that is a lower bound
        ("cuda>=13.0", Offer(cuda="13.4", cuda_is_exact=False), True),
        ("cuda>=13.9", Offer(cuda="13.4", cuda_is_exact=False), None),
        ("cuda<13.0", Offer(cuda="13.4", cuda_is_exact=False), False),
        ("cuda<14.0", Offer(cuda="13.4", cuda_is_exact=False), None),
        ("cuda=13.4", Offer(cuda="13.4", cuda_is_exact=False), None),
        ("cuda=13.0", Offer(cuda="13.4", cuda_is_exact=False), False),
        ("cuda!=13.0", Offer(cuda="13.4", cuda_is_exact=False), True),
        ("cuda<=13.4", Offer(cuda="13.4", cuda_is_exact=False), None),
    ],
)
def test_demands_are_met_or_not(demand: str, offer: Offer, expected: bool | None) -> None:
    assert meets(demand, offer) is expected


@pytest.mark.parametrize(
    "demand", ["cuda", "cuda>=", "cuda>=12.x", "memory>=8", "brand>=tesla", "cuda=>12.0", ">=12.0"]
)
def test_what_the_hook_cannot_read_it_refuses(demand: str) -> None:
    with pytest.raises(Malformed):
        meets(demand, H100)
    assert meets(f"cuda>=12.0 {demand}", H100) is True, "it stops reading at the first alternative that holds"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ()),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.8"}, ("cuda>=12.8",)),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.8", "CUDA_VERSION": "12.8.1"}, ("cuda>=12.8",)),
        ({"NVIDIA_REQUIRE_B": "driver>=535", "NVIDIA_REQUIRE_CUDA": "cuda>=12"}, ("driver>=535", "cuda>=12")),
        ({"CUDA_VERSION": "11.2.152"}, ("cuda>=11.2",)),
        ({"NVIDIA_REQUIRE_JETPACK": "csv-mounts=all"}, ()),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.8", "NVIDIA_DISABLE_REQUIRE": "true"}, ()),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.8", "NVIDIA_DISABLE_REQUIRE": "yes"}, ("cuda>=12.8",)),
        ({"CUDA_VERSION": "latest"}, ()),
    ],
)
def test_which_demands_an_environment_makes(environment: dict[str, str], expected: tuple[str, ...]) -> None:
    assert demands(environment) == expected


def test_the_base_images_of_every_cuda_in_the_catalog_are_known_and_can_be_read() -> None:
    known = shipped_compatibility().demanded
    assert set(known) >= {"11.6", "11.7", "11.8", "12.1", "12.4", "12.6", "12.8", "12.9", "13.0", "13.2"}
    for cuda, texts in known.items():
        for text in texts:
            assert meets(text, Offer(driver="900.10", cuda=cuda, arch=(9, 0), brand="x")) is True
            assert meets(text, Offer(driver="900.10", cuda="10.0", arch=(9, 0), brand="x")) is False


def test_from_cuda_12_6_on_the_base_images_let_no_geforce_pass_on_an_older_driver() -> None:
    for cuda, texts in shipped_compatibility().demanded.items():
        passes = any(f"brand={brand}," in text for text in texts for brand in ("geforce", "geforcertx", "titan"))
        assert passes is (cuda in ("11.6", "11.7", "11.8", "12.1", "12.4"))


@given(st.text(max_size=60), st.sampled_from([H100, Offer(), Offer(cuda="13.4", cuda_is_exact=False)]))
def test_any_text_is_answered_or_refused(demand: str, offer: Offer) -> None:
    answer: bool | str | None
    try:
        answer = meets(demand, offer)
    except Malformed as error:
        answer = str(error)
    assert answer != ""

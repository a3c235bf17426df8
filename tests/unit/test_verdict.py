"""The verdict: the researched vectors, the reference rule, and what must hold whatever the machine."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuconsole.images.boards import Segment, board, brands
from gpuconsole.images.catalog import AMD64, ARM64, CatalogImage, shipped_catalog, traits
from gpuconsole.images.compatibility import Kernels, shipped_compatibility
from gpuconsole.images.judge import judge
from gpuconsole.images.reference import is_ngc_pytorch
from gpuconsole.images.traits import ImageTraits
from gpuconsole.images.verdict import Effect, GpuTraits, HostTraits, Verdict, Word
from gpuconsole.images.versions import at_least, capability, version

CATALOG = shipped_catalog()
COMPATIBILITY = shipped_compatibility()
TRAITS = {entry.reference: traits(entry, COMPATIBILITY) for entry in CATALOG.images}
WORDS = {
    "ok-native": Word.RUNS,
    "ok-minor-compat": Word.RUNS_WITH,
    "forward-compat-maybe": Word.RUNS_WITH,
    "blocked-require-cuda": Word.WILL_NOT_RUN,
    "driver-too-old": Word.WILL_NOT_RUN,
    "no-kernel-image": Word.WILL_NOT_RUN,
    "wrong-architecture": Word.WILL_NOT_RUN,
    "unknown-arch": Word.UNKNOWN,
}
HUB, NGC = "pytorch/pytorch", "nvcr.io/nvidia/pytorch"
# GPU, capability, processor, driver, image, what is true of it.
VECTORS = [
    ("RTX 3090", "8.6", "amd64", "535.183.01", f"{HUB}:2.9.0-cuda12.8-cudnn9-runtime", "ok-minor-compat"),
    ("RTX 3090", "8.6", "amd64", "535.183.01", f"{HUB}:2.9.0-cuda12.8-cudnn9-devel", "blocked-require-cuda"),
    ("RTX 3090", "8.6", "amd64", "550.54.15", f"{HUB}:2.9.0-cuda13.0-cudnn9-runtime", "driver-too-old"),
    ("RTX 5090", "12.0", "amd64", "570.124.06", f"{HUB}:2.6.0-cuda12.6-cudnn9-runtime", "no-kernel-image"),
    ("RTX 5090", "12.0", "amd64", "580.95.05", f"{HUB}:2.7.1-cuda11.8-cudnn9-runtime", "no-kernel-image"),
    ("RTX 5090", "12.0", "amd64", "570.124.06", f"{HUB}:2.7.1-cuda12.8-cudnn9-runtime", "ok-native"),
    ("V100", "7.0", "amd64", "570.124.06", f"{HUB}:2.7.1-cuda12.8-cudnn9-runtime", "no-kernel-image"),
    ("V100", "7.0", "amd64", "570.124.06", f"{HUB}:2.9.1-cuda12.8-cudnn9-runtime", "ok-native"),
    ("V100", "7.0", "amd64", "570.124.06", f"{HUB}:2.11.0-cuda12.8-cudnn9-runtime", "no-kernel-image"),
    ("V100", "7.0", "amd64", "570.124.06", f"{HUB}:2.14.1-cuda12.6-cudnn9-runtime", "ok-native"),
    ("GTX 1080 Ti", "6.1", "amd64", "560.35.05", f"{HUB}:2.14.1-cuda12.6-cudnn9-runtime", "ok-native"),
    ("GTX 1080 Ti", "6.1", "amd64", "570.124.06", f"{HUB}:2.9.1-cuda12.8-cudnn9-runtime", "no-kernel-image"),
    ("RTX 4090", "8.9", "amd64", "580.95.05", f"{HUB}:2.14.1-cuda13.0-cudnn9-runtime", "ok-native"),
    ("H200", "9.0", "amd64", "580.178.04", f"{HUB}:2.14.1-cuda13.2-cudnn9-runtime", "ok-minor-compat"),
    ("B300", "10.3", "amd64", "580.95.05", f"{HUB}:2.9.1-cuda13.0-cudnn9-runtime", "ok-native"),
    ("DGX Spark GB10", "12.1", "arm64", "580.95.05", f"{HUB}:2.14.1-cuda13.0-cudnn9-runtime", "wrong-architecture"),
    ("RTX 3090", "8.6", "amd64", "470.256.02", f"{HUB}:2.7.0-cuda11.8-cudnn9-runtime", "ok-minor-compat"),
    ("A100", "8.0", "amd64", "470.256.02", f"{HUB}:2.5.1-cuda12.1-cudnn9-runtime", "driver-too-old"),
    ("H100", "9.0", "amd64", "535.183.01", f"{HUB}:2.9.0-cuda13.0-cudnn9-devel", "forward-compat-maybe"),
    ("DGX Spark GB10", "12.1", "arm64", "580.95.05", f"{NGC}:25.10-py3", "ok-native"),
    ("V100", "7.0", "amd64", "580.95.05", f"{NGC}:25.10-py3", "no-kernel-image"),
    ("RTX 5090", "12.0", "amd64", "570.124.06", f"{NGC}:24.05-py3", "unknown-arch"),
    ("RTX 4090", "8.9", "amd64", "550.54.15", f"{NGC}:25.10-py3", "driver-too-old"),
    ("L40S", "8.9", "amd64", "550.54.15", f"{NGC}:25.10-py3", "forward-compat-maybe"),
]


def gpu(name: str | None, cc: str | None = None) -> GpuTraits:
    known = board(name) if name else None
    segment = known.segment if known else None
    return GpuTraits(
        label=name or "the GPU",
        name=name,
        capability=capability(cc) if cc else known.capability if known else None,
        segment=segment,
        brands=brands(name, segment),
        unified_memory=known is not None and known.unified_memory,
    )


def host(driver: str | None, *gpus: GpuTraits, arch: str | None = "amd64", checked: bool | None = True) -> HostTraits:
    return HostTraits(driver=driver, architecture=arch, gpus=gpus, checks_demands=checked)


def image(reference: str) -> ImageTraits:
    found = CATALOG.find(reference)
    assert found is not None
    return traits(found, COMPATIBILITY)


def verdict(reference: str, on: HostTraits) -> Verdict:
    return judge(image(reference), on, COMPATIBILITY)


@pytest.mark.parametrize(("name", "cc", "arch", "driver", "reference", "expected"), VECTORS)
def test_the_researched_vectors(name: str, cc: str, arch: str, driver: str, reference: str, expected: str) -> None:
    found = verdict(reference, host(driver, gpu(name, cc), arch=arch))
    assert (found.reasons[0].id, found.word) == (expected, WORDS[expected])


def test_there_are_as_many_vectors_as_were_researched() -> None:
    assert len(VECTORS) == 24


# --- the reference rule, written anew from its description


def rule(entry: CatalogImage, facts: ImageTraits, cc: tuple[int, int], segment: Segment, arch: str, driver: str) -> str:
    """The plain rule of the research, on the hook's path."""
    toolkit = COMPATIBILITY.toolkit(entry.cuda or "")
    assert toolkit is not None
    if f"linux/{arch}" not in (facts.platforms or ()):
        return "wrong-architecture"
    kernels = facts.kernels.get(f"linux/{arch}")
    native = at_least(driver, entry.driver or toolkit.driver)
    if kernels and not kernels.serves(cc) and not (kernels.compiles_for(cc) and native):
        return "no-kernel-image"
    if not kernels and entry.min_cc:
        if cc < capability(entry.min_cc):
            return "no-kernel-image"
        if cc[0] >= 10:
            return "unknown-arch"
    if native:
        return "ok-native"
    data_centre = segment is Segment.DATACENTER
    if entry.variant == "devel" and not is_ngc_pytorch(entry.parsed) and not data_centre:
        return "blocked-require-cuda"
    if at_least(driver, toolkit.floor):
        return "ok-minor-compat"
    branch = version(driver)[0]
    if data_centre and entry.variant == "devel" and branch in (535, 550, 570, 575, 580, 590):
        return "forward-compat-maybe"
    return "driver-too-old"


DRIVERS = (
    *("450.80.02", "450.248.02", "470.256.02", "510.108.03", "515.105.01", "525.60.13", "525.147.05", "530.30.02"),
    *("535.54.03", "535.183.01", "545.23.08", "550.54.15", "555.58.02", "560.35.05", "565.57.01", "570.26"),
    *("570.124.06", "575.57.08", "580.65.06", "580.95.05", "590.48.01", "595.58.03", "610.43.02", "616.00", "620.10"),
)
BOARDS = (
    *("Tesla P100-PCIE-16GB", "Tesla V100-SXM2-32GB", "NVIDIA A100-SXM4-80GB", "NVIDIA L40S", "NVIDIA H200"),
    *("NVIDIA B300", "NVIDIA GeForce GTX 1080 Ti", "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 5090"),
)


def demand_decides(entry: CatalogImage, driver: str, name: str) -> bool:
    """Whether the image's own demand says otherwise than the rule, which knows its text only roughly."""
    if entry.variant != "devel" or is_ngc_pytorch(entry.parsed):
        return False
    known = board(name)
    assert known is not None
    terms = [f"brand={each},driver>={version(driver)[0]}," for each in brands(name, known.segment)]
    texts = COMPATIBILITY.demanded.get(entry.cuda or "", ())
    return {term in text for term in terms for text in texts} != {known.segment is Segment.DATACENTER}


def branch_is_named(entry: CatalogImage, driver: str) -> bool:
    """Whether facts of this very image or CUDA name a branch for forward compatibility that the rule does not know."""
    branch = version(driver)[0]
    more = set(COMPATIBILITY.forward_branches(entry.cuda or "")) - set(COMPATIBILITY.forward[""])
    return branch in more or any(version(each)[0] == branch for each in entry.forward)


def test_the_rule_holds_for_every_image_driver_and_kind_of_board() -> None:
    compared = 0
    for entry, card, driver in itertools.product(CATALOG.images, [gpu(name) for name in BOARDS], DRIVERS):
        facts = TRAITS[entry.reference]
        assert card.name
        assert card.capability
        assert card.segment
        expected = rule(entry, facts, card.capability, card.segment, "amd64", driver)
        found = judge(facts, host(driver, card), COMPATIBILITY)
        ids = [reason.id for reason in found.reasons]
        if card.capability >= (10, 0) and not at_least(driver, "570.26"):
            assert found.word is Word.WILL_NOT_RUN
            continue
        if expected == "ok-native" and "ptx-jit" in ids:
            assert found.word is Word.RUNS_WITH
            continue
        if card.capability < capability(entry.sure_cc or "1.0"):
            assert found.word in (Word.UNKNOWN, Word.WILL_NOT_RUN)
            continue
        if demand_decides(entry, driver, card.name) or branch_is_named(entry, driver):
            continue
        if expected == "unknown-arch":
            assert found.word in (Word.UNKNOWN, Word.WILL_NOT_RUN)
            continue
        compared += 1
        assert expected in ids, (entry.reference, card.name, driver, ids)
        assert found.word is WORDS[expected], (entry.reference, card.name, driver, ids)
    assert compared > 20_000


# --- what must hold whatever the machine

entries = st.sampled_from(CATALOG.images)
drivers = st.builds(
    "{}.{}.{:02d}".format, st.integers(min_value=418, max_value=640), st.integers(0, 255), st.integers(0, 30)
)
capabilities = st.tuples(st.sampled_from((3, 5, 6, 7, 8, 9, 10, 11, 12, 13)), st.integers(0, 9))
segments = st.sampled_from((None, *Segment))
paths = st.sampled_from((True, False, None))
architectures = st.sampled_from(("amd64", "arm64", None))


@st.composite
def gpus(draw: st.DrawFn) -> GpuTraits:
    segment = draw(segments)
    return GpuTraits(
        name="a GPU",
        capability=draw(st.none() | capabilities),
        segment=segment,
        brands=brands("rtx", segment),
        mig_instances=draw(st.sampled_from((None, None, 0, 3))),
    )


@st.composite
def hosts(draw: st.DrawFn) -> HostTraits:
    return HostTraits(
        driver=draw(st.none() | drivers),
        architecture=draw(architectures),
        gpus=tuple(draw(st.lists(gpus(), max_size=3))),
        checks_demands=draw(paths),
    )


@settings(max_examples=400, deadline=None)
@given(entry=entries, on=hosts(), newer=drivers)
def test_a_newer_driver_never_breaks_what_runs(entry: CatalogImage, on: HostTraits, newer: str) -> None:
    if on.driver is None or not at_least(newer, on.driver):
        return
    before = judge(TRAITS[entry.reference], on, COMPATIBILITY)
    after = judge(TRAITS[entry.reference], replace(on, driver=newer), COMPATIBILITY)
    if before.word is Word.RUNS:
        assert after.word is Word.RUNS


@given(
    cubins=st.lists(capabilities, min_size=1, max_size=8),
    cc=capabilities,
    driver=drivers,
)
def test_machine_code_never_crosses_a_generation(
    cubins: list[tuple[int, int]], cc: tuple[int, int], driver: str
) -> None:
    made = ImageTraits(name="x", platforms=(AMD64,), cuda="12.8", kernels={AMD64: Kernels(tuple(cubins))})
    on = host(driver, GpuTraits(capability=cc, segment=Segment.DATACENTER, brands=("tesla",)))
    found = judge(made, on, COMPATIBILITY)
    if not any(major == cc[0] and minor <= cc[1] for major, minor in cubins):
        assert found.word is Word.WILL_NOT_RUN
        assert "no-kernel-image" in [reason.id for reason in found.reasons]
    else:
        assert "no-kernel-image" not in [reason.id for reason in found.reasons]


@settings(max_examples=400, deadline=None)
@given(entry=entries, on=hosts())
def test_it_never_guesses(entry: CatalogImage, on: HostTraits) -> None:
    """What runs does so with every fact known; what is unknown names what is missing."""
    found = judge(TRAITS[entry.reference], on, COMPATIBILITY)
    if found.word in (Word.RUNS, Word.RUNS_WITH):
        assert on.driver is not None
        assert on.architecture is not None
        assert on.gpus
        assert all(each.capability is not None for each in on.gpus)
    if found.word is Word.UNKNOWN:
        assert found.needs["facts"]
    assert found.reasons
    assert all(reason.text and not reason.text.endswith(".") for reason in found.reasons)


@settings(max_examples=300, deadline=None)
@given(entry=entries, on=hosts(), segment=segments, path=paths)
def test_what_is_told_without_a_fact_holds_whatever_the_fact_is(
    entry: CatalogImage, on: HostTraits, segment: Segment | None, path: bool | None
) -> None:
    """A verdict reached without knowing the board or the GPU path is the one reached with it."""
    without = replace(
        on, checks_demands=None, gpus=tuple(replace(each, segment=None, brands=(), name=None) for each in on.gpus)
    )
    found = judge(TRAITS[entry.reference], without, COMPATIBILITY)
    if found.word is Word.UNKNOWN or segment in (None, Segment.JETSON):
        return
    full = replace(
        without,
        checks_demands=path,
        gpus=tuple(replace(each, segment=segment, brands=brands("rtx", segment)) for each in without.gpus),
    )
    assert judge(TRAITS[entry.reference], full, COMPATIBILITY).word is found.word


@settings(max_examples=200, deadline=None)
@given(entry=entries, on=hosts())
def test_of_several_gpus_the_worst_decides(entry: CatalogImage, on: HostTraits) -> None:
    found = judge(TRAITS[entry.reference], on, COMPATIBILITY)
    each = [judge(TRAITS[entry.reference], replace(on, gpus=(one,)), COMPATIBILITY).word for one in on.gpus]
    if each:
        assert [one.word for one in found.gpus] == each
        assert found.word is max(each, key=tuple(Word).index)


# --- single cases


def test_a_mixed_box_says_it_for_each_gpu_and_takes_the_worst() -> None:
    on = host("580.95.05", gpu("NVIDIA GeForce RTX 4090"), gpu("NVIDIA TITAN V"))
    found = verdict(f"{HUB}:2.14.1-cuda13.0-cudnn9-runtime", on)
    assert [(each.gpu, each.word) for each in found.gpus] == [
        ("NVIDIA GeForce RTX 4090", Word.RUNS),
        ("NVIDIA TITAN V", Word.WILL_NOT_RUN),
    ]
    assert (found.word, found.reasons[0].id) == (Word.WILL_NOT_RUN, "no-kernel-image")


def test_cdi_does_not_check_what_the_hook_refuses() -> None:
    devel = f"{HUB}:2.9.0-cuda12.8-cudnn9-devel"
    card = gpu("NVIDIA GeForce RTX 3090")
    assert verdict(devel, host("535.183.01", card)).needs == {"driver": "570.26", "gpu_path": "cdi"}
    by_cdi = verdict(devel, host("535.183.01", card, checked=False))
    assert by_cdi.word is Word.RUNS_WITH
    assert [reason.id for reason in by_cdi.reasons][:1] == ["ok-minor-compat"]
    assert "require-not-checked" in [reason.id for reason in by_cdi.reasons]
    unsure = verdict(devel, host("535.183.01", card, checked=None))
    assert (unsure.word, unsure.needs) == (Word.UNKNOWN, {"facts": ("gpu path",)})


@pytest.mark.parametrize(
    ("name", "driver", "reference", "word"),
    [
        # A workstation board of a listed branch passes, one of another branch does not; nor does a data-centre board.
        ("NVIDIA RTX A6000", "535.183.01", f"{HUB}:2.9.0-cuda12.8-cudnn9-devel", Word.RUNS_WITH),
        ("NVIDIA RTX A6000", "545.23.08", f"{HUB}:2.9.0-cuda12.8-cudnn9-devel", Word.WILL_NOT_RUN),
        ("NVIDIA A100-SXM4-80GB", "545.23.08", f"{HUB}:2.9.0-cuda12.8-cudnn9-devel", Word.WILL_NOT_RUN),
        # The bases of CUDA 12.4 and before list GeForce too.
        ("NVIDIA GeForce RTX 3090", "535.183.01", f"{HUB}:2.6.0-cuda12.4-cudnn9-devel", Word.RUNS_WITH),
        # Two values of the variable are known for CUDA 11.8, and branch 515 is in one of them only.
        ("NVIDIA GeForce RTX 3090", "515.105.01", f"{HUB}:2.7.1-cuda11.8-cudnn9-devel", Word.UNKNOWN),
    ],
)
def test_the_images_demand_is_read_as_the_hook_reads_it(name: str, driver: str, reference: str, word: Word) -> None:
    assert verdict(reference, host(driver, gpu(name))).word is word


@given(entry=entries, minor=st.integers(0, 9), major=st.sampled_from((10, 12)), old=drivers, path=paths)
def test_nothing_runs_on_a_gpu_that_its_driver_does_not_know(
    entry: CatalogImage, minor: int, major: int, old: str, path: bool | None
) -> None:
    on = host(old, GpuTraits(capability=(major, minor), segment=Segment.DATACENTER), checked=path)
    reasons = judge(TRAITS[entry.reference], on, COMPATIBILITY).reasons
    told = [reason for reason in reasons if "does not know GPUs" in reason.text]
    assert bool(told) == (not at_least(old, "570.26"))
    assert all((reason.id, reason.effect) == ("driver-too-old", Effect.PREVENTS) for reason in told)


def test_what_would_run_needs_the_driver_that_knows_the_gpu() -> None:
    found = verdict(f"{HUB}:2.9.1-cuda12.8-cudnn9-runtime", host("560.35.03", gpu("NVIDIA GeForce RTX 5090")))
    assert (found.word, found.reasons[0].id, found.needs["driver"]) == (Word.WILL_NOT_RUN, "driver-too-old", "570.26")


@given(entry=entries, on=hosts())
def test_the_driver_that_is_needed_mends_all_that_a_driver_can(entry: CatalogImage, on: HostTraits) -> None:
    found = judge(TRAITS[entry.reference], on, COMPATIBILITY)
    if on.driver is None or found.word is not Word.WILL_NOT_RUN or "driver" not in found.needs:
        return
    if any(reason.effect is Effect.UNKNOWN for each in found.gpus for reason in each.reasons):
        return  # what is not known yet may ask for a newer one
    after = judge(TRAITS[entry.reference], replace(on, driver=found.needs["driver"]), COMPATIBILITY)
    assert "driver" not in after.needs or after.word is not Word.WILL_NOT_RUN


def test_ptx_needs_a_driver_as_new_as_the_toolkit() -> None:
    future = GpuTraits(capability=(13, 0), segment=Segment.GEFORCE, brands=("geforcertx",))
    reference = f"{HUB}:2.14.1-cuda13.2-cudnn9-runtime"
    new, old = verdict(reference, host("595.45.04", future)), verdict(reference, host("580.95.05", future))
    assert (new.word, new.reasons[0].id) == (Word.RUNS_WITH, "ptx-jit")
    assert (old.word, old.reasons[0].id, old.needs) == (
        Word.WILL_NOT_RUN,
        "no-kernel-image",
        {"driver": "595.45.04"},
    )


def test_boards_with_one_memory_and_divided_gpus_are_told_of() -> None:
    spark = verdict(f"{NGC}:26.09-py3", host("616.10", gpu("NVIDIA GB10"), arch="arm64"))
    assert spark.word is Word.RUNS
    assert "unified-memory" in [reason.id for reason in spark.reasons]
    divided = verdict(f"{NGC}:26.09-py3", host("616.10", replace(gpu("NVIDIA H200"), mig_instances=2)))
    assert divided.word is Word.RUNS
    assert "mig" in [reason.id for reason in divided.reasons]
    empty = verdict(f"{NGC}:26.09-py3", host("616.10", replace(gpu("NVIDIA H200"), mig_instances=0)))
    assert (empty.word, empty.reasons[0].id) == (Word.WILL_NOT_RUN, "mig-no-instance")


def test_a_jetson_is_not_promised_what_nobody_recorded() -> None:
    orin = verdict(f"{NGC}:25.10-py3", host("580.95.05", gpu("Orin"), arch="arm64"))
    assert (orin.word, orin.needs) == (Word.UNKNOWN, {"facts": ("JetPack support",)})


def test_an_older_card_is_told_what_it_lacks() -> None:
    old = verdict(f"{HUB}:2.14.1-cuda12.6-cudnn9-runtime", host("580.95.05", gpu("Tesla V100-SXM2-32GB")))
    assert [(reason.id, reason.effect) for reason in old.reasons] == [
        ("ok-native", Effect.RUNS),
        ("no-native-bf16", Effect.NOTE),
    ]


def test_a_cuda_newer_than_the_table_is_judged_by_what_the_driver_says() -> None:
    made = ImageTraits(name="x", platforms=(AMD64, ARM64), cuda="13.9", kernels={AMD64: Kernels(((9, 0),))})
    card = gpu("NVIDIA H200")
    assert judge(made, replace(host("640.10", card), cuda="13.9"), COMPATIBILITY).word is Word.RUNS
    assert judge(made, replace(host("640.10", card), cuda="13.8"), COMPATIBILITY).word is Word.RUNS_WITH
    assert judge(replace(made, cuda="14.0"), host("640.10", card), COMPATIBILITY).word is Word.UNKNOWN

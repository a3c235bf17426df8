"""The catalog: what is shipped is whole and true to the research, and files of users are checked as a whole."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuconsole.core.errors import BadFile, ExitCode
from gpuconsole.images.catalog import AMD64, ARM64, Catalog, CatalogImage, Evidence, entry, shipped_catalog, traits
from gpuconsole.images.catalog_files import read_catalog_files
from gpuconsole.images.choice import Alternatives
from gpuconsole.images.compatibility import shipped_compatibility
from gpuconsole.images.reference import is_ngc_pytorch, is_pytorch
from gpuconsole.images.verdict import GpuTraits, HostTraits, Word
from gpuconsole.images.versions import at_least
from gpuconsole.services.catalog import catalog_paths, load_catalog, never_published, view_catalog

CATALOG = shipped_catalog()
COMPATIBILITY = shipped_compatibility()
HUB, NGC = "pytorch/pytorch", "nvcr.io/nvidia/pytorch"


def test_every_shipped_image_is_whole() -> None:
    assert len(CATALOG.images) == 171
    assert len({image.reference for image in CATALOG.images}) == 171
    for image in CATALOG.images:
        assert image.cuda
        assert image.platforms
        assert image.variant in ("runtime", "devel")
        assert image.torch or "torch" in image.unsure
        assert COMPATIBILITY.toolkit(image.cuda)
        facts = traits(image, COMPATIBILITY)
        assert facts.kernels or facts.min_capability, image.reference
        assert facts.demands is not None
        assert is_pytorch(image.parsed) or is_ngc_pytorch(image.parsed)
        if is_pytorch(image.parsed):
            assert image.platforms == (AMD64,)
            assert facts.kernels


def test_the_rows_the_first_texts_named_are_told_as_they_are() -> None:
    ngc = CATALOG.find(f"{NGC}:23.10-py3")
    assert ngc is not None
    assert (ngc.torch, ngc.cuda, ngc.platforms) == ("2.1.0a0+32f93b1", "12.2.2.009", (AMD64, ARM64))
    old = CATALOG.find(f"{HUB}:2.0.0-cuda11.7-cudnn8-runtime")
    assert old is not None
    assert (old.torch, old.cuda) == ("2.0.0", "11.7")
    of_2_9 = {
        image.cuda for image in CATALOG.images if (image.torch or "").startswith("2.9.") and is_pytorch(image.parsed)
    }
    assert of_2_9 == {"12.6", "12.8", "13.0"}
    assert CATALOG.find(f"{HUB}:2.9.0-cuda11.8-cudnn9-runtime") is None
    assert "no CUDA 11.8 build" in CATALOG.phantoms[f"{HUB}:2.9.0-cuda11.8-cudnn9-runtime"]
    wrong = CATALOG.find(f"docker.io/{HUB}:1.13.1-cuda11.6-cudnn8-runtime")
    assert wrong is not None
    assert wrong.torch == "1.13.0"


def test_images_nobody_has_seen_are_marked() -> None:
    inferred = [image for image in CATALOG.images if image.evidence is Evidence.INFERRED]
    assert len(inferred) == 18
    assert all(image.digest is None for image in inferred)
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", image.digest) for image in CATALOG.images if image.digest)


@pytest.mark.parametrize(
    ("driver", "first"),
    [
        ("616.00", f"{HUB}:2.14.1-cuda13.0-cudnn9-runtime"),
        ("580.65.06", f"{HUB}:2.14.1-cuda13.0-cudnn9-runtime"),
        ("575.57.08", f"{HUB}:2.11.0-cuda12.8-cudnn9-runtime"),
        ("535.183.01", f"{HUB}:2.14.1-cuda12.6-cudnn9-runtime"),
        ("470.256.02", f"{HUB}:2.7.1-cuda11.8-cudnn9-runtime"),
        ("390.157", f"{HUB}:2.7.1-cuda11.8-cudnn9-runtime"),
    ],
)
def test_each_driver_generation_has_a_short_list_it_can_run(driver: str, first: str) -> None:
    listed = CATALOG.recommended(driver)
    assert listed[0].reference == first
    assert 4 <= len(listed) <= 8
    assert all(image.evidence is not Evidence.INFERRED for image in listed)
    if not at_least(driver, "450.80.02"):
        return
    card = GpuTraits(capability=(8, 0))
    words = {
        view.image.reference: view.verdict.word
        for view in view_catalog(CATALOG, HostTraits(driver, None, "amd64", (card,), checks_demands=False))
        if view.recommended
    }
    assert set(words.values()) <= {Word.RUNS, Word.RUNS_WITH}


def test_every_recommended_image_is_in_the_catalog() -> None:
    for group in CATALOG.recommendations:
        for reference in group.images:
            assert CATALOG.find(reference), reference
    drivers = [group.driver for group in CATALOG.recommendations]
    assert all(at_least(newer, older) for newer, older in itertools.pairwise(drivers))


@pytest.mark.parametrize(
    ("reference", "host", "instead"),
    [
        # too old a driver for CUDA 13: the same torch, with CUDA 12
        (
            f"{HUB}:2.14.1-cuda13.0-cudnn9-runtime",
            HostTraits("550.54.15", None, "amd64", (GpuTraits(capability=(8, 9)),), True),
            f"{HUB}:2.14.1-cuda12.6-cudnn9-runtime",
        ),
        # an older card: the same torch, whose CUDA 12.6 build still serves it
        (
            f"{HUB}:2.9.1-cuda13.0-cudnn9-runtime",
            HostTraits("580.95.05", None, "amd64", (GpuTraits(capability=(6, 1)),), False),
            f"{HUB}:2.9.1-cuda12.6-cudnn9-runtime",
        ),
        # another processor: NVIDIA's image
        (
            f"{HUB}:2.14.1-cuda13.0-cudnn9-runtime",
            HostTraits("616.00", None, "arm64", (GpuTraits(capability=(9, 0)),), True),
            f"{NGC}:26.09-py3",
        ),
    ],
)
def test_what_would_run_instead_is_the_most_alike(reference: str, host: HostTraits, instead: str) -> None:
    views = {view.image.reference: view for view in view_catalog(CATALOG, host)}
    view = views[reference]
    assert view.verdict.word is Word.WILL_NOT_RUN
    assert view.instead is not None
    assert view.instead.reference == instead
    assert view.needs["image"] == instead
    assert views[instead].verdict.word in (Word.RUNS, Word.RUNS_WITH)


def test_where_nothing_runs_nothing_is_offered() -> None:
    host = HostTraits("390.157", None, "amd64", (GpuTraits(capability=(3, 0)),), True)
    views = view_catalog(CATALOG, host)
    assert {view.verdict.word for view in views} == {Word.WILL_NOT_RUN}
    assert Alternatives(CATALOG, {}).nearest(views[0].image) is None
    assert all("image" not in view.needs for view in views)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (
            f"{HUB}:2.9.0-cuda11.8-cudnn9-runtime",
            "no image of 2.9 with CUDA 11.8; there are those with 12.6, 12.8, 13.0.",
        ),
        (f"docker.io/{HUB}:2.9.1-cuda12.1-cudnn9-devel", "no image of 2.9 with CUDA 12.1"),
        (
            f"{HUB}:2.8.0-cuda12.4-cudnn9-devel",
            "no image of 2.8 with CUDA 12.4; there are those with 12.6, 12.8, 12.9.",
        ),
        (f"{HUB}:2.0.1-gpu", "none of PyTorch's tags"),
        # published, or newer than the catalog, or of other makers
        (f"{HUB}:2.9.1-cuda12.8-cudnn9-runtime", None),
        (f"{HUB}:2.9.7-cuda12.8-cudnn9-runtime", None),
        (f"{HUB}:2.19.0-cuda13.9-cudnn9-runtime", None),
        ("lab/torch:2.9.0-cuda11.8-cudnn9-runtime", None),
        ("No Reference", None),
    ],
)
def test_combinations_that_were_never_published_are_told(reference: str, words: str | None) -> None:
    found = never_published(CATALOG, reference)
    assert (found is None) if words is None else (words in (found or ""))


# --- files of users and teams

GOOD = """
[[image]]
reference = "registry.lab.example/torch:7"
torch = "2.9.1"
cuda = "12.8"
platforms = ["linux/amd64"]
require = ""
cuda_compat = false
recommended = true
note = "ours"

[[image]]
reference = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"
note = "the one the course uses"
"""


def write(folder: Path, text: str, name: str = "catalog.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_entries_of_users_stand_before_the_shipped_ones_and_replace_them(tmp_path: Path) -> None:
    catalog = load_catalog([write(tmp_path, GOOD)])
    assert len(catalog.images) == 172
    ours = catalog.images[0]
    assert (ours.reference, ours.evidence, ours.source) == (
        "registry.lab.example/torch:7",
        Evidence.OWN,
        str(tmp_path / "catalog.toml"),
    )
    replaced = catalog.find("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime")
    assert replaced is not None
    assert (replaced.note, replaced.cuda) == ("the one the course uses", "12.8"), "what the tag says needs no field"
    host = HostTraits("580.95.05", None, "amd64", (GpuTraits(capability=(9, 0)),), True)
    view = view_catalog(catalog, host)[0]
    assert (view.image, view.recommended, view.verdict.word) == (ours, True, Word.RUNS)


def test_the_later_file_wins(tmp_path: Path) -> None:
    one = write(tmp_path, '[[image]]\nreference = "a/b:1"\ncuda = "12.6"\n', "one.toml")
    two = write(tmp_path, '[[image]]\nreference = "docker.io/a/b:1"\ncuda = "12.8"\n', "two.toml")
    found = load_catalog([one, two]).find("a/b:1")
    assert found is not None
    assert (found.cuda, found.source) == ("12.8", str(two))


def test_an_entry_that_says_little_is_unknown_not_guessed(tmp_path: Path) -> None:
    catalog = load_catalog([write(tmp_path, '[[image]]\nreference = "a/b:1"\n')])
    host = HostTraits("580.95.05", None, "amd64", (GpuTraits(capability=(9, 0)),), True)
    view = next(view for view in view_catalog(catalog, host) if view.image.reference == "a/b:1")
    assert view.verdict.word is Word.UNKNOWN
    assert set(view.needs["facts"]) == {
        "image platform",
        "capabilities torch was built for",
        "NVIDIA_REQUIRE_CUDA",
        "CUDA version",
    }


BAD = """\
schema = 1
colour = "red"

[[image]]
reference = "Not A Reference"
plattforms = ["linux/amd64"]

[[image]]
reference = "a/b:1"
platforms = ["linux/x86_64"]
driver = "new"
variant = "develop"
sm = ["9.0", "90"]
evidence = "sen"

[[image]]
cuda = 12.8
"""


def test_all_mistakes_are_told_at_once_with_file_line_field_and_nearest_word(tmp_path: Path) -> None:
    path = write(tmp_path, BAD)
    other = write(tmp_path, "[[image]\n", "team.toml")
    with pytest.raises(BadFile) as raised:
        read_catalog_files([path, other])
    assert raised.value.exit_code is ExitCode.BAD_FILE
    told = raised.value.message
    for line, *words in (
        (2, "field 'colour'", "no such field"),
        (5, "image 1, field 'reference'", "lower case"),
        (6, "image 1, field 'plattforms'", "did you mean 'platforms'?"),
        (10, "image 2, field 'platforms'", "did you mean 'linux/amd64'?"),
        (11, "image 2, field 'driver'", "looks like 580.65.06"),
        (12, "image 2, field 'variant'", "did you mean 'devel'?"),
        (13, "image 2, field 'sm'", "looks like 8.9"),
        (14, "image 2, field 'evidence'", "did you mean 'seen'?"),
        (16, "image 3, field 'reference'", "missing"),
        (17, "image 3, field 'cuda'", "string"),
    ):
        (found,) = [each for each in told.splitlines() if f"{path}:{line}:" in each]
        for word in words:
            assert word in found
    (broken,) = [each for each in told.splitlines() if str(other) in each]
    assert f"{other}:1: is no TOML" in broken
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[image]]\nreference = "a/b:1"\n\n[[image]]\nreference = "docker.io/a/b:1"\n', ":5: image 2: a/b:1"),
        ("image = 3\n", "field 'image'"),
        ("[image]\nreference = 'a/b:1'\n", "field 'image'"),
        ("schema = 2\n", "field 'schema'"),
        ('[[image]]\nreference = "a/b"\ndigest = "sha256:12"\n', "64 hexadecimal digits"),
        ('[[image]]\nreference = "a/b:1"\nforward = ["new"]\n', "driver version"),
        ('[[image]]\nreference = "a/b:1"\ncuda = "twelve"\n', "no version"),
        ('[[image]]\nreference = "a/b:1"\nrecommended = "yes"\n', "'recommended'"),
        ("\udcff", "cannot be read"),
        ("x = " + "[" * 5000, "TOML"),
    ],
)
def test_each_kind_of_mistake_has_its_words(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "catalog.toml"
    path.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    with pytest.raises(BadFile, match="mistake") as raised:
        read_catalog_files([path])
    assert words in raised.value.message
    assert str(path) in raised.value.message


def test_texts_of_users_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    evil = "\\u001b[31mred\\u202e"
    texts = "".join(f'{field} = "{evil}"\n' for field in ("note", "os", "require"))
    row = f'reference = "a/b:1"\n{texts}unsure = ["{evil}"]\ntorch = "2.9{evil}"\n'
    (found,) = read_catalog_files([write(tmp_path, f"[[image]]\n{row}")])
    assert (found.note, found.os, found.unsure, found.require, found.torch) == ("red", "red", ("red",), "red", "2.9red")


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        load_catalog([tmp_path / "gone.toml"])


def test_a_file_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    link = tmp_path / "catalog.toml"
    link.symlink_to("/dev/zero")
    with pytest.raises(BadFile, match="larger than any catalog"):
        read_catalog_files([link])


def test_where_files_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert catalog_paths({}) == ()
    (tmp_path / "gpuconsole").mkdir()
    own = write(tmp_path / "gpuconsole", GOOD)
    named = catalog_paths({"GPUCONSOLE_CATALOG": "/srv/team.toml::~/mine.toml"})
    assert named == (own, Path("/srv/team.toml"), tmp_path / "home/mine.toml")


def test_the_shipped_catalog_needs_no_pydantic() -> None:
    script = "import sys; from gpuconsole.services.catalog import *; view_catalog(load_catalog([]), HostTraits())"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\nprint('pydantic' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"


def test_an_entry_is_found_however_it_is_written() -> None:
    catalog = Catalog((entry({"reference": "docker.io/library/thing:1"}),))
    assert isinstance(catalog.find("thing:1"), CatalogImage)
    assert catalog.find("thing:2") is None
    assert catalog.find("No Reference") is None

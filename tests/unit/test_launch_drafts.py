"""What is remembered of a launch, and what is never written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuconsole.launch.fields import Surroundings
from gpuconsole.services.drafts import Drafts, harmless
from gpuconsole.services.folders import complete_path


def test_each_folder_has_its_own(tmp_path: Path) -> None:
    drafts = Drafts(path=tmp_path / "x.db")
    assert drafts.last("/a") == {}
    drafts.remember("/a", {"image": "one", "gpus": "2"})
    drafts.remember("/b", {"image": "two"})
    drafts.remember("/a", {"image": "three"})
    drafts.close()
    again = Drafts(path=tmp_path / "x.db")
    assert again.last("/a") == {"image": "three"}
    assert again.last("/b") == {"image": "two"}


@pytest.mark.parametrize(
    ("key", "text", "kept"),
    [
        ("environment", "A='", ""),
        ("command", "python train.py --epochs 3", "python train.py --epochs 3"),
        ("command", "python train.py --token s3cr3t", ""),
        ("command", "bash -c 'API_KEY=s3cr3t python x'", ""),
        ("command", "train '--url=********'", ""),
        ("labels", "password=s3cr3t", ""),
        ("labels", "'x=********'", ""),
        ("secrets", "jupyter_token=~/.token wandb_key=/keys/wandb", "jupyter_token=~/.token wandb_key=/keys/wandb"),
        ("volumes", "/a:/b\n/c:/d:ro", "/a:/b\n/c:/d:ro"),
    ],
)
def test_no_secret_is_written(key: str, text: str, kept: str) -> None:
    assert harmless({key: text}) == {key: kept}


@pytest.mark.parametrize(
    ("text", "kept", "unkept"),
    [
        (
            "HF_TOKEN=hf_abc EPOCHS=3 WANDB_API_KEY='a b' PLAIN API_TOKEN",
            "EPOCHS=3 PLAIN API_TOKEN",
            "HF_TOKEN WANDB_API_KEY",
        ),
        ("URL=https://me:secret@host/x", "", "URL"),
        ("'HF_TOKEN=********' A=1 HF_TOKEN=x", "A=1", "HF_TOKEN"),
    ],
)
def test_a_variable_with_a_secret_is_kept_by_its_name_beside_the_field(text: str, kept: str, unkept: str) -> None:
    once = harmless({"environment": text, "gpus": "1"})
    assert once == {"environment": kept, "unkept": unkept, "gpus": "1"}
    assert harmless(once) == once


def test_a_name_is_not_kept_since_it_is_taken() -> None:
    assert harmless({"name": "train", "image": "a"}) == {"image": "a"}


def test_what_lifts_a_refusal_is_said_anew_each_time(tmp_path: Path) -> None:
    drafts = Drafts(path=tmp_path / "x.db")
    drafts.remember("/a", {"volumes": "/etc:/e", "privileged": "yes", "force": "dangerous-mount privileged"})
    assert drafts.last("/a") == {"volumes": "/etc:/e", "privileged": "yes"}
    with drafts._opened().writing() as connection:  # as it was kept before
        connection.execute("""UPDATE launch_drafts SET typed = '{"force": "privileged"}'""")
    assert drafts.last("/a") == {}


def test_without_a_place_to_write_it_is_done_without(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    drafts = Drafts(path=blocker / "x.db")
    drafts.remember("/a", {"image": "one"})
    assert drafts.last("/a") == {}
    assert drafts.problem is not None


def test_what_another_version_wrote_does_no_harm(tmp_path: Path) -> None:
    drafts = Drafts(path=tmp_path / "x.db")
    drafts.remember("/a", {"image": "one"})
    with drafts._opened().writing() as connection:
        connection.execute("UPDATE launch_drafts SET typed = '[1]'")
    assert drafts.last("/a") == {}


def around(folder: Path) -> Surroundings:
    return Surroundings(cwd=str(folder), home=str(folder), environment={}, uid=0, gid=0)


def test_paths_are_completed_folders_first(tmp_path: Path) -> None:
    for name in ("data", "Documents", ".cache", "da:ta", "d\x1b[2J", "deep"):
        (tmp_path / name).mkdir()
    (tmp_path / "dump.txt").write_text("")
    here = around(tmp_path)
    assert complete_path("d", here) == ("./data/", "./deep/", "./dump.txt")
    assert complete_path("./da", here) == ("./data/",)
    assert complete_path("~/D", here) == ("~/Documents/",)
    assert complete_path(f"{tmp_path}/.", here) == (f"{tmp_path}/.cache/",)
    assert complete_path("nowhere/x", here) == ()
    assert complete_path("./dump.txt/", here) == ()
    assert complete_path("~", here) == ("~/",)
    assert len(complete_path("", here, at_most=2)) == 2

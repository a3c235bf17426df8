"""The profiles in the README are ones that gpuconsole takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from gpuconsole.launch.profilemodel import ProfileFile

README = Path(__file__).parents[2] / "README.md"


def test_the_readmes_profiles_are_right() -> None:
    (text,) = re.findall(r"```toml\n(\[profiles\..*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    file = ProfileFile.model_validate(tomllib.loads(text))
    assert set(file.profiles) == {"train", "notebook"}
    assert file.profiles["notebook"].extends == "train"

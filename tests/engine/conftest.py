"""What several files of the engine tests share; failures inside the contract are explained as those of tests are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuconsole.probes import catalog
from tests.rig.engines import Engine
from tests.rig.fewchecks import few

if TYPE_CHECKING:
    from tests.engine.checking import Checked

pytest.register_assert_rewrite(
    "tests.engine.checking",
    *(f"tests.engine.contract{part}" for part in ("", "_builds", "_descriptions", "_life", "_streams")),
)


@pytest.fixture
def few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a handful of checks, for tests of what is around them."""
    monkeypatch.setattr(catalog, "CHECKS", few())


@pytest.fixture
def checked(engine: Engine, tmp_path: Path) -> Iterator[Checked]:
    """Containers of each engine in turn, to be checked."""
    from tests.engine.checking import opened  # not before it is registered above

    with opened(engine, tmp_path) as containers:
        yield containers


@pytest.fixture
def modern(engine_modern: Engine, tmp_path: Path) -> Iterator[Checked]:
    """Containers of a modern engine, to be checked."""
    from tests.engine.checking import opened

    with opened(engine_modern, tmp_path) as containers:
        yield containers

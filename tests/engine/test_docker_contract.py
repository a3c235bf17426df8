"""The Docker adapter held to the contract, on every engine of the rig."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from tests.engine import contract_builds, contract_descriptions, contract_life, contract_streams
from tests.engine.contract import Ground, clauses_of
from tests.rig.client import EngineClient

pytestmark = pytest.mark.engine


@pytest.fixture
def ground(engine: EngineClient, small_image: str, tmp_path: Path) -> Iterator[Ground]:
    def connect() -> DockerEngine:
        return DockerEngine.connect(Endpoint(engine.host, "--host"))

    tmp_path.chmod(0o755)
    made = Ground(connect(), small_image, f"c{secrets.token_hex(3)}", str(tmp_path))
    yield made
    made.engine.close()
    cleaner = Ground(connect(), small_image, made.prefix, str(tmp_path), made.made)
    cleaner.clear()
    cleaner.engine.close()


CONTRACT = clauses_of(contract_descriptions, contract_life, contract_streams, contract_builds)


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_contract(clause: Callable[[Ground], None], ground: Ground) -> None:
    clause(ground)

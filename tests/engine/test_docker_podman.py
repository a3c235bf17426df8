"""Podman's Docker-compatible socket held to the contract, and where it differs from Docker."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from tests.engine import contract_builds, contract_descriptions, contract_life, contract_streams
from tests.engine.contract import Clause, Ground, clauses_of
from tests.rig.podman import Podman

pytestmark = pytest.mark.engine
DIFFERENT = {
    "a_container_is_described_as_it_was_asked_for": "no init program is beside it in the rig",
    "what_was_asked_for_holds_inside": "no init program is beside it in the rig",
    "a_missing_folder_is_named_and_nothing_is_left": "it makes the folder",
    "a_port_is_published_where_it_was_asked_for": "its network in the rig is not this machine's",
    "a_missing_program_is_named": "it keeps no exit code of a start that failed",
    "one_that_outgrows_its_memory_is_marked": "it does not mark it under this machine's control groups",
    "input_that_nobody_reads_is_no_error": "it writes an error of its own into the output",
}
"""Clauses that Podman 4.3 does not keep, and why."""


@pytest.fixture
def ground(podman: Podman, tmp_path: Path) -> Iterator[Ground]:
    def connect() -> DockerEngine:
        return DockerEngine.connect(Endpoint(podman.host, "podman"))

    tmp_path.chmod(0o755)
    made = Ground(connect(), podman.load("small"), f"c{secrets.token_hex(3)}", str(tmp_path))
    yield made
    made.engine.close()
    cleaner = Ground(connect(), made.image, made.prefix, str(tmp_path), made.made)
    cleaner.clear()
    cleaner.engine.close()


@pytest.mark.parametrize(
    "clause",
    [
        clause
        for clause in clauses_of(contract_descriptions, contract_life, contract_streams, contract_builds)
        if clause.__name__ not in DIFFERENT
    ],
    ids=lambda clause: clause.__name__,
)
def test_contract(clause: Clause, ground: Ground) -> None:
    clause(ground)


def test_it_says_that_it_is_podman(ground: Ground) -> None:
    assert ground.engine.info().name == "podman"

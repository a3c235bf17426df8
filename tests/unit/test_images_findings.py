"""What registries said, kept in a file: added to, damaged, and written by somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.images.catalog import Catalog, Evidence, entry
from gpuconsole.images.findings import Finding, Trouble, apply, load_findings, save_findings

DIGEST = f"sha256:{'a' * 64}"


def test_findings_are_kept_added_to_and_survive_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "folder/findings.json"
    there = Finding("a/b:1", 1.0, digest=DIGEST, sizes={"linux/amd64": 5})
    gone = Finding("a/b:2", 1.0, trouble=Trouble.GONE, text="it has no such image")
    save_findings([there, gone, Finding("a/b:3", 1.0, trouble=Trouble.UNREACHED)], path)
    save_findings([Finding("a/b:1", 2.0, trouble=Trouble.UNREACHED, text="x")], path)
    assert load_findings(path) == {"a/b:1": there, "a/b:2": gone}
    catalog = apply(Catalog(tuple(entry({"reference": f"a/b:{number}"}) for number in (1, 2, 3))), load_findings(path))
    first, second, third = catalog.images
    assert (first.digest, first.platforms, first.evidence) == (DIGEST, ("linux/amd64",), Evidence.REGISTRY)
    assert (second.gone, third.gone, third.evidence) == (True, False, Evidence.OWN)
    schema = '"schema": "gpuconsole.catalog-findings/1"'
    for rubbish in ("", "[]", "{}", '{"schema": "other/1", "images": []}', "\x00", f'{{{schema}, "images": [3]}}'):
        path.write_text(rubbish)
        assert load_findings(path) == {}
    save_findings([there], path)
    assert load_findings(path) == {"a/b:1": there}


@pytest.mark.parametrize(
    "wrong",
    [
        *({"digest": digest} for digest in ("", "sha256:", "\x1bc", f"{DIGEST}\n", f"{DIGEST}0", DIGEST.upper(), 5)),
        *({"sizes": {"linux/amd64": size}} for size in (-1, 10**30, "5", None)),
        {"sizes": {"\x1b[2J": 1}},
        {"sizes": []},
        {"trouble": "new"},
        *({"asked_at": when} for when in ("x", 1e300, float("nan"), float("inf"), None)),
        {"reference": "\x1bc"},
    ],
)
def test_kept_findings_that_are_none_are_left_out_alone(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = tmp_path / "findings.json"
    save_findings([Finding("a/b:1", 1.0, digest=DIGEST), Finding("a/b:2", 2.0, digest=DIGEST)], path)
    document = json.loads(path.read_text())
    document["images"][0] |= wrong
    path.write_text(json.dumps(document))
    assert list(load_findings(path)) == ["a/b:2"]

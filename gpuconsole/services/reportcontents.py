"""What a person may mind in the recording that a report carries: told before the report is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpuconsole.services.reportrecording import Carried

_Line = Mapping[str, Any]
_Named = Iterator[tuple[str, Any]]
_ORDER = ("GPUs", "Containers", "Images", "Users", "Commands")


def contents(carried: Carried) -> dict[str, list[str]]:
    """Kind of thing → the names that such things have in the report, in the order they are met."""
    found: dict[str, dict[str, None]] = {what: {} for what in _ORDER}
    lines = ({**carried.header, "type": "header"}, *carried.lines)
    for line in lines:
        for what, name in _NAMED[line["type"]](line) if line["type"] in _NAMED else ():
            if isinstance(name, str) and name and not name.startswith("sha256:"):
                found[what].setdefault(name)
    return {what: list(names) for what, names in found.items() if names}


def _of_header(line: _Line) -> _Named:
    yield from (("GPUs", gpu.get("name")) for gpu in line.get("gpus") or ())


def _of_container(line: _Line) -> _Named:
    container = line["container"]
    yield "Containers", container.get("name")
    yield "Images", container.get("image")
    yield "Commands", " ".join(container.get("command") or ())


def _of_images(line: _Line) -> _Named:
    for view in line["views"]:
        yield from (("Images", tag) for tag in view["image"].get("tags") or ())


def _of_host(line: _Line) -> _Named:
    for view in line["view"].get("gpus") or ():
        for holder in view.get("holders") or ():
            yield "Users", holder.get("user")
            yield "Commands", holder.get("command")


def _of_sample(line: _Line) -> _Named:
    yield from (("Containers", each.get("name")) for each in line.get("containers") or ())


_NAMED: dict[str, Callable[[_Line], _Named]] = {
    "header": _of_header, "container": _of_container, "images": _of_images, "host": _of_host, "sample": _of_sample,
}  # fmt: skip

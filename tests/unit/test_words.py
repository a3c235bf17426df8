"""Words of ours behave as enumerations do: made from the same lines, whatever is asked of them has the same answer."""

from __future__ import annotations

import copy
import enum
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core import words
from gpuconsole.core.document import jsonable
from gpuconsole.core.errors import ExitCode
from gpuconsole.core.revive import revive
from gpuconsole.gpu.model import GpuStatus, ProcessKind
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.account import MemoryOf, PartKind

OURS = (ExitCode, GpuStatus, ProcessKind, MemoryState, MemoryOf, PartKind)


def theirs_of(kind: Any) -> Any:
    """The same members by :mod:`enum`."""
    base: Any = enum.IntEnum if issubclass(kind, int) else enum.StrEnum
    made = base(kind.__name__, [(each.name, each.value) for each in kind], module=__name__)
    made.__qualname__ = f"Their{kind.__name__}"
    globals()[made.__qualname__] = made  # where pickle looks
    return made


PAIRS = [(kind, theirs_of(kind)) for kind in OURS]
ASKED: dict[str, Callable[[Any, Any], Any]] = {
    "repr": lambda kind, one: repr(one),
    "str": lambda kind, one: (str(one), f"{one}", f"{one:>9}", "%s" % one),  # noqa: UP031
    "name and value": lambda kind, one: (one.name, one.value, type(one.value)),
    "equal": lambda kind, one: (one == one.value, one == "ok", one != one.value, one in (one.value,)),
    "ordered": lambda kind, one: ([one < each for each in kind], [each.name for each in sorted(kind)], max(kind).name),
    "truth": lambda kind, one: bool(one),
    "a key": lambda kind, one: ({one: 1}[one.value], {one.value: 1}[one]),
    "kind": lambda kind, one: (isinstance(one, kind), isinstance(one, str), isinstance(one, int), type(one) is kind),
    "by value": lambda kind, one: (kind(one.value) is one, kind(one) is one),
    "by name": lambda kind, one: (kind[one.name] is one, getattr(kind, one.name) is one),
    "listed": lambda kind, one: ([each.name for each in kind], len(kind), one in kind, list(kind.__members__)),
    "copied": lambda kind, one: (copy.copy(one) is one, copy.deepcopy({"a": [one]})["a"][0] is one),
    "pickled": lambda kind, one: pickle.loads(pickle.dumps((one, one)))[0] is one,
    "as JSON": lambda kind, one: (json.dumps([one, {"a": one}]), jsonable(one), type(jsonable([one])[0])),
    "revived": lambda kind, one: revive(kind, one.value) is one,
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_each_member_answers_as_that_of_an_enumeration(kind: Any, asked: str) -> None:
    theirs = dict(PAIRS)[kind]
    for one in kind:
        assert ASKED[asked](kind, one) == ASKED[asked](theirs, theirs[one.name]), one.name


@given(st.sampled_from(PAIRS), st.none() | st.integers(-2, 200) | st.text(max_size=4) | st.just([]) | st.booleans())
def test_what_is_no_value_is_refused_in_the_same_words(pair: tuple[Any, Any], value: Any) -> None:
    found = []
    for kind in pair:
        try:
            found.append(kind(value).name)
        except ValueError as error:
            found.append(str(error).replace("Their", ""))
    assert found[0] == found[1]
    with pytest.raises(KeyError):
        pair[0]["nothing"]
    with pytest.raises(ValueError, match="known"):
        revive(pair[0], "nothing")


def test_members_have_what_their_class_gives_them_and_cannot_be_changed() -> None:
    assert MemoryState.CRITICAL.severity > MemoryState.FREE.severity
    assert MemoryState.FREE.__doc__
    with pytest.raises(AttributeError):
        MemoryState.FREE.value = "x"  # type: ignore[misc]
    match MemoryState("risk"):
        case MemoryState.RISK:
            pass
        case _:
            pytest.fail("no match")


def test_the_same_value_twice_is_one_member() -> None:
    kind: Any = type(words.StrEnum)
    made = kind("Made", (words.StrEnum,), {"A": "a", "B": "a", "__module__": __name__})
    assert made.A is made.B
    assert [each.name for each in made] == ["A"]
    assert list(made.__members__) == ["A", "B"]


def test_they_import_no_enum() -> None:
    code = "import gpuconsole.core.words as w, gpuconsole.gpu.state as s, sys; repr(s.MemoryState.FREE);"
    code += "print([name for name in ('enum', 're', 'functools') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

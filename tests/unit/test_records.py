"""Records behave as dataclasses do: made from the same lines, they take, give, refuse, compare and travel the same."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core import records
from gpuconsole.core.document import jsonable
from gpuconsole.core.revive import revive
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot, PcieLink
from gpuconsole.host.account import Account, MemoryOf, Part, PartKind
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.processes import ProcessFacts


class Pair:
    """The same classes twice: by :mod:`dataclasses`, and as records."""

    def __init__(self, dataclass: Any, field: Any, prefix: str) -> None:
        @dataclass(frozen=True, slots=True)
        class Base:
            """A base."""

            kind: ClassVar[str] = "base"
            a: Any
            b: Any = 2
            c: Any = field(default_factory=dict)
            d: Any = field(default=None, metadata={"derived": True})

            @property
            def both(self) -> Any:
                return (self.a, self.b)

        @dataclass(frozen=True, slots=True, kw_only=True)
        class Derived(Base):
            b: Any = 5
            e: Any  # type: ignore[misc]
            f: Any = ()

        @dataclass(frozen=True, slots=True)
        class Empty:
            """Nothing."""

        self.classes: tuple[Any, ...] = (Base, Derived, Empty)
        for cls in self.classes:
            cls.__qualname__ = f"{prefix}{cls.__name__}"
            globals()[cls.__qualname__] = cls  # where pickle looks


THEIRS = Pair(dataclasses.dataclass, dataclasses.field, "Theirs").classes
OURS = Pair(records._dataclass, records._field, "Ours").classes
values: st.SearchStrategy[Any] = (
    st.none() | st.integers(0, 2) | st.text(max_size=2) | st.tuples(st.integers(0, 1)) | st.just([])
)
names = st.sampled_from(["a", "b", "c", "d", "e", "f", "g"])
Call = tuple[int, list[Any], dict[str, Any]]
"""Which of the classes, and what it is given."""


def fitting(which: int, needed: str, others: str) -> st.SearchStrategy[Call]:
    """Calls that a class takes: of two drawn at random hardly one in ten fits, and of a derived class none."""
    named = st.fixed_dictionaries(dict.fromkeys(needed, values), optional=dict.fromkeys(others, values))

    def call(given: dict[str, Any], count: int) -> Call:
        by_place = [given.pop(name) for name in needed[:count]]
        return which, by_place, given

    return st.builds(call, named, st.integers(0, 1))


whole: st.SearchStrategy[Call] = st.tuples(st.just(0), st.lists(values, min_size=1, max_size=4), st.just({}))
fits = fitting(0, "a", "bcd") | fitting(1, "ae", "bcdf") | fitting(2, "", "") | whole
calls = fits | st.tuples(st.integers(0, 2), st.lists(values, max_size=6), st.dictionaries(names, values, max_size=7))


def outcome(act: Callable[[], Any]) -> Any:
    """What comes of it: a value as text, or the kind of error."""
    try:
        return repr(act()).replace("Ours", "").replace("Theirs", "")
    except Exception as error:
        return type(error)


def refused(change: Callable[..., None], *arguments: Any) -> bool:
    """Whether a change is refused; the error for what is no field differs between versions of Python."""
    try:
        change(*arguments)
    except (AttributeError, TypeError):
        return True
    return False


def everything(cls: Any, other: Any, changes: dict[str, Any]) -> Callable[[Any], list[Any]]:
    def of(one: Any) -> list[Any]:
        first = dataclasses.fields(one)[0].name if dataclasses.fields(one) else "a"
        acts: list[Callable[[], Any]] = [
            lambda: one, lambda: one == other(), lambda: one == cls, lambda: one != other(),
            lambda: hash(one) == hash(other()), lambda: {one: 1}, lambda: dataclasses.replace(one, **changes),
            lambda: records.replace(one, **changes), lambda: dataclasses.asdict(one), lambda: dataclasses.astuple(one),
            lambda: [(each.name, each.type, each.metadata, each.kw_only) for each in dataclasses.fields(one)],
            lambda: [(each.name, dict(each.metadata)) for each in records.fields(one)],
            lambda: (records.is_dataclass(one), records.is_dataclass(cls), dataclasses.is_dataclass(one)),
            lambda: pickle.loads(pickle.dumps(one)), lambda: pickle.loads(pickle.dumps(one)) == one,
            lambda: copy.copy(one), lambda: copy.deepcopy(one) == one, lambda: refused(setattr, one, first, 1),
            lambda: refused(delattr, one, first), lambda: one.__dict__, lambda: one.both,
            lambda: cls.__match_args__, lambda: cls.__slots__, lambda: jsonable(one),
            lambda: cls.kind, lambda: one.kind,
        ]  # fmt: skip
        return [outcome(act) for act in acts]

    return of


@given(calls, calls, st.dictionaries(names, values, max_size=2))
def test_whatever_is_asked_of_them_records_answer_as_dataclasses_do(
    call: Call, second: Call, changes: dict[str, Any]
) -> None:
    found = []
    for classes in (THEIRS, OURS):
        which, positional, named = call
        cls = classes[which]

        def other(classes: Any = classes) -> Any:
            return classes[second[0]](*second[1], **second[2])

        try:
            one = cls(*positional, **named)
        except TypeError:
            found.append([TypeError])
            continue
        found.append(everything(cls, other, changes)(one))
    theirs, ours = found
    assert ours == theirs


def test_equal_ones_hash_equally_and_match() -> None:
    base = OURS[0]
    assert base(1, c=()) == base(a=1, b=2, c=())
    assert hash(base(1, c=())) == hash(base(a=1, b=2, c=()))
    assert base(1, c=()) != OURS[1](a=1, c=(), e=0)
    match GpuProcess(7, None):
        case GpuProcess(pid, None):
            assert pid == 7
        case _:
            pytest.fail("no match")


def test_defaults_that_are_made_are_made_for_each() -> None:
    assert OURS[0](1).c is not OURS[0](1).c
    assert OURS[0](1).__replace__(b=3) == OURS[0](1, b=3)  # what copy.replace of later Pythons calls
    with pytest.raises(ValueError, match="default_factory"):

        @records._dataclass(frozen=True, slots=True)
        class _Shared:
            a: list[int] = []  # noqa: RUF012


def test_what_is_not_supported_is_refused_where_a_class_is_made() -> None:
    class Checked:
        a: int

        def __post_init__(self) -> None:
            """Would never be called."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Theirs:
        a: int

    class Derived(Theirs):
        b: int

    for cls in (Checked, Derived):
        with pytest.raises(TypeError, match="record"):
            records._dataclass(frozen=True, slots=True)(cls)
    with pytest.raises(TypeError, match="frozen"):
        records._dataclass(frozen=False, slots=True)
    with pytest.raises(TypeError):
        records._field(init=False)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["__dataclass_fields__", "__dataclass_params__"])
def test_two_threads_may_ask_at_once_what_dataclasses_know_of_a_record(name: str) -> None:
    """Both found what makes it, and one was quicker."""
    cls = Pair(records._dataclass, records._field, "Asked").classes[0]
    found = vars(cls)[name]
    first = getattr(cls, name)
    assert found.__get__(None, cls) is first
    assert [each.name for each in dataclasses.fields(cls)] == ["a", "b", "c", "d"]


def test_nothing_can_be_set_that_is_no_field() -> None:
    with pytest.raises(AttributeError):
        OURS[0](1).unknown = 1


def test_dataclasses_may_be_made_of_them() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class More(ProcessFacts):
        extra: int = 3

    one = More(1, user="me")
    assert (one.extra, one.user) == (3, "me")
    assert records.replace(one, extra=4).extra == dataclasses.replace(one, extra=4).extra == 4
    assert [each.name for each in records.fields(one)][-1] == "extra"


@given(st.integers(0, 9), st.none() | st.integers(0, 2**40), st.text(max_size=5))
def test_what_is_written_and_read_again_is_the_same(pid: int, memory: int | None, name: str) -> None:
    holder = Holder(pid=pid, gpu_index=0, gpu_uuid="u", memory_bytes=memory, unknown={"user": "gone"})
    gpu = Gpu(0, "u", name.strip() or None, processes=(GpuProcess(pid, memory),), pcie=PcieLink(4, 16))
    account = Account(1, MemoryOf.GPU, (Part(PartKind.FREE, 1),))
    view = HostView(GpuSnapshot(1.0, (gpu,)), (GpuView(gpu, (holder,), account=account),))
    assert pickle.loads(pickle.dumps(view)) == view == copy.deepcopy(view)
    again = revive(HostView, jsonable(view))
    assert again.gpus[0].holders == view.gpus[0].holders
    assert again.gpus[0].account == account
    assert dataclasses.asdict(again)["snapshot"]["taken_at"] == 1.0


def test_making_them_imports_no_dataclasses() -> None:
    code = (
        "import sys; import gpuconsole.host.model, gpuconsole.host.accounting;"
        "from gpuconsole.gpu.model import Gpu; from gpuconsole.core.records import replace;"
        "one = replace(Gpu(0, None, None), index=1); repr(one), one == one;"
        "print([name for name in ('dataclasses', 'inspect') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

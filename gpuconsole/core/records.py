"""Frozen, slotted dataclasses for what ``status`` is made of, without importing :mod:`dataclasses`.

That module imports :mod:`inspect` and writes and compiles the methods of each class anew, at every start: 20 ms, more
than a bare Python takes. :func:`dataclass` here gives classes that behave the same, whose methods are ordinary
functions. To the module :mod:`dataclasses` they are dataclasses too: what it needs to know of them is made when it
asks. Type checkers read the names below as the ones of :mod:`dataclasses`.

Supported is what is used: ``frozen=True, slots=True``, ``kw_only``, inheritance, defaults, default factories, metadata.
The rest is refused where a class is made, not passed over.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from dataclasses import dataclass, field, fields, is_dataclass, replace
    from typing import Any

__all__ = ["dataclass", "field", "fields", "is_dataclass", "replace"]

_MISSING = object()


class _Field:
    """One field of a record."""

    __slots__ = ("default", "default_factory", "kw_only", "metadata", "name", "type")

    def __init__(
        self,
        default: Any = _MISSING,
        default_factory: Callable[[], Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = self.type = ""
        self.default = default
        self.default_factory = default_factory
        self.metadata = metadata or {}
        self.kw_only = False


def _dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Callable[[type], type]:
    """As the decorator of :mod:`dataclasses`, for classes that are frozen and have slots."""
    if not (frozen and slots):
        raise TypeError("records are frozen and have slots")
    return lambda cls: _record(cls, kw_only=kw_only)


def _record(cls: type, *, kw_only: bool) -> type:
    known: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        known |= vars(base).get("__record_fields__", {})
    namespace, own = dict(vars(cls)), {}
    if hasattr(cls, "__post_init__") or any("__dataclass_fields__" in vars(base) for base in _plain_bases(cls)):
        raise TypeError(f"{cls.__name__}: a record has no __post_init__, and no base that dataclasses made")
    for name, hint in cls.__annotations__.items():
        if hint.startswith("ClassVar"):
            continue
        given = namespace.pop(name, _MISSING)
        own[name] = one = given if isinstance(given, _Field) else _Field(given)
        if type(one.default).__hash__ is None:
            raise ValueError(f"the default of {name} can be changed; give a default_factory")
        one.name, one.type, one.kw_only = name, hint, kw_only
    namespace["__slots__"] = tuple(name for name in own if name not in known)
    known |= own
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    for name, method in _METHODS.items():
        namespace.setdefault(name, method)
    positional = tuple(name for name, one in known.items() if not one.kw_only)
    namespace |= {"__record_fields__": known, "__match_args__": positional}
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        namespace[name] = _WhenAsked(name)
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    made.__init__ = _initializer(made, known, positional)  # type: ignore[misc]
    return made


def _plain_bases(cls: type) -> list[type]:
    """Those that are no records."""
    return [base for base in cls.__mro__[1:] if "__record_fields__" not in vars(base)]


def _initializer(cls: type, known: Mapping[str, _Field], positional: tuple[str, ...]) -> Callable[..., None]:
    plan = [(name, _writer(cls, name), one.default, one.default_factory) for name, one in known.items()]

    def __init__(self: Any, *values: Any, **given: Any) -> None:
        if values:
            if len(values) > len(positional):
                raise TypeError(f"{cls.__name__}() takes {len(positional)} positional arguments, got {len(values)}")
            ordered = dict(zip(positional, values))  # noqa: B905 - there may be fewer values
            if not ordered.keys().isdisjoint(given):
                raise TypeError(f"{cls.__name__}() got a value twice: {', '.join(ordered.keys() & given.keys())}")
            given |= ordered
        for name, put, default, factory in plan:
            value = given.pop(name, _MISSING)
            if value is _MISSING:
                value = default if factory is None else factory()
                if value is _MISSING:
                    raise TypeError(f"{cls.__name__}() misses the argument {name!r}")
            put(self, value)
        if given:
            raise TypeError(f"{cls.__name__}() does not know {', '.join(given)}")

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return __init__


def _writer(cls: type, name: str) -> Callable[[Any, Any], None]:
    """What writes a slot, past the record's being frozen."""
    write: Callable[[Any, Any], None] = getattr(cls, name).__set__
    return write


def _values(one: Any) -> tuple[Any, ...]:
    return tuple([getattr(one, name) for name in one.__record_fields__])


def _equal(self: Any, other: Any) -> Any:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    parts = (f"{name}={getattr(self, name)!r}" for name in self.__record_fields__)
    return f"{self.__class__.__qualname__}({', '.join(parts)})"


def _refuse_change(self: Any, name: str, value: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_removal(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return list(_values(self))


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__record_fields__, state, strict=True):
        _writer(self.__class__, name)(self, value)


def _replace(one: Any, /, **changes: Any) -> Any:
    """Another with changes; also of dataclasses that are not of this module."""
    names = _own_fields(type(one))
    if names is None:
        import dataclasses

        return dataclasses.replace(one, **changes)
    return one.__class__(**({name: getattr(one, name) for name in names} | changes))


_METHODS: dict[str, Any] = {
    "__eq__": _equal, "__hash__": _hash, "__repr__": _repr, "__setattr__": _refuse_change,
    "__delattr__": _refuse_removal, "__getstate__": _state, "__setstate__": _restore, "__replace__": _replace,
}  # fmt: skip


class _WhenAsked:
    """What :mod:`dataclasses` keeps in a class of its own, made when it looks for it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        cls = next((each for each in owner.__mro__ if vars(each).get(self._name) is self), None)
        if cls is None:  # another thread asked at the same moment, and was first
            return getattr(owner, self._name)
        import dataclasses

        made = dataclasses.make_dataclass(
            cls.__name__,
            [(one.name, one.type, _theirs(one)) for one in vars(cls)["__record_fields__"].values()],
            frozen=True,
            slots=True,
        )
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            setattr(cls, name, vars(made)[name])
        return vars(cls)[self._name]


def _theirs(one: _Field) -> Any:
    """A field as :mod:`dataclasses` has it."""
    import dataclasses

    more: dict[str, Any] = {"metadata": one.metadata, "kw_only": one.kw_only}
    if one.default_factory is not None:
        more["default_factory"] = one.default_factory
    elif one.default is not _MISSING:
        more["default"] = one.default
    return dataclasses.field(**more)


def _field(
    *, default: Any = _MISSING, default_factory: Callable[[], Any] | None = None, metadata: Any = None
) -> _Field:
    """A default that is made for each record, or what else is to be known of a field."""
    return _Field(default, default_factory, metadata)


def _fields(one: Any) -> tuple[Any, ...]:
    """The fields of a record, or of any other dataclass: their names and metadata."""
    known = _own_fields(one if isinstance(one, type) else type(one))
    if known is None:
        import dataclasses

        return dataclasses.fields(one)
    return tuple(known.values())


def _own_fields(cls: type) -> Mapping[str, _Field] | None:
    """Those of a record; None for a class that :mod:`dataclasses` made, be it of a record."""
    for each in cls.__mro__:
        found = vars(each)
        if "__record_fields__" in found:
            known: Mapping[str, _Field] = found["__record_fields__"]
            return known
        if "__dataclass_fields__" in found:
            break
    return None


def _is_dataclass(one: Any) -> bool:
    """Whether it is a dataclass of this module or of :mod:`dataclasses`, or one's instance."""
    cls = one if isinstance(one, type) else type(one)
    return hasattr(cls, "__record_fields__") or hasattr(cls, "__dataclass_fields__")


if not TYPE_CHECKING:
    dataclass, field, fields, is_dataclass, replace = _dataclass, _field, _fields, _is_dataclass, _replace

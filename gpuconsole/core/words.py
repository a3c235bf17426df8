"""Enumerations of words and of numbers for what ``status`` is made of, without importing :mod:`enum`.

Importing that module, and what it imports, takes a quarter of a bare Python's start. The classes here do what is asked
of enumerations in this program: members are texts or whole numbers with ``name`` and ``value``, one object each, found
by value, listed in their order, and travel by value. Type checkers read them as the ones of :mod:`enum`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import IntEnum, StrEnum
    from typing import Any

__all__ = ["IntEnum", "StrEnum"]


class _Members(type):
    """The type of an enumeration: makes members of what stands in capitals in a class."""

    __members__: dict[str, Any]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        written = {key: value for key, value in namespace.items() if key.isupper() and not key.startswith("_")}
        made: Any = super().__new__(cls, name, bases, {k: v for k, v in namespace.items() if k not in written})
        made.__members__ = {}
        made._by_value = {}
        plain: Any = str if issubclass(made, str) else int
        for key, value in written.items():
            one = made._by_value.get(value)
            if one is None:
                one = made._by_value[value] = plain.__new__(made, value)
                vars(one).update(name=key, value=value)
            made.__members__[key] = one
            setattr(made, key, one)
        return made

    def __call__(cls, value: Any) -> Any:
        """The member of this value.

        Raises:
            ValueError: There is none.
        """
        try:
            return cls._by_value[value]  # type: ignore[attr-defined]
        except (KeyError, TypeError):
            raise ValueError(f"{value!r} is not a valid {cls.__qualname__}") from None

    def __getitem__(cls, name: str) -> Any:
        return cls.__members__[name]

    def __iter__(cls) -> Iterator[Any]:
        return iter(cls._by_value.values())  # type: ignore[attr-defined]

    def __len__(cls) -> int:
        return len(cls._by_value)  # type: ignore[attr-defined]

    def __contains__(cls, value: object) -> bool:
        try:
            return value in cls._by_value  # type: ignore[attr-defined]
        except TypeError:
            return False


class _Member:
    """What members of both kinds have."""

    def __repr__(self: Any) -> str:
        return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

    def __reduce_ex__(self: Any, protocol: object) -> tuple[type, tuple[Any]]:
        return type(self), (self.value,)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self!r} cannot be changed")


if not TYPE_CHECKING:

    class StrEnum(_Member, str, metaclass=_Members):
        """Words: each member is a text."""

        __str__ = str.__str__
        __format__ = str.__format__

    class IntEnum(_Member, int, metaclass=_Members):
        """Numbers: each member is a whole number."""

        __str__ = int.__repr__
        __format__ = int.__format__

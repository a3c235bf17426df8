"""Ask an NVML library one question by raw ctypes and write the answer as plain data."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Sequence
from typing import Any

from tests.rig.nvml.calls import Argument, Call, Device, Out, Struct, Text, Value

Answer = dict[str, Any]
"""`{"missing": true}` or `{"code": n}`, with the fields that came back when the code is 0."""

TIME_EACH_S = 0.15
"""How long at most one call is repeated to learn what it costs."""


class Handle(ctypes.Structure):
    """What NVML's device handle points to: nobody outside the library knows."""


HandlePointer = ctypes.POINTER(Handle)


class Prepared:
    """The arguments of one call, ready for ctypes, and the places where answers appear."""

    def __init__(self, call: Call, device: Any) -> None:
        self.passed: list[Any] = []
        self._places: list[tuple[str, Any]] = []
        for argument in call.arguments:
            self._add(argument, device)

    def _add(self, argument: Argument, device: Any) -> None:
        match argument:
            case Device():
                self.passed.append(device)
            case Value(value):
                self.passed.append(value)
            case Out(name, kind):
                self._point(name, kind())
            case Text(name, size, sized):
                buffer = ctypes.create_string_buffer(size)
                self._places.append((name, buffer))
                self.passed += [buffer, ctypes.c_uint(size)] if sized else [buffer]
            case Struct(make, preset):
                made = make()
                for field, value in preset:
                    setattr(made, field, value)
                self._point("", made)

    def _point(self, name: str, place: Any) -> None:
        self._places.append((name, place))
        self.passed.append(ctypes.byref(place))

    def fields(self) -> Answer:
        """Every answer by name; the fields of a structure stand for themselves."""
        found: Answer = {}
        for name, place in self._places:
            if isinstance(place, ctypes.Structure):
                found |= fields_of(place)
            else:
                found[name] = plain_value(place.value)
        return found


def plain_value(value: Any) -> Any:
    """A ctypes value as JSON has it: numbers, text, lists, objects."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, ctypes.Structure):
        return fields_of(value)
    if isinstance(value, ctypes.Array):
        return [plain_value(item) for item in value]
    return value


def fields_of(structure: ctypes.Structure) -> Answer:
    """The fields of a structure by name, in the order of its memory."""
    return {field[0]: plain_value(getattr(structure, field[0])) for field in structure._fields_}


class Library:
    """A loaded NVML library that answers with codes and fields instead of exceptions."""

    def __init__(self, cdll: ctypes.CDLL) -> None:
        self.cdll = cdll
        self.microseconds: dict[str, float] = {}
        """Median cost of each timed call, by its key."""

    def has(self, name: str) -> bool:
        """Whether the library exports this function."""
        return hasattr(self.cdll, name)

    def call(self, name: str, *arguments: Any) -> int:
        """The return code of one function."""
        return int(getattr(self.cdll, name)(*arguments))

    def ask(self, call: Call, device: Any = None, *, timed: bool = False) -> Answer:
        """One question, one answer."""
        if not self.has(call.name):
            return {"missing": True}
        prepared = Prepared(call, device)
        code = self.call(call.name, *prepared.passed)
        answer = {"code": code, **(prepared.fields() if code == 0 else {})}
        if timed:
            self.microseconds[call.key] = self._cost(call, prepared)
        return answer

    def ask_all(self, calls: Sequence[Call], device: Any = None, *, timed: bool = False) -> dict[str, Answer]:
        """The answers to many questions, by the key of each."""
        return {call.key: self.ask(call, device, timed=timed) for call in calls}

    def device(self, index: int) -> tuple[int, Any]:
        """The code and the handle of the GPU with this index."""
        handle = HandlePointer()
        return self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle)), handle

    def _cost(self, call: Call, prepared: Prepared) -> float:
        function = getattr(self.cdll, call.name)
        spent: list[float] = []
        until = time.monotonic() + TIME_EACH_S
        while len(spent) < 25 and time.monotonic() < until:
            start = time.perf_counter()
            function(*prepared.passed)
            spent.append((time.perf_counter() - start) * 1e6)
        return round(statistics.median(spent), 1)

"""GPUs that are this machine's CPU: every call of torch that names one is sent to the CPU instead.

It shows that the way on GPUs can be walked, with its events, streams and graphs, and that each benchmark on it can say
no; figures mean nothing here.
"""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

GIB = 1 << 30


def on_cpu(value: Any) -> Any:
    """The CPU for a GPU; anything else as it is."""
    return "cpu" if isinstance(value, str) and value.startswith("cuda") else value


class ToCpu(TorchFunctionMode):  # type: ignore[misc]
    """Sends what is asked of a GPU to the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = {name: on_cpu(value) for name, value in (kwargs or {}).items() if name != "pin_memory"}
        return func(*map(on_cpu, args), **options)


class Generator(torch.Generator):  # type: ignore[misc]
    """Of random numbers, on the CPU."""

    def __new__(cls, device: object = None) -> Any:
        return super().__new__(cls, device="cpu")


class Event:
    """An event: when the host came to it."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self, stream: object = None) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        assert self.at, "it was never recorded"

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        return max(1e-4, (end.at - self.at) * 1000.0)


class Stream:
    """A stream: nothing ever waits."""

    def __init__(self, device: object = None) -> None:
        self.waited: list[object] = []

    def wait_stream(self, stream: object) -> None:
        self.waited.append(stream)


class CUDAGraph:
    """A graph of the only work that is captured here: additions to one number."""

    captured: int
    target: Any

    def replay(self) -> None:
        self.target.add_(self.captured)


@contextmanager
def capture(graph: CUDAGraph) -> Iterator[None]:
    """Count the additions instead of making them."""
    whole = torch.Tensor.add_
    graph.captured = 0

    def count(tensor: Any, other: Any) -> Any:
        graph.captured, graph.target = graph.captured + other, tensor
        return tensor

    torch.Tensor.add_ = count
    try:
        yield
    finally:
        torch.Tensor.add_ = whole


@contextmanager
def pretended(
    monkeypatch: pytest.MonkeyPatch, *, count: int = 1, capability: tuple[int, int] = (9, 0), free: int = 139 * GIB
) -> Iterator[None]:
    """So many GPUs of one kind, with so many bytes free each."""
    cuda: Any = torch.cuda
    properties = types.SimpleNamespace(
        name="NVIDIA H200", L2_cache_size=1 << 16, memory_clock_rate=3_201_000, memory_bus_width=6144
    )
    replaced: dict[str, Callable[..., Any]] = {
        "device_count": lambda: count,
        "is_available": lambda: count > 0,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "get_device_capability": lambda device=None: capability,
        "get_device_properties": lambda device=None: properties,
        "mem_get_info": lambda device=None: (free, 140 * GIB),
        "memory_reserved": lambda device=None: 0,
        "memory_allocated": lambda device=None: 0,
        "max_memory_reserved": lambda device=None: 0,
        "reset_peak_memory_stats": lambda device=None: None,
        "current_stream": lambda device=None: Stream(),
        "Stream": Stream,
        "stream": lambda stream: nullcontext(),
        "device": lambda device: nullcontext(),
        "Event": Event,
        "CUDAGraph": CUDAGraph,
        "graph": capture,
    }
    for name, value in replaced.items():
        monkeypatch.setattr(cuda, name, value)
    monkeypatch.setattr(torch, "Generator", Generator)
    with ToCpu():
        yield

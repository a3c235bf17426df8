"""Why a container is gone: PyTorch's messages in all their forms, and the rules over what is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.diagnose.deaths import Death, Memory, explain
from gpuconsole.diagnose.oomtext import CudaOom, find_cuda_oom

MIB, GIB = 2**20, 2**30

OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 216.00 MiB (GPU 0; 7.92 GiB total capacity; 69.17 MiB already "
    "allocated; 24.56 MiB free; 86.00 MiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
    "setting max_split_size_mb to avoid fragmentation."
)
MIDDLE = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacty of 23.69 "
    "GiB of which 1.25 GiB is free. Process 21422 has 4.50 GiB memory in use. Process 7 has 512.00 MiB memory in use. "
    "Including non-PyTorch memory, this process has 17.40 GiB memory in use. Of the allocated memory 17.00 GiB is "
    "allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."
)
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 8.00 GiB "
    "of which 0 bytes is free. 6.00 GiB allowed; Of the allocated memory 3.10 GiB is allocated by PyTorch, with 46.00 "
    "MiB allocated in private pools (e.g., CUDA Graphs), and 2.80 GiB is reserved by PyTorch but unallocated. If "
    "reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid it."
)
FITS_NEVER = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 90.00 GiB. GPU 0 has a total capacity of 79.1 GiB"
)


def test_the_form_of_1_13() -> None:
    found = find_cuda_oom(["step 1", OLD])
    assert found == CudaOom(
        asked_bytes=216 * MIB, gpu=0, total_bytes=int(7.92 * GIB), free_bytes=int(24.56 * MIB),
        allocated_bytes=int(69.17 * MIB), unallocated_bytes=86 * MIB - int(69.17 * MIB),
    )  # fmt: skip


def test_the_form_with_other_processes() -> None:
    found = find_cuda_oom([MIDDLE])
    assert found is not None
    assert found.others == ((21422, int(4.5 * GIB)), (7, 512 * MIB))
    assert found.others_bytes == 5 * GIB
    assert (found.gpu, found.asked_bytes, found.free_bytes) == (1, 2 * GIB, int(1.25 * GIB))
    assert (found.own_bytes, found.unallocated_bytes) == (int(17.4 * GIB), 100 * MIB)


def test_the_form_of_today() -> None:
    found = find_cuda_oom([NEW])
    assert found is not None
    assert (found.free_bytes, found.allowed_bytes, found.private_bytes) == (0, 6 * GIB, 46 * MIB)
    assert found.unallocated_bytes == int(2.8 * GIB)


def test_what_torch_2_11_said_on_an_h200() -> None:
    """As its container wrote it when seven more GiB did not fit."""
    said = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.00 GiB. GPU 0 has a total capacity of 139.80 "
        "GiB of which 129.12 MiB is free. Including non-PyTorch memory, this process has 139.67 GiB memory in use. Of "
        "the allocated memory 139.09 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. "
        "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to "
        "avoid fragmentation. See documentation for Memory Management"
    )
    cause = explain(Death(1, lines=("step 18", "Traceback (most recent call last):", said)))
    assert cause is not None
    assert cause.sentence == "GPU memory of its GPU 0 was over: it asked for 7 GiB, 129 MiB of 140 GiB were free."
    assert cause.advice == ("Make the batch smaller and accumulate gradients, or turn on activation checkpointing.",)


@pytest.mark.parametrize("message", [OLD, MIDDLE, NEW])
@pytest.mark.parametrize("width", [40, 60, 200])
def test_a_message_that_a_log_broke_into_lines_is_read_the_same(message: str, width: int) -> None:
    words, lines = message.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > width and len(lines) < 8:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    assert find_cuda_oom(["before", *lines]) == find_cuda_oom([message])


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)",
        "ncclUnhandledCudaError: Cuda failure 2 'out of memory'", "CUDA driver error: out of memory",
    ],
)  # fmt: skip
def test_messages_without_numbers(text: str) -> None:
    assert find_cuda_oom([text]) == CudaOom()


def test_a_size_that_is_absurd() -> None:
    assert find_cuda_oom(["Tried to allocate more than 1EB memory."]) == CudaOom(absurd=True)
    cause = explain(Death(1, lines=("Tried to allocate more than 1EB memory.",)))
    assert cause is not None
    assert cause.slug == "absurd-allocation"


@pytest.mark.parametrize("text", ["", "all is well", "out of memory is a song", "GPU 0 free", "allocate 1 GiB"])
def test_other_lines_are_none(text: str) -> None:
    assert find_cuda_oom([text]) is None


def test_the_last_message_counts() -> None:
    found = find_cuda_oom([OLD, "retrying with a smaller batch", MIDDLE, "  File x"])
    assert found is not None
    assert found.gpu == 1


@given(st.lists(st.text(max_size=120), max_size=12))
def test_whatever_is_written_never_breaks_it(lines: list[str]) -> None:
    found = find_cuda_oom(lines)
    assert found is None or isinstance(found, CudaOom)


def slug(death: Death) -> str | None:
    cause = explain(death)
    return None if cause is None else cause.slug


@pytest.mark.parametrize(
    ("death", "wanted"),
    [
        (Death(0), None),
        (Death(1), None),
        (Death(0, lines=(OLD,)), None),
        (Death(1, lines=(OLD,)), "cuda-out-of-memory"),
        (Death(137, oom_killed=True, memory_limit_bytes=GIB), "container-out-of-memory"),
        (Death(None, oom_killed=True), "container-out-of-memory"),
        (Death(0, oom_killed=True), None),
        (Death(1, oom_killed=True, lines=("DataLoader worker (pid 4) is killed by signal: Killed.",)),
         "container-out-of-memory"),
        (Death(1, oom_killed=True), None),
        (Death(1, lines=("DataLoader worker (pid(s) 41, 42) exited unexpectedly",)), "host-out-of-memory"),
        (Death(137, kernel_killed=True), "host-out-of-memory"),
        (Death(1, lines=("OSError: [Errno 12] Cannot allocate memory",)), "host-out-of-memory"),
        (Death(135), "shm-full"),
        (Death(135, private_shm=False), None),
        (Death(1, lines=("RuntimeError: unable to write to file </torch_77_1>",)), "shm-full"),
        (Death(1, lines=("It is possible that dataloader's workers are out of shared memory.",)), "shm-full"),
        (Death(1, lines=("OSError: [Errno 28] No space left on device: '/data/x'",)), "disk-full"),
        (Death(143), "stopped"),
        (Death(130), "stopped"),
        (Death(137), "killed"),
        (Death(137, asked_to_stop=True), "stopped"),
        (Death(137, engine_restarted=True), "engine-restarted"),
        (Death(255, engine_restarted=True), "engine-restarted"),
        (Death(255), "lost"),
        (Death(1, engine_restarted=True, lines=(OLD,)), "cuda-out-of-memory"),
        (Death(139), "crashed"),
        (Death(134), "aborted"),
        (Death(126), "not-executable"),
        (Death(127), "no-command"),
    ],
)  # fmt: skip
def test_causes(death: Death, wanted: str | None) -> None:
    assert slug(death) == wanted
    cause = explain(death)
    if cause is not None:
        assert cause.sentence.endswith(".")
        assert all(advice.endswith(".") for advice in cause.advice)


@pytest.mark.parametrize(
    ("line", "memory", "by_kernel"),
    [
        ("torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)",
         Memory.GPU, False),
        ("[rank1]: torch.cuda.OutOfMemoryError", Memory.GPU, False),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you "
         "tried to allocate 400000000000 bytes. Error code 12 (Cannot allocate memory)", Memory.HOST, False),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 93.1 TiB for an array", Memory.HOST, False),
        ("MemoryError", Memory.HOST, False),
        ("terminate called after throwing an instance of 'std::bad_alloc'", Memory.HOST, False),
        ("Out of memory: Killed process 7 (python)", Memory.HOST, True),
    ],
)  # fmt: skip
def test_which_memory_it_was_and_the_kernel_is_named_only_where_it_did_it(
    line: str, memory: Memory, by_kernel: bool
) -> None:
    cause = explain(Death(1, lines=("before", line, "after")))
    assert cause is not None
    assert cause.memory is memory
    assert ("kernel" in cause.sentence) == by_kernel


def test_a_bus_error_of_which_nothing_is_said_is_explained_as_what_is_likely() -> None:
    likely, told = explain(Death(135, shm_bytes=GIB)), explain(Death(135, shm_bytes=GIB, lines=("Bus error",)))
    assert likely is not None
    assert told is not None
    assert "most likely because shared memory (/dev/shm) of 1 GiB was full" in likely.sentence
    assert told.sentence.startswith("Shared memory (/dev/shm) of 1 GiB was full")


def advice(*lines: str, allocator: str = "") -> str:
    cause = explain(Death(1, lines=lines, allocator=allocator))
    assert cause is not None
    assert cause.memory is Memory.GPU
    return " ".join(cause.advice)


def test_expandable_segments_only_where_they_would_help_and_are_not_on() -> None:
    assert "expandable_segments" in advice(NEW)
    assert "expandable_segments" not in advice(NEW, allocator="expandable_segments:True")
    assert "expandable_segments" not in advice(NEW, allocator="max_split_size_mb:128, expandable_segments: True")
    assert "expandable_segments" not in advice(OLD)  # little is reserved and unused
    assert "expandable_segments" not in advice(MIDDLE)


def test_others_on_the_gpu_come_first() -> None:
    assert advice(MIDDLE).startswith("Take a GPU that nobody else holds")
    assert "nobody else" not in advice(NEW)


def test_a_request_larger_than_the_gpu_never_fits() -> None:
    assert "no batch size" in advice(FITS_NEVER)
    assert "checkpointing" not in advice(FITS_NEVER)


def test_the_numbers_stand_in_the_sentence() -> None:
    cause = explain(Death(1, lines=(MIDDLE,)))
    assert cause is not None
    assert "asked for 2 GiB" in cause.sentence
    assert "1.2 GiB of 23.7 GiB were free" in cause.sentence
    assert "4.5 GiB by pid 21422" in cause.sentence
    assert cause.code == "P13"


def test_a_larger_shm_is_named() -> None:
    cause = explain(Death(135, shm_bytes=64 * MIB))
    assert cause is not None
    assert "--shm-size 8g" in cause.advice[0]
    assert "64 MiB" in cause.sentence
    larger = explain(replace(Death(135), shm_bytes=16 * GIB))
    assert larger is not None
    assert "--shm-size 32g" in larger.advice[0]

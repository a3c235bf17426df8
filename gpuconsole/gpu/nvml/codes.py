"""What NVML's return codes mean, in words: for a reading that failed, and for a library that does not start."""

from __future__ import annotations

from gpuconsole.core.records import dataclass

UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
OPERATING_SYSTEM = 17
VERSION_MISMATCH = 18
ARGUMENT_VERSION = 25
UNKNOWN = 999
GARBLED = -1
"""Ours: the library gave bytes that are no text."""

ABSENT = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION})
"""Codes that say a reading does not exist here; the others say that taking it failed."""

_WORDS = {
    UNINITIALIZED: "the driver went away",
    INVALID_ARGUMENT: "the driver does not accept the question",
    NOT_SUPPORTED: "not supported by this GPU",
    NO_PERMISSION: "this user may not read it",
    NOT_FOUND: "the driver does not know it",
    8: "the GPU lacks external power",
    DRIVER_NOT_LOADED: "the driver is not loaded",
    10: "the driver timed out",
    11: "the GPU's interrupts do not arrive",
    FUNCTION_NOT_FOUND: "this driver is too old for it",
    14: "the GPU's own configuration memory (infoROM) is damaged",
    GPU_IS_LOST: "the GPU is lost",
    RESET_REQUIRED: "the GPU needs a reset",
    OPERATING_SYSTEM: "the operating system blocks it",
    VERSION_MISMATCH: "the driver and its library are of different versions",
    21: "the driver has no data",
    ARGUMENT_VERSION: "this driver is too old for it",
    27: "the driver is not ready",
    28: "the driver found no GPU",
    29: "the GPU is not in the right state for it",
    UNKNOWN: "the driver failed without saying why",
    GARBLED: "the driver gave no readable text",
}


def words(code: int) -> str:
    """Why a reading is missing, as a short phrase."""
    return _WORDS.get(code, f"the driver answered with error {code}")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is nothing to read at all."""

    reason: str
    """A slug."""
    message: str
    """One sentence."""
    hint: str
    """What to do, one sentence."""


_KERNEL_LOG = "Look for NVRM lines in the kernel log (sudo dmesg | grep -i nvrm); a restart of the machine often helps."

NO_GPU = Problem(
    "no-gpu",
    "The NVIDIA driver is loaded, but it finds no GPU.",
    "Check 'lspci | grep -i nvidia', then look for NVRM lines in the kernel log (sudo dmesg | grep -i nvrm).",
)
WRONG_BINDING = Problem(
    "wrong-pynvml",
    "The Python module pynvml is not the one of nvidia-ml-py: an old package named pynvml stands in its place.",
    "In gpuconsole's environment run 'pip uninstall -y pynvml nvidia-ml-py', then 'pip install nvidia-ml-py'.",
)
NO_BINDING = Problem(
    "no-pynvml",
    "The Python package nvidia-ml-py, which reads the GPUs, is missing or damaged.",
    "In gpuconsole's environment run 'pip install --force-reinstall nvidia-ml-py'.",
)
NO_CTYPES = Problem(
    "no-ctypes",
    "The Python that runs gpuconsole was built without ctypes, which the GPUs are read through.",
    "Install gpuconsole with your distribution's Python, or build this one anew once libffi-dev is installed.",
)
DRIVER_CHANGED = Problem(
    "driver-changed",
    "The NVIDIA driver was changed while gpuconsole was running.",
    "Start gpuconsole again; a running program cannot exchange the driver's library.",
)

NO_GPU_EITHER = (
    "No NVIDIA GPU is on the PCI bus either, so none is needed; if there should be one, check the card's seat and "
    "power, or the machine's pass-through."
)
"""What to do without a driver where no GPU waits for one."""

_START_PROBLEMS = {
    LIBRARY_NOT_FOUND: Problem(
        "no-library",
        "There is no NVIDIA driver on this machine: its library libnvidia-ml.so.1 was not found.",
        "Install your distribution's NVIDIA driver, restart the machine, then try nvidia-smi.",
    ),
    DRIVER_NOT_LOADED: Problem(
        "driver-not-loaded",
        "The NVIDIA driver is installed, but its kernel module is not loaded.",
        "Try 'sudo modprobe nvidia'; if that fails, the module has to be built or signed for the running kernel.",
    ),
    VERSION_MISMATCH: Problem(
        "version-mismatch",
        "The loaded NVIDIA kernel module and the driver's libraries are of different versions.",
        "Restart the machine when its jobs allow it (a driver update left the old module loaded).",
    ),
    NO_PERMISSION: Problem(
        "no-permission",
        "This user may not talk to the NVIDIA driver.",
        "Look at the rights of /dev/nvidiactl and /dev/nvidia0 (ls -l /dev/nvidia*), and ask for the group they name.",
    ),
    OPERATING_SYSTEM: Problem(
        "blocked",
        "The operating system keeps this program from the NVIDIA driver.",
        "Inside a container start it with GPUs (--gpus all); outside look at the rights of /dev/nvidia*.",
    ),
    FUNCTION_NOT_FOUND: Problem(
        "library-too-old",
        "The NVIDIA driver's library is too old, or is not NVIDIA's.",
        "Update the NVIDIA driver, and remove stub libraries from LD_LIBRARY_PATH.",
    ),
    GPU_IS_LOST: Problem("gpu-lost", "The NVIDIA driver does not start because a GPU is lost.", _KERNEL_LOG),
    RESET_REQUIRED: Problem("gpu-lost", "The NVIDIA driver does not start because a GPU needs a reset.", _KERNEL_LOG),
    28: NO_GPU,
    UNKNOWN: Problem("driver-failed", "The NVIDIA driver fails to start and does not say why.", _KERNEL_LOG),
}


def start_problem(code: int, *, worked: bool) -> Problem:
    """Why the library does not start.

    Args:
        code: What its start returned.
        worked: It worked earlier in this process, which keeps the library it once loaded: a version that no longer
            fits then means that the driver was exchanged.
    """
    if worked and code == VERSION_MISMATCH:
        return DRIVER_CHANGED
    return _START_PROBLEMS.get(code) or Problem(
        "driver-failed", f"The NVIDIA driver does not start: {words(code)}.", _KERNEL_LOG
    )


def not_answering(limit_s: float) -> Problem:
    """The driver keeps a question longer than ``limit_s`` seconds."""
    return Problem(
        "not-answering",
        f"The NVIDIA driver has not answered for {limit_s:.0f} s.",
        "See whether nvidia-smi hangs too, and look for NVRM and Xid lines in the kernel log (sudo dmesg).",
    )

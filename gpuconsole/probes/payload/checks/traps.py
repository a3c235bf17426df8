"""C25: variables that make training slow, strange or blind."""

from __future__ import annotations

import difflib
import glob
import os

from gpuconsole.probes.payload.outcome import OK, WARN, Context, Outcome

_OFF = ("", "0", "false", "no", "off")
SWITCHES = {
    "CUDA_LAUNCH_BLOCKING": "every kernel is waited for, which is slow",
    "COMPUTE_PROFILE": "a profiler is attached to CUDA",
    "CUDA_AUTO_BOOST": "it asks for other clocks",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "every tensor is allocated anew, which is slow",
    "NCCL_P2P_DISABLE": "GPUs do not talk to each other directly",
    "NCCL_SHM_DISABLE": "GPUs do not talk through shared memory",
    "NCCL_IB_DISABLE": "machines do not talk over InfiniBand",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION": "a failing kernel waits for a debugger",
    "CUDA_CACHE_DISABLE": "kernels are translated anew at each start",
    "CUDA_FORCE_PTX_JIT": "kernels are translated anew, and may fail to be",
    "CUDA_DISABLE_PTX_JIT": "kernels for newer cards are not translated",
    "NVIDIA_TF32_OVERRIDE": "float32 is computed less exactly, whatever the program asks for",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "float32 is computed less exactly, whatever the program asks for",
    "TORCHDYNAMO_DISABLE": "torch.compile does nothing",
    "TORCH_COMPILE_DISABLE": "torch.compile does nothing",
    "TORCH_CUDNN_V8_API_DISABLED": "cuDNN is used by its old interface, which is slow",
}
LOUD = (
    ("NCCL_DEBUG", "TRACE", "every call is logged, which is slow"),
    ("TORCH_DISTRIBUTED_DEBUG", "DETAIL", "every collective is checked twice, which is slow"),
    ("CUDA_MODULE_LOADING", "EAGER", "all kernels are loaded at the start, which takes memory and time"),
)
"""Variables that do harm at one value."""
_KNOWN = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
)


def run(context: Context) -> Outcome:
    """Look through the environment."""
    found = traps(dict(os.environ), context.asked_count) + shadows(os.environ.get("LD_LIBRARY_PATH", ""))
    value = {"traps": [name for name, _, _ in found]}
    if not found:
        return Outcome(OK, "no variable is in the way", "", value)
    why = "; ".join("{}: {}".format(name, text) for name, text, _ in found[:4])
    return Outcome(WARN, why, found[0][2], value)


def traps(environ: dict[str, str], asked: int | None) -> list[tuple[str, str, str]]:
    """Name, effect and remedy of each trap among these variables; ``asked`` is the number of GPUs given."""
    found = []
    for name, effect in SWITCHES.items():
        if environ.get(name, "0").strip().lower() not in _OFF:
            found.append((name, effect, "Unset {} unless you want that.".format(name)))
    for name in sorted(environ):
        if name.startswith("CUDA_INJECTION"):
            found.append((name, "a tool is injected into CUDA", "Unset {}.".format(name)))
    for name, value, effect in LOUD:
        if environ.get(name, "").strip().upper() == value:
            found.append((name, effect, "Set it to a lower level, or unset it."))
    if "CUDA_VISIBLE_DEVICES" in environ:
        effect = visible_devices(environ["CUDA_VISIBLE_DEVICES"], asked)
        if effect:
            remedy = "Unset CUDA_VISIBLE_DEVICES: in a container GPUs are chosen at launch."
            found.append(("CUDA_VISIBLE_DEVICES", effect, remedy))
    return found + misspelt(environ)


def visible_devices(value: str, asked: int | None) -> str:
    """What is odd about this value of CUDA_VISIBLE_DEVICES; empty when nothing is."""
    entries = [entry.strip() for entry in value.split(",")]
    if entries[0] == "":
        return "it is empty and hides every GPU"
    for entry in entries:
        if entry.startswith("-"):
            return "{!r} hides GPUs".format(value[:60])
        if entry.isdigit() and asked is not None and int(entry) >= max(asked, 1):
            return "it names GPU {}, but inside they count from 0 to {}".format(entry, max(asked, 1) - 1)
        if not entry.isdigit() and not entry.upper().startswith(("GPU-", "MIG-")):
            return "{!r} names no GPU".format(entry[:40])
    if len(set(entries)) != len(entries):
        return "it names a GPU twice"
    return ""


def misspelt(environ: dict[str, str]) -> list[tuple[str, str, str]]:
    """Names that were meant for a variable CUDA or torch reads, and have no effect."""
    found = []
    for name in sorted(environ):
        if name in _KNOWN or not name.startswith(("CUDA_", "CUDA", "NVIDIA_VIS", "PYTORCH_")):
            continue
        near = difflib.get_close_matches(name, _KNOWN, n=1, cutoff=0.9)
        if near:
            found.append((name, "it has no effect, {} is meant".format(near[0]), "Unset it."))
    return found


def shadows(search_path: str) -> list[tuple[str, str, str]]:
    """Folders of LD_LIBRARY_PATH that hold a libcuda which is not the driver's."""
    found = []
    for folder in search_path.split(":"):
        if folder and ("stubs" in folder or "compat" in folder) and glob.glob(os.path.join(folder, "libcuda.so*")):
            text = "{} holds a libcuda that is not the driver's".format(folder)
            found.append(("LD_LIBRARY_PATH", text, "Take {} out of LD_LIBRARY_PATH.".format(folder)))
    return found

"""C01: torch can be imported, and is a build for CUDA where GPUs are given."""

from __future__ import annotations

import re
import sys
import time
import warnings

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.outcome import FAIL, OK, WARN, Context, Outcome, count_of, first_line

_SLOW_S = 30.0
_OLDEST = (1, 13)


def run(context: Context) -> Outcome:
    """Import torch, time it, and read what it was built for."""
    begun = time.monotonic()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import torch
    except Exception as error:
        return _not_imported(error)
    seconds = time.monotonic() - begun
    context.torch = torch
    facts = environment.of_torch(torch)
    context.environment(facts)
    for warning in caught:
        sys.stderr.write("{}\n".format(first_line(warning.message)))
    value = {
        "version": facts["torch"],
        "cuda": facts["torch_cuda"],
        "cudnn": facts["cudnn"],
        "path": facts["torch_path"],
        "hip": getattr(torch.version, "hip", None),
        "import_s": round(seconds, 2),
    }
    return judge(value, context.asked_count)


def judge(value: dict[str, object], asked: int | None) -> Outcome:
    """The outcome for a torch that was imported; ``asked`` is how many GPUs the container was given."""
    version, seconds = str(value["version"]), float(str(value["import_s"]))
    if value.get("hip"):
        build = "ROCm build"
    else:
        build = "CUDA {} build".format(value["cuda"]) if value["cuda"] else "CPU build"
    what = "torch {}, {}, imported in {:.1f} s".format(version, build, seconds)
    if value["cuda"] is None and asked:
        return Outcome(
            FAIL,
            "torch {} is a {}: it cannot use the {} given".format(version, build, count_of(asked, "GPU")),
            "Take an image with a CUDA build of torch; if this one had it, a later pip install replaced it.",
            value,
        )
    if _version(version) < _OLDEST:
        return Outcome(WARN, what + ", older than 1.13", "Take a newer image: this one is not known to us.", value)
    if seconds > _SLOW_S:
        return Outcome(WARN, what + ", which is slow", "Look at the disk under the images: it may be busy.", value)
    return Outcome(OK, what, "", value)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0])[:2]) or _OLDEST


def _not_imported(error: Exception) -> Outcome:
    """The outcome for a torch that cannot be imported."""
    text = first_line(error)
    value = {"error": type(error).__name__, "python": sys.executable}
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "torch":
        return Outcome(
            FAIL,
            "there is no torch for {}".format(sys.executable),
            "Take an image with PyTorch, or install it inside: pip install torch.",
            value,
        )
    missing = re.search(r"(lib[\w.+-]+\.so[\w.]*): cannot open", text)
    if missing and missing.group(1).startswith("libcuda.so"):
        return Outcome(
            FAIL,
            "torch cannot be imported without a driver: {}".format(text),
            "Launch the container with a GPU: --gpus 1.",
            value,
        )
    if missing:
        return Outcome(
            FAIL,
            "torch cannot be imported: it finds no {}".format(missing.group(1)),
            "Install the torch that fits the image's CUDA, or undo the last pip install.",
            value,
        )
    return Outcome(
        FAIL,
        "torch cannot be imported: {}: {}".format(type(error).__name__, text),
        "Go back to the image as it was published: a later install broke it.",
        value,
    )

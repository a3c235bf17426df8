"""C11: ``torch.compile`` works, and when it does not, which piece is missing."""

from __future__ import annotations

import getpass
import importlib.util
import os
import shutil
import sysconfig
from typing import Any

from gpuconsole.probes.payload import apart
from gpuconsole.probes.payload.checks.workspace import temporary
from gpuconsole.probes.payload.child import MORE_PROCESSES, NO_PROCESS, died_of
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, WARN, Context, Outcome, first_line

TOLERANCE = 1e-4
LIMIT_S = 60.0
"""From its start; a first compilation takes 10 to 60 s."""
_PART = "compiled"
_CACHE = "TORCHINDUCTOR_CACHE_DIR"
_COMPILERS = {"cuda": ("CC", ("gcc", "clang")), "cpu": ("CXX", ("g++",))}
"""The variable that names a compiler, and those looked for without it: Triton takes C, the CPU's back end C++."""
_NO_COMPILER = "Install gcc and g++ in the image: apt-get install -y build-essential."
_NO_HEADER = "Install the headers of this Python in the image: apt-get install -y python3-dev."
_NO_CACHE = "Set TORCHINDUCTOR_CACHE_DIR to a folder that can be written and whose programs may be run."

_FOR_CPU = {"TORCHINDUCTOR_VEC_ISA_OK": "0", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}
"""One call of the compiler instead of a dozen, which try out vector instructions and prepare headers for later."""

_WORDS = (
    (("getpwuid", "uid not found"), "its user has no name, which the cache's folder is named after",
     "Set USER, or TORCHINDUCTOR_CACHE_DIR, in the container."),
    (("python.h",), "the header Python.h is missing", _NO_HEADER),
    (("c compiler", "c++ compiler", "cxxcompiler", "no such file or directory: 'g++'"), "", _NO_COMPILER),
    (("libcuda.so cannot found", "libcuda.so cannot be found", "cannot find -lcuda"), "Triton finds no libcuda.so",
     "Run ldconfig in the container as root."),
    (("tritonmissing", "working triton", "no module named 'triton'"), "Triton is missing or does not fit",
     "Install the triton that this torch asks for."),
    (("read-only file system", "permission denied", "no space left"), "the cache's folder cannot be written",
     _NO_CACHE),
)  # fmt: skip
"""Words of a failure, what they mean, and the remedy."""


def begin(context: Context) -> None:
    """Start to compile, in a process that has not touched the settings of precision: mixing them breaks it."""
    kind = "cuda" if context.cuda else "cpu"
    if hasattr(context.torch, "compile") and context.statuses.get("check.kernel") != FAIL and can_begin(kind):
        folder = str(context.config["folder"])
        environment = {
            "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
            _CACHE: os.path.join(folder, "inductor"),
        }
        if "TORCHINDUCTOR_COMPILE_THREADS" not in os.environ:
            environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else it starts a pool of processes, which can stay
        told = {"device": "cuda:0" if context.cuda else "cpu"}
        if kind == "cpu":
            environment.update(_FOR_CPU)
        context.apart[_PART] = apart.start(_PART, told, archive=str(context.config["archive"]), environment=environment)


def run(context: Context) -> Outcome:
    """Wait for it, and explain what came of it."""
    if not hasattr(context.torch, "compile"):
        return Outcome(SKIP, "torch {} has no torch.compile".format(context.torch.__version__))
    if _PART not in context.apart:
        try:
            begin(context)
        except OSError as error:
            return Outcome(WARN, NO_PROCESS.format(error.strerror or error), MORE_PROCESSES)
    kind = "cuda" if context.cuda else "cpu"
    pieces = dict(look_around(kind, str(context.config["folder"])), device=kind)
    if _PART not in context.apart:
        if can_begin(kind):
            return Outcome(SKIP, "kernels do not run", "See check.kernel.")
        why, fix = explain(dict(pieces, failure=None), "")
        return Outcome(WARN, "torch.compile does not work: {}".format(why), fix, pieces)
    process = context.apart.pop(_PART)
    ended = process.wait(process.begun + LIMIT_S)
    process.kill()
    value = {name: process.told.get(name) for name in ("error", "compile_s", "failure", "kind")}
    value.update(pieces, tolerance=TOLERANCE)
    value["exit_code"] = process.exit_code if ended else None
    outcome = judge(value, ended=ended, text=process.told.get("text") or "", stray=process.stray)
    outcome.value = value
    return outcome


def can_begin(kind: str) -> bool:
    """Trying tells more than looking; but without a compiler the CPU's back end gives up after many seconds."""
    return kind == "cuda" or compiler_of(kind) is not None


def compiler_of(kind: str) -> str | None:
    """The compiler that would be used."""
    variable, names = _COMPILERS[kind]
    named = os.environ.get(variable, "").split()
    return shutil.which(named[0]) if named else next(filter(None, map(shutil.which, names)), None)


def look_around(kind: str, ours: str) -> dict[str, Any]:
    """The pieces that ``torch.compile`` needs on ``kind``, each as found here; ``ours`` is our own folder."""
    header = os.path.join(sysconfig.get_path("include") or "", "Python.h")
    cache = cache_folder(ours)
    return {
        "compiler": compiler_of(kind),
        "python_header": header if os.path.exists(header) else None,
        "triton": importlib.util.find_spec("triton") is not None,
        "cache": cache,
        "cache_problem": cache_problem(cache),
    }


def cache_folder(ours: str) -> str | None:
    """Where what is compiled would be kept, were it not for our folder ``ours``; None when none can be named."""
    told = os.environ.get(_CACHE)
    if told and not told.startswith(ours):
        return told  # torch writes its choice there too, which is then below our own folder
    try:
        return os.path.join(temporary() or "/tmp", "torchinductor_" + getpass.getuser())  # noqa: S108
    except (KeyError, OSError):
        return None  # no entry for this user in /etc/passwd, and no USER


def cache_problem(folder: str | None) -> str:
    """What is wrong with this folder, or with the nearest one above it that exists; empty when nothing is."""
    if folder is None:
        return "its user has no name"
    existing = os.path.abspath(folder)
    while not os.path.isdir(existing) and existing != "/":
        existing = os.path.dirname(existing)
    if not os.access(existing, os.W_OK | os.X_OK):
        return "it cannot be written"
    try:
        if os.statvfs(existing).f_flag & os.ST_NOEXEC:
            return "programs in it may not be run"
    except OSError:
        return "it cannot be written"
    return ""


def judge(value: dict[str, Any], *, ended: bool, text: str, stray: str) -> Outcome:
    """The outcome for what the process told.

    Args:
        value: What it told, and the pieces found here.
        ended: It came to its end in time.
        text: The text of its failure.
        stray: What else it wrote.
    """
    if value["error"] is not None:
        return _of_result(value)
    if not ended:
        why = "torch.compile had not come to its end after {:.0f} s".format(LIMIT_S)
        if value["compiler"] is None or value["python_header"] is None:
            missing, fix = explain(value, "")
            return Outcome(WARN, "{}, and {}".format(why, missing), fix)
        return Outcome(WARN, why, "Look at the load of the processors and at the disk under the cache's folder.")
    if (value.get("exit_code") or 0) < 0:
        did, fix = died_of(value["exit_code"])
        return Outcome(WARN, "the process that tried torch.compile {}".format(did), fix)
    words = " ".join((text, stray)) if value["failure"] is None else text or value["failure"]
    if "failed to map segment" in words:
        if value["cache_problem"]:
            return Outcome(WARN, "torch.compile does not work: {}".format(_cache(value)), _NO_CACHE)
        # The check's own folder is to blame, the one that would be used is elsewhere.
        return Outcome(SKIP, "it cannot be tried here: programs may not be run in the folder of this check")
    why, fix = explain(value, words)
    return Outcome(WARN, "torch.compile does not work: {}".format(why), fix)


def _of_result(value: dict[str, Any]) -> Outcome:
    place = "the CPU (no GPU took part)" if value["device"] == "cpu" else "the GPU"
    if not value["error"] < TOLERANCE:
        why = "what torch.compile makes on {} is off by {:.0e}".format(place, value["error"])
        return Outcome(WARN, why, "Train without torch.compile, or take another version of torch.")
    if value["cache_problem"]:
        return Outcome(WARN, "torch.compile works, but not as it is set up here: {}".format(_cache(value)), _NO_CACHE)
    return Outcome(OK, "torch.compile works on {}, the first time in {:.0f} s".format(place, value["compile_s"] or 0))


def _cache(value: dict[str, Any]) -> str:
    if value["cache"] is None:
        return "its user has no name, which the cache's folder is named after"
    return "of its cache's folder {}, {}".format(value["cache"], value["cache_problem"])


def explain(value: dict[str, Any], words: str) -> tuple[str, str]:
    """What is missing, and the remedy, by the words of the failure and the pieces found here."""
    low = words.lower()
    names = _COMPILERS[value["device"]][1]
    no_compiler = "there is no {} compiler ({})".format("C++" if value["device"] == "cpu" else "C", ", ".join(names))
    for parts, meaning, fix in _WORDS:
        if any(part in low for part in parts):
            if meaning:
                return meaning, fix
            if value["compiler"] is None:
                return no_compiler, fix
            return "its compiler {} does not work".format(value["compiler"]), fix
    if value["compiler"] is None:
        return no_compiler, _NO_COMPILER
    if value["python_header"] is None:
        return "the header Python.h is missing", _NO_HEADER
    if value["device"] == "cuda" and not value["triton"]:
        return "Triton is missing", "Install the triton that this torch asks for."
    line = value["failure"] or first_line(words.strip().split("\n")[-1]) or "it ended without a word"
    return line, "Train without torch.compile, or take another version of torch."

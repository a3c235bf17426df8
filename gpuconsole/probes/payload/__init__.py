"""What runs inside a container: Python 3.8 or newer, torch 1.13 or newer and the standard library are all it needs.

It is shipped as one zip archive that holds this package under its own name and nothing else of gpuconsole, and is
started by the path of that archive. Three processes take part, in words: the *supervisor* (``supervise``) uses the
standard library only, holds the deadlines and is the one that talks to the host; the *worker* (``work``) imports torch
and runs the checks, or the benchmarks, so that a crash or a hang costs one of them and not the run; ``driver`` is a
short process that asks libcuda one question, and ``rank`` one of several that a benchmark measures together.

Nothing here may import from the rest of gpuconsole: it is not there.
"""

from __future__ import annotations

SUITE = "2"
"""Version of the set of checks; rises when a check's meaning changes."""

SCHEMA = 1
"""Version of the records' form."""

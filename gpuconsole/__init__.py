"""gpuconsole: the terminal console for PyTorch-CUDA containers on GPU workstations.

The folders, from the ground up; imports go downwards only:

- ``core``: errors with exit codes, text from outside made harmless, sizes, paths; records, words and JSON that cost a
  ``status`` no import.
- ``gpu`` and ``engine``: what is known of GPUs and of the container engine; ``gpu.nvml`` and ``engine.docker``
  are the only places that talk to NVML and to Docker.
- ``host``: facts of this machine, who holds GPU memory (process, user, container), and the files of recordings.
- ``images``: image references and what is inside an image.
- ``launch``: from a launch spec to the container request and the ``docker run`` line it amounts to.
- ``probes``: checks that run inside a container; ``diagnose``: what a failure means.
- ``services``: the use cases that the command line and the console share.
- ``cli`` and ``tui``: the two front ends.
"""

from __future__ import annotations

__version__ = "0.1.0.dev0"

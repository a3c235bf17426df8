"""The labels a container gets from us: who launched it, with what."""

from __future__ import annotations

PREFIX = "gpuconsole."
"""Ours alone: a launch refuses a ``--label`` that begins so."""
VERSION = "gpuconsole.version"
"""The gpuconsole that launched it."""
USER = "gpuconsole.user"
"""Login name of who launched it; their uid where it has no name."""
IMAGE = "gpuconsole.image"
"""The image reference as it was written."""
DIGEST = "gpuconsole.digest"
"""``sha256:…`` of the image it was made from, in the repository of ``gpuconsole.image``; the image's id where no
registry gave it."""
GPUS = "gpuconsole.gpus"
"""UUIDs of the GPUs or MIG instances it was given, with commas; ``none`` when it was given none."""
SPEC = "gpuconsole.spec"
"""What was asked for, as JSON; of environment variables the names alone, since values may be secrets."""
LAUNCH = "gpuconsole.launch"
"""A random word of that launch alone, on the container and on the volumes made with it, so that a failed launch takes
back what it made and nothing else."""

NO_GPUS = "none"

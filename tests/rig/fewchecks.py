"""gpuconsole with a handful of its checks: `python -m tests.rig.fewchecks` is `python -m gpuconsole` otherwise.

For tests of what is around the checks: how they are started, told, ended and judged. All of them together take a
processor half a minute, so few tests run them all.
"""

from __future__ import annotations

from gpuconsole.probes import catalog

_QUICK = "torch cuda-available devices driver gpu-memory kernel numerics shm workspace environment"
KEPT = frozenset(f"check.{name}" for name in _QUICK.split())


def few() -> tuple[catalog.CheckInfo, ...]:
    """Give those of the checks that are kept, in their order."""
    return tuple(check for check in catalog.CHECKS if check.id in KEPT)


def main() -> None:
    """Be gpuconsole with these checks."""
    from gpuconsole.cli.main import run

    catalog.CHECKS = few()
    run()


if __name__ == "__main__":
    main()

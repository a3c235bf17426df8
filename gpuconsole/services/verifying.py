"""Ask registries for the catalog's images: several at once, and not again where nobody answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from gpuconsole.core.errors import ConsoleError, TimedOut
from gpuconsole.images.findings import Finding, Trouble
from gpuconsole.images.reference import parse
from gpuconsole.images.registry import Registries
from gpuconsole.images.registrycalls import Login, RegistryError
from gpuconsole.services.gather import gather

_WORKERS = 4
"""Questions at once: a registry is not to be pressed."""
_DEADLINE_S = 900.0
_LATE = TimedOut("It did not answer in time.", hint="Try again later.")
_HOPELESS = (Trouble.UNREACHED, Trouble.LIMIT)
"""After one of these the same registry is not asked for the other images."""


def verify(
    references: Sequence[str], login: Login, *, on_finding: Callable[[Finding], None] = lambda _: None
) -> tuple[Finding, ...]:
    """What the registries say of ``references``, in their order.

    Args:
        references: As the catalog writes them.
        login: What ``docker login`` left for a registry.
        on_finding: Told of each as it comes in, from threads of its own.
    """
    round_ = _Round(Registries(login), on_finding)
    questions = [partial(round_.ask, reference) for reference in references]
    answers = gather(questions, workers=_WORKERS, deadline_s=_DEADLINE_S, late=_LATE)
    now = time.time()
    return tuple(
        Finding(reference, now, trouble=Trouble.UNREACHED, text="it did not answer in time")
        if isinstance(answer, ConsoleError)
        else answer
        for reference, answer in zip(references, answers, strict=True)
    )


class _Round:
    """One round of questions."""

    def __init__(self, registries: Registries, on_finding: Callable[[Finding], None]) -> None:
        self._registries = registries
        self._on_finding = on_finding
        self._lock = threading.Lock()
        self._given_up: dict[str, RegistryError] = {}

    def ask(self, reference: str) -> Finding:
        parsed = parse(reference)
        given_up = self._given_up.get(parsed.registry)
        try:
            if given_up is not None:
                raise given_up
            manifest = self._registries.describe(parsed)
        except RegistryError as error:
            if error.trouble in _HOPELESS:
                self._given_up[parsed.registry] = error
            finding = Finding(reference, time.time(), trouble=error.trouble, text=error.text)
        else:
            finding = Finding(reference, time.time(), digest=manifest.digest, sizes=manifest.sizes)
        with self._lock:
            self._on_finding(finding)
        return finding

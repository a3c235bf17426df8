"""The images asked for when they may have changed: one question at a time, however many reasons there are."""

from __future__ import annotations

import threading
from collections.abc import Callable

_GATHERED_S = 0.3
"""Reasons that come within this time of a listing are answered by one more."""


class ImageLister:
    """Calls ``list_images`` on a daemon thread of its own, begun with the first reason.

    What is listed last was asked for after the last reason, and no answer is overtaken by an older one.

    Args:
        list_images: Asks for the images and tells them; may block.
    """

    def __init__(self, list_images: Callable[[], None]) -> None:
        self._list_images = list_images
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """The images may have changed; returns at once."""
        self._wanted.set()
        with self._lock:
            # A fault of ours ends the thread, and is told by it; the next reason is heeded all the same.
            if self._closed.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._work, name="image-lister", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ask no more; a question under way is not waited for."""
        self._closed.set()
        self._wanted.set()

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            if self._closed.is_set():
                return
            self._wanted.clear()  # before the question: what happens from now on is a reason for another one
            self._list_images()
            self._closed.wait(_GATHERED_S)

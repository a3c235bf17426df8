"""Failures inside the contract of engines are explained as those of tests are."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(*(f"tests.engine.contract{part}" for part in ("", "_descriptions", "_life", "_streams")))

"""What a thing on the screen is, told without importing what describes it.

The first picture holds no container and no image yet: what is known of them is imported when the engine has some.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from gpuconsole.services.catalog import CatalogView
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.images import ImageView


def is_container(thing: object) -> TypeIs[ContainerView]:
    """Whether it is a container."""
    return _is(thing, "gpuconsole.services.containers", "ContainerView")


def is_image(thing: object) -> TypeIs[ImageView]:
    """Whether it is an image."""
    return _is(thing, "gpuconsole.services.images", "ImageView")


def is_catalog_image(thing: object) -> TypeIs[CatalogView]:
    """Whether it is an image of the catalog that is not here."""
    return _is(thing, "gpuconsole.services.catalog", "CatalogView")


def _is(thing: object, module: str, name: str) -> bool:
    # Where its module was never imported, there can be none of it; another thread may be importing it just now.
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(thing, kind)

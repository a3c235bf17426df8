"""Bringing the image of a launch: the one that is here, else pulled as far as that is allowed."""

from __future__ import annotations

from collections.abc import Callable

from gpuconsole.core.errors import NotFound
from gpuconsole.engine.model import Image
from gpuconsole.images.reference import is_image_id
from gpuconsole.launch.spec import PullPolicy
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.imagenames import local_image
from gpuconsole.services.pulling import PullState
from gpuconsole.services.pullruns import Puller, read_reference
from gpuconsole.services.session import Session


def ensure_image(
    session: Session,
    reference: str,
    *,
    policy: PullPolicy = PullPolicy.MISSING,
    force: bool = False,
    cancel: Cancellation,
    on_pull: Callable[[PullState], None],
) -> tuple[Image, bool]:
    """The local image of ``reference``, pulled when the policy says so; and whether it was pulled.

    Args:
        session: Whose engine.
        reference: Which.
        policy: When it is pulled.
        force: Pull also where the disk seems too small.
        cancel: Ends the pull.
        on_pull: Told how far the pull is.

    Raises:
        NotFound: It is not here and may not be pulled, or the registry does not have it.
        Cancelled: The stop was asked for; layers that were not complete are gone.
        Conflict: The engine's disk has no room for it.
        ConsoleError: The registry or the engine failed.
    """
    if policy is not PullPolicy.ALWAYS:
        image = local_image(session.engine, reference)
        if image is not None:
            return image, False
    if policy is PullPolicy.NEVER:
        raise NotFound(
            f"The image {reference} is not here, and --pull never forbids to fetch it.",
            hint="Leave --pull never out, or name one of 'gpuconsole images'.",
        )
    if is_image_id(reference):
        raise NotFound(
            f"There is no local image with the id {reference}, and an id cannot be pulled.",
            hint="Name one of 'gpuconsole images', or a reference with a tag or digest.",
        )
    try:
        pulled = Puller(session, force=force).pull(read_reference(reference), cancel=cancel, on_state=on_pull)
    except Cancelled as error:
        raise Cancelled(
            f"Interrupted while pulling {reference}: nothing was launched.",
            hint="Layers that were complete are kept; pull again to go on from them.",
        ) from error
    return pulled.image, True

"""The writes of this room: channels are kept, events become notifications, and notifications go out."""

from controlplane.notify.services.channels import (
    channel_create,
    channel_delete,
    channel_resume,
    channel_test,
)
from controlplane.notify.services.delivering import deliveries_send
from controlplane.notify.services.expanding import notifications_expand
from controlplane.notify.services.watching import Watch

__all__ = [
    "channel_create",
    "channel_delete",
    "channel_resume",
    "channel_test",
    "deliveries_send",
    "notifications_expand",
    "notifications_make",
    "notify",
]

_watch = Watch()


def notifications_make() -> None:
    """Make notifications of the events that wait, and of what only time brings about. Safe to run at any time, any
    number of times; waits for nobody outside.
    """
    notifications_expand()
    _watch.look()


def notify() -> None:
    """Make notifications as `notifications_make` does, and send those that are due."""
    notifications_expand()
    deliveries_send()
    _watch.look()

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
    "notify",
]

_watch = Watch()


def notify() -> None:
    """Make notifications of what happened, send what is due, and look what time has brought about. Safe to run at any
    time, any number of times.
    """
    notifications_expand()
    deliveries_send()
    _watch.look()

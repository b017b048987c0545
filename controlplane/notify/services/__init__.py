"""The writes of this room: channels are kept, events become notifications, and notifications go out."""

from controlplane.notify.services.channels import (
    channel_create,
    channel_delete,
    channel_pause,
    channel_resume,
    channel_update,
)
from controlplane.notify.services.delivering import deliveries_send
from controlplane.notify.services.expanding import notifications_expand
from controlplane.notify.services.samples import channel_test
from controlplane.notify.services.watching import Watch

__all__ = [
    "channel_create",
    "channel_delete",
    "channel_pause",
    "channel_resume",
    "channel_test",
    "channel_update",
    "deliveries_send",
    "notifications_expand",
    "notifications_make",
    "notify",
]

_watch = Watch()


def notifications_make() -> None:
    """Make notifications of events that wait, and of what happens merely because time passes, such as a token's end.
    May be called at any time and again; never waits for another system.
    """
    notifications_expand()
    _watch.look()


def notify() -> None:
    """Make notifications as `notifications_make` does, and send to channels what is due."""
    notifications_expand()
    deliveries_send()
    _watch.look()

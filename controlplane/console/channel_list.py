"""The list of channels: where each leads, of what it tells, and whether that arrives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.console.lists import ListPage, ListShown
from controlplane.listing.frames import Asked, Filter, Frame, Kind, Order, options
from controlplane.listing.tables import Column
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.selectors import ChannelView, channel_list

_STATES: Final = ("works", "failing", "paused", "waiting")
_ORDERS: Final[Mapping[str, Callable[[ChannelView], Any]]] = {
    "name": lambda each: each.name,
    "kind": lambda each: (each.kind, each.name),
    "last": lambda each: (each.last.at.timestamp() if each.last is not None else 0, each.name),
}


def _state(channel: ChannelView) -> str:
    """How a channel stands, as its badge says it."""
    if channel.paused_at is not None:
        return "paused"
    if channel.failures:
        return "failing"
    return "works" if channel.last is not None else "waiting"


class ChannelsPage(ListPage):
    """The page with every channel. There are no more than `channels.MAX_CHANNELS`, so all stand on one page."""

    template = "channels/list.html"
    needs = {"GET": Role.ADMIN}
    frame = Frame(
        "channels",
        "channels",
        "channels",
        (
            Filter("text", "Name, or where to", width="wide"),
            Filter("kind", "Kind", Kind.CHOICE, options(tuple(ChannelKind))),
            Filter("state", "State", Kind.CHOICE, options(_STATES)),
            Filter("environment", "Tells of", Kind.CHOICE, free=True, max_chars=63),
        ),
        (Order("name", "Name"), Order("kind", "Kind"), Order("last", "Last delivery", falls=True)),
        of_environment=False,
    )
    columns: ClassVar[Sequence[Column[ChannelView]]] = (
        Column("name", lambda each: each.name),
        Column("kind", lambda each: each.kind.value),
        Column("state", _state),
        Column("target", lambda each: each.target),
        Column("environments", lambda each: " ".join(each.environments)),
        Column("kinds_of_messages", lambda each: " ".join(each.kinds)),
        Column("failing_since", lambda each: each.failing_since),
        Column("last_delivery_at", lambda each: each.last.at if each.last is not None else None),
        Column("last_delivery", lambda each: each.last.state if each.last is not None else ""),
    )

    def shown(self, asked: Asked) -> ListShown:
        """The channels that fit the filters."""
        every = channel_list()
        context = {"channels": _fitting(every, asked), "any": bool(every)}
        return ListShown(context, {"environment": options([each.key for each in self.environments])})

    def lines(self, asked: Asked, limit: int) -> Sequence[ChannelView]:
        """The first channels that fit the filters."""
        return _fitting(channel_list(), asked)[:limit]


def _fitting(channels: Sequence[ChannelView], asked: Asked) -> list[ChannelView]:
    """The channels that fit the filters, in the order that is asked for."""
    text, key = asked.text("text").lower(), asked.text("environment")
    found = [
        each
        for each in channels
        if text in f"{each.name}\n{each.target}".lower()
        and asked.text("kind") in ("", each.kind)
        and asked.text("state") in ("", _state(each))
        and (not key or not each.environments or key in each.environments)
    ]
    return sorted(found, key=_ORDERS[asked.sort or "name"], reverse=asked.falls)


urlpatterns = [
    path("channels", ChannelsPage.as_view(), name="channels"),
]

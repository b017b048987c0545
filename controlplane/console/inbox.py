"""The inbox: what people were told, newest first."""

from collections.abc import Sequence
from typing import ClassVar, Final

from django.urls import path

from controlplane.catalog.rights import environment_visible
from controlplane.console.lists import ListPage, ListShown
from controlplane.console.places import Place, Section
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, Option, options
from controlplane.listing.tables import Column
from controlplane.notify.catalogue import Severity
from controlplane.notify.selectors import NotificationView, notification_list

_SIZE: Final = 50


class InboxPage(ListPage):
    """The page with the notifications of the environments that the user may see."""

    template = "inbox/list.html"
    needs = {"GET": None}
    frame = Frame(
        "messages",
        "messages",
        "inbox",
        (
            Filter("environment", "Environment", Kind.CHOICE, free=True, unasked="all", max_chars=63),
            Filter("for", "For whom", Kind.CHOICE, (Option("me", "me alone"),), unasked="everybody"),
            Filter("severity", "How urgent", Kind.CHOICE, options(tuple(Severity))),
            SINCE,
            UNTIL,
        ),
        of_environment=False,
    )
    columns: ClassVar[Sequence[Column[NotificationView]]] = (
        Column("id", lambda each: each.id),
        Column("at", lambda each: each.at),
        Column("kind", lambda each: each.kind),
        Column("environment", lambda each: each.environment),
        Column("subject", lambda each: each.subject),
        Column("severity", lambda each: each.severity),
        Column("title", lambda each: each.title),
        Column("text", lambda each: each.text),
    )

    def shown(self, asked: Asked) -> ListShown:
        """One page of notifications: those older than the one whose id is `before` in the URL; without it, the
        newest.
        """
        before = self.request.GET.get("before", "")
        found = self._found(
            asked,
            before=int(before) if before.isascii() and before.isdigit() and len(before) <= 18 else None,
            limit=_SIZE + 1,
        )
        context: dict[str, object] = {
            "lines": found[:_SIZE],
            "next": found[_SIZE - 1].number if len(found) > _SIZE else None,
            "later": bool(before),
            "alone": asked.text("for") == "me",
        }
        return ListShown(context, {"environment": options(self._keys)})

    def lines(self, asked: Asked, limit: int) -> Sequence[NotificationView]:
        """The first notifications that fit the filters."""
        return self._found(asked, before=None, limit=limit)

    def _found(self, asked: Asked, *, before: int | None, limit: int) -> tuple[NotificationView, ...]:
        wanted = asked.text("environment")
        return notification_list(
            environment_keys=(environment_visible(self.principal, wanted).key,) if wanted else self._keys,
            reader=self.principal.id,
            alone=asked.text("for") == "me",
            severity=asked.text("severity"),
            since=asked.since,
            until=asked.until,
            before=before,
            limit=limit,
        )

    @property
    def _keys(self) -> tuple[str, ...]:
        return self.principal.sees(state.key for state in self.environments)


urlpatterns = [
    path("messages", InboxPage.as_view(), name="inbox"),
]
PLACES = (Place(Section.NOW, 30, "Messages", "notes", "inbox", of_environment=False),)

"""The audit log: who did what to what, when, by which request, and what that changed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final
from uuid import UUID

from django.urls import path, reverse

from controlplane.accounts.principal import Role
from controlplane.catalog.rights import environment_visible
from controlplane.console.lists import ListPage, ListShown
from controlplane.console.places import Place, Section
from controlplane.journal.models import AuditEvent
from controlplane.journal.selectors import audit_list
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, Order, options
from controlplane.listing.runs import runs
from controlplane.listing.tables import Column

_SIZE: Final = 50
_MAX_TEXT: Final = 150
_MAX_DETAIL_CHARS: Final = 20_000
_AS_WORDS: Final = str.maketrans("._-", "   ")


@dataclass(frozen=True, slots=True)
class Line:
    """An audit entry in the list.

    `principal`: the id of who did it; `actor` is their name.
    `url`: the page about what it was done to; empty where there is none.
    `reason`: why, in their words.
    `detail`: everything else that the entry has, as JSON.
    """

    id: int
    at: datetime
    actor: str
    principal: str
    what: str
    subject: str
    environment: str
    request_id: str
    url: str
    reason: str
    detail: str


class AuditPage(ListPage):
    """The page with the audit log of the environments that the user may see, newest first. Entries that belong to no
    environment are shown to administrators of all environments.
    """

    template = "audit/list.html"
    needs = {"GET": None}
    frame = Frame(
        "audit",
        "events",
        "audit",
        (
            Filter("environment", "Environment", Kind.CHOICE, free=True, unasked="all", max_chars=_MAX_TEXT),
            Filter("actor", "Who", max_chars=_MAX_TEXT),
            Filter("actor_id", "Id of who", max_chars=_MAX_TEXT, hidden=True),
            Filter("verb", "What, e.g. quarantine.opened", max_chars=64),
            Filter("request_id", "Request id", max_chars=64),
            SINCE,
            UNTIL,
        ),
        (Order("time", "When", falls=True),),
        of_environment=False,
    )
    columns: ClassVar[Sequence[Column[AuditEvent]]] = (
        Column("id", lambda event: event.pk),
        Column("at", lambda event: event.at),
        Column("actor", lambda event: event.actor),
        Column("actor_id", lambda event: event.principal),
        Column("verb", lambda event: event.verb),
        Column("subject", lambda event: event.subject),
        Column("environment", lambda event: event.environment),
        Column("request_id", lambda event: event.request_id),
        Column("detail", lambda event: json.dumps(event.detail, ensure_ascii=False)),
    )

    def shown(self, asked: Asked) -> ListShown:
        """One page of the audit log: entries behind the one whose id is `before` in the URL; without it, the first."""
        before = self.request.GET.get("before", "")
        found = self._found(
            asked,
            before=int(before) if before.isascii() and before.isdigit() and len(before) <= 18 else None,
            limit=_SIZE + 1,
        )
        context: dict[str, object] = {
            "runs": runs([_line(event) for event in found[:_SIZE]], _said),
            "count": len(found[:_SIZE]),
            "next": found[_SIZE - 1].pk if len(found) > _SIZE else None,
            "later": bool(before),
        }
        return ListShown(context, {"environment": options(self.principal.sees(each.key for each in self.environments))})

    def lines(self, asked: Asked, limit: int) -> Sequence[AuditEvent]:
        """The first entries that fit the filters."""
        return self._found(asked, before=None, limit=limit)

    def _found(self, asked: Asked, *, before: int | None, limit: int) -> tuple[AuditEvent, ...]:
        return audit_list(
            environments=self._environments(asked.text("environment")),
            before=before,
            actor=asked.text("actor"),
            principal=asked.text("actor_id"),
            verb=asked.text("verb"),
            request_id=asked.text("request_id"),
            since=asked.since,
            until=asked.until,
            oldest_first=bool(asked.sort) and not asked.falls,
            limit=limit,
        )

    def _environments(self, wanted: str) -> tuple[str, ...]:
        """The keys of the environments whose entries are shown: `wanted` or, where that is empty, all that the user may
        see. Raises NotFound for one they may not see.
        """
        if wanted:
            return (environment_visible(self.principal, wanted).key,)
        keys = self.principal.sees(state.key for state in self.environments)
        return (*keys, "") if self.principal.may(Role.ADMIN, None) else keys


def _said(line: Line) -> tuple[str, ...]:
    """What two entries have in common that are folded: who did what to what, and where."""
    return (line.actor, line.principal, line.what, line.subject, line.environment)


# By the noun of the verb: the page about what it was done to.
_ROUTES: Final = {"change": "change", "change_set": "change-set", "incident": "incident"}


def _line(event: AuditEvent) -> Line:
    told = event.detail if isinstance(event.detail, dict) else {}
    rest = {key: value for key, value in told.items() if key != "reason" and value not in ("", None)}
    return Line(
        event.pk,
        event.at,
        event.actor,
        event.principal,
        event.verb.translate(_AS_WORDS),
        event.subject,
        event.environment,
        event.request_id,
        _page_of(event),
        str(told.get("reason", "")),
        json.dumps(rest, indent=2, ensure_ascii=False)[:_MAX_DETAIL_CHARS] if rest else "",
    )


def _page_of(event: AuditEvent) -> str:
    """The URL of the page about what an audit entry tells of; empty where there is none. A page for a change, change
    set or incident is linked without looking whether it still exists.
    """
    route = _ROUTES.get(event.verb.partition(".")[0], "")
    if not route:
        return ""
    try:
        return reverse(route, args=[str(UUID(event.subject.removeprefix("change_set/")))])
    except ValueError:
        return ""


urlpatterns = [
    path("audit", AuditPage.as_view(), name="audit"),
]
PLACES = (Place(Section.ADMINISTRATION, 40, "Audit", "history", "audit", of_environment=False),)

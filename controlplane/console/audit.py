"""The audit log: who did what to what, when, by which request, and what that changed."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse

from controlplane.accounts.principal import Role
from controlplane.catalog.rights import environment_visible
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.journal.models import AuditEvent
from controlplane.journal.selectors import audit_list

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


class AuditPage(Page):
    """The page with the audit log of the environments that the user may see, newest first. Entries that belong to no
    environment are shown to administrators of all environments.
    """

    template = "audit/list.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """One page of the audit log: entries older than the one whose id is `before` in the URL; without it, the
        newest.
        """
        asked = {name: request.GET.get(name, "").strip()[:_MAX_TEXT] for name in _FILTERS}
        environments = self._environments(asked["environment"])
        before = request.GET.get("before", "")
        found = audit_list(
            environments=environments,
            before=int(before) if before.isascii() and before.isdigit() and len(before) <= 18 else None,
            actor=asked["actor"],
            principal=asked["actor_id"],
            verb=asked["verb"],
            request_id=asked["request_id"],
            limit=_SIZE + 1,
        )
        context = {
            "lines": [_line(event) for event in found[:_SIZE]],
            "next": found[_SIZE - 1].pk if len(found) > _SIZE else None,
            "later": bool(before),
            "asked": asked,
            "filtered": any(asked.values()),
            "keys": self.principal.sees(state.key for state in self.environments),
        }
        return self.page(context)

    def _environments(self, wanted: str) -> tuple[str, ...]:
        """The keys of the environments whose entries are shown: `wanted` or, where that is empty, all that the user may
        see. Raises NotFound for one they may not see.
        """
        if wanted:
            return (environment_visible(self.principal, wanted).key,)
        keys = self.principal.sees(state.key for state in self.environments)
        return (*keys, "") if self.principal.may(Role.ADMIN, None) else keys


# By the noun of the verb: the page about what it was done to.
_ROUTES: Final = {"change": "change", "change_set": "change-set", "incident": "incident"}
_FILTERS: Final = ("environment", "actor", "actor_id", "verb", "request_id")


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

"""Which incidents somebody wants to see (interfaces.md section 8)."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.values import Assignee, IncidentCause


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """The conditions of a filtered list of incidents; an empty one is met by every incident.

    `word`, `name`: the type, and a part of the resource's name; `resource`: the type and whole name of one resource.
    `client`: the id or node id of a client that refused, or that is named as having lost something.
    `author`: who made the change that is the suspect.
    `assignee`: who is to look after it; with NOBODY, what nobody looks after: it is assigned to nobody, or to somebody
        who may not see it any more.
    `since`, `until`: only incidents whose last refusal or loss was then or later, or then or earlier.
    """

    cause: IncidentCause | None = None
    word: str = ""
    name: str = ""
    resource: tuple[str, str] | None = None
    client: str = ""
    author: str = ""
    assignee: Assignee | None = None
    since: datetime | None = None
    until: datetime | None = None

    def applied(self, rows: QuerySet[Incident]) -> QuerySet[Incident]:
        """The rows among `rows` that meet every condition."""
        if self.cause is not None:
            rows = rows.filter(cause=self.cause.value)
        if self.word:
            rows = rows.filter(type=self.word)
        if self.name:
            rows = rows.filter(name__contains=self.name)
        if self.resource is not None:
            rows = rows.filter(type=self.resource[0], name=self.resource[1])
        if self.author:
            rows = rows.filter(author=self.author)
        if self.assignee is not None:
            rows = rows.filter(_assigned(self.assignee))
        if self.since is not None:
            rows = rows.filter(last_at__gte=self.since)
        if self.until is not None:
            rows = rows.filter(last_at__lte=self.until)
        if self.client:
            refused = IncidentClient.objects.filter(Q(client=self.client) | Q(node_id=self.client))
            rows = rows.filter(Exists(refused.filter(incident=OuterRef("pk"))))
        return rows


def _assigned(wanted: Assignee) -> Q:
    if wanted == NOBODY:
        return Q(assignee="") | Q(assignee_gone=True)
    if wanted.id:
        return Q(assigned_to=wanted.id)
    return Q(assignee=wanted.name, assigned_team=wanted.team)


NOBODY = Assignee("")
EVERY_INCIDENT = IncidentFilter()

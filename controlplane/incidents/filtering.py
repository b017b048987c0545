"""Which incidents somebody wants to see (interfaces.md section 8)."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.values import IncidentCause


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """The conditions that an incident of a filtered list must meet; an empty one is met by all.

    `word` is a type's, `name` a part of the resource's name, `resource` the type word and whole name of one. `client`
    is the id or node id of a client that refused, or that is told of as one that lost something; `author` who made the
    suspect change; `since` the last refusal, or the loss, is not before.
    """

    cause: IncidentCause | None = None
    word: str = ""
    name: str = ""
    resource: tuple[str, str] | None = None
    client: str = ""
    author: str = ""
    since: datetime | None = None

    def applied(self, rows: QuerySet[Incident]) -> QuerySet[Incident]:
        """The rows of these incidents that meet every condition."""
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
        if self.since is not None:
            rows = rows.filter(last_at__gte=self.since)
        if self.client:
            refused = IncidentClient.objects.filter(Q(client=self.client) | Q(node_id=self.client))
            rows = rows.filter(Exists(refused.filter(incident=OuterRef("pk"))))
        return rows


EVERY_INCIDENT = IncidentFilter()

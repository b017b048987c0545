"""Which change sets somebody wants to see."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.changesets.models import ChangeSet, ChangeSetAuthor


@dataclass(frozen=True, slots=True)
class SetFilter:
    """The conditions of a filtered list of change sets; an empty one is met by every change set.

    `text`: a part of the title or message. `author`: who made or edited it, by the name of then.
    `since`, `until`: when it was edited last, both included.
    """

    text: str = ""
    author: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def applied(self, rows: QuerySet[ChangeSet]) -> QuerySet[ChangeSet]:
        """The rows among `rows` that meet every condition."""
        if self.text:
            rows = rows.filter(Q(title__contains=self.text) | Q(message__contains=self.text))
        if self.author:
            rows = rows.filter(Exists(ChangeSetAuthor.objects.filter(change_set=OuterRef("pk"), name=self.author)))
        if self.since is not None:
            rows = rows.filter(edited_at__gte=self.since)
        if self.until is not None:
            rows = rows.filter(edited_at__lte=self.until)
        return rows


EVERY_SET = SetFilter()

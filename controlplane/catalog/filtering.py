"""Which resources and changes somebody wants to see, and in which order: for pages, API and files alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.models import Change, Resource, Revision
from xdscore.resource_types import by_word
from xdscore.schema.certificates import SOON

# By the word of an order: the columns, the last of which no two rows have in common, so that pages of a list neither
# repeat a row nor lose one.
RESOURCE_ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("name", "type"),
    "type": ("type", "name"),
    "owner": ("owner", "type", "name"),
    "revision": ("counter", "type", "name"),
    "changed": ("head__at", "type", "name"),
}
CHANGE_ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "time": ("generation",),
    "author": ("author", "generation"),
    "kind": ("kind", "generation"),
    "resources": ("edits", "generation"),
}


def ordered(columns: tuple[str, ...], *, falls: bool) -> tuple[str, ...]:
    """The columns as Django orders by them; `falls`: from the last row to the first."""
    return tuple(f"-{each}" for each in columns) if falls else columns


@dataclass(frozen=True, slots=True)
class ResourceFilter:
    """The conditions of a filtered list of resources, beside type, name and owner; an empty one is met by every one.

    `author`: who wrote the newest revision.
    `since`, `until`: when the newest revision was written, both included.
    `findings`: whether there are findings about the newest revision, at the time `now`.
    """

    author: str = ""
    since: datetime | None = None
    until: datetime | None = None
    findings: bool | None = None
    now: datetime | None = None

    def applied(self, rows: QuerySet[Resource]) -> QuerySet[Resource]:
        """The rows among `rows` that meet every condition."""
        if self.author:
            rows = rows.filter(head__change__author=self.author)
        if self.since is not None:
            rows = rows.filter(head__at__gte=self.since)
        if self.until is not None:
            rows = rows.filter(head__at__lte=self.until)
        if self.findings is not None:
            rows = rows.filter(self._found() if self.findings else ~self._found())
        return rows

    def _found(self) -> Q:
        """The rule of `expiry.findings_at` as a database condition: what was found when it was written, or a
        certificate that expires soon.
        """
        written = Revision.objects.filter(pk=OuterRef("head")).exclude(findings=[])
        found = Q(Exists(written))
        if self.now is not None:
            expiring = Revision.objects.filter(pk=OuterRef("head"), expires_at__lt=self.now + SOON)
            found |= Q(Exists(expiring))
        return found


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """The conditions of a filtered list of changes; an empty one is met by every change.

    `text`: a part of the message, or of the name of a resource that the change wrote.
    `resource`: `TYPE/NAME`, or a whole name, of a resource that the change wrote.
    `owner`: for which owner it was written.
    `since`, `until`: when it was made, both included.
    `findings`: whether there were findings about what it wrote.
    """

    kind: ChangeKind | None = None
    author: str = ""
    text: str = ""
    resource: str = ""
    owner: str = ""
    since: datetime | None = None
    until: datetime | None = None
    findings: bool | None = None

    def applied(self, rows: QuerySet[Change]) -> QuerySet[Change]:
        """The rows among `rows` that meet every condition."""
        same = {"kind": self.kind.value if self.kind is not None else "", "author": self.author, "owner": self.owner}
        rows = rows.filter(Q(**{column: value for column, value in same.items() if value}))
        if self.since is not None:
            rows = rows.filter(at__gte=self.since)
        if self.until is not None:
            rows = rows.filter(at__lte=self.until)
        written = Revision.objects.filter(change=OuterRef("pk"))
        if self.text:
            named = Exists(written.filter(resource__name__contains=self.text))
            rows = rows.filter(Q(message__contains=self.text) | named)
        if self.resource:
            rows = rows.filter(Exists(written.filter(_of_resource(self.resource))))
        if self.findings is not None:
            rows = rows.exclude(findings=[]) if self.findings else rows.filter(findings=[])
        return rows


def _of_resource(text: str) -> Q:
    """The condition of revisions of the resource that a text names: `TYPE/NAME` or, with any type, `NAME`."""
    word, slash, name = text.partition("/")
    whole = Q(resource__name=text)
    return whole | Q(resource__type=word, resource__name=name) if slash and word in by_word else whole


EVERY_CHANGE: Final = ChangeFilter()

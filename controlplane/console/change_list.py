"""The list of an environment's changes: who wrote what, and what became of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from django.db.models import QuerySet
from django.urls import path

from controlplane.catalog.change_log import change_list
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.filtering import ChangeFilter
from controlplane.catalog.models import Change
from controlplane.console.lists import FINDINGS, ListPage, ListShown, found_or_not
from controlplane.console.paging import paged
from controlplane.console.places import Place, Section
from controlplane.console.states import look_of_change
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, Order, options
from controlplane.listing.tables import Column
from controlplane.status.change_lines import ChangeLine, change_lines

_OF_A_FILE: Final = 500  # of how many at once a file reads how they stand


@dataclass(frozen=True, slots=True)
class Line:
    """A change in the list."""

    line: ChangeLine

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the change stands."""
        return look_of_change(self.line.status)


class ChangesPage(ListPage):
    """The page with the changes of an environment, newest first."""

    template = "changes/list.html"
    frame = Frame(
        "changes",
        "changes",
        "changes",
        (
            Filter("text", "Message or resource name contains", max_chars=150, width="wide"),
            Filter("kind", "About", Kind.CHOICE, options([each.value for each in ChangeKind]), unasked="everything"),
            Filter("author", "Author", max_chars=150),
            Filter("owner", "Owner", max_chars=150),
            Filter("resource", "Resource, or type/name", max_chars=1_100),
            Filter("findings", "Findings", Kind.CHOICE, FINDINGS),
            SINCE,
            UNTIL,
        ),
        (
            Order("time", "When", falls=True),
            Order("kind", "About"),
            Order("resources", "Resources", falls=True),
            Order("author", "Author"),
        ),
    )
    columns: ClassVar[Sequence[Column[ChangeLine]]] = (
        Column("change", lambda line: str(line.change.public_id)),
        Column("message", lambda line: line.change.message),
        Column("kind", lambda line: line.change.kind),
        Column("resources", lambda line: line.edits),
        Column("state", lambda line: line.status.value),
        Column("refused_by", lambda line: line.refused),
        Column("lost_by", lambda line: line.lost),
        Column("undone_by", lambda line: str(line.undone_by.public_id) if line.undone_by else ""),
        Column("author", lambda line: line.change.author),
        Column("owner", lambda line: line.change.owner),
        Column("at", lambda line: line.change.at),
    )

    def shown(self, asked: Asked) -> ListShown:
        """One page of the changes that fit the filters."""
        page = paged(self.request, self._rows(asked), lambda row: row)
        return ListShown({"page": page.showing([Line(each) for each in change_lines(page.items)])})

    def lines(self, asked: Asked, limit: int) -> Iterator[ChangeLine]:
        """The first changes that fit the filters."""
        rows = list(self._rows(asked)[:limit])
        for start in range(0, len(rows), _OF_A_FILE):
            yield from change_lines(rows[start : start + _OF_A_FILE])

    def _rows(self, asked: Asked) -> QuerySet[Change]:
        wanted = ChangeFilter(
            kind=ChangeKind(asked.text("kind")) if asked.text("kind") else None,
            author=asked.text("author"),
            text=asked.text("text"),
            resource=asked.text("resource"),
            owner=asked.text("owner"),
            since=asked.since,
            until=asked.until,
            findings=found_or_not(asked),
        )
        falls = asked.falls if asked.sort else True
        return change_list(environment_key=self.here.key, wanted=wanted, order=asked.sort or "time", falls=falls)


urlpatterns = [
    path("e/<str:environment_key>/changes", ChangesPage.as_view(), name="changes"),
]
PLACES = (Place(Section.CONFIGURATION, 30, "Changes", "git-commit", "changes", also=("change",)),)

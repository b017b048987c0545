"""Lists whose rows the database filters, sorts and cuts."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Model, QuerySet
from django.http import HttpResponse
from django.utils import timezone

from controlplane.console.lists import ListPage, ListShown
from controlplane.console.paging import paged
from controlplane.listing.frames import Asked, Option


class RowsPage(ListPage):
    """The base class of pages that are a list of database rows. Templates have its page as `page`."""

    @abstractmethod
    def rows(self, asked: Asked) -> QuerySet[Any]:
        """All rows that fit the filters, in the order that is asked for, in which no two rows are equal."""

    @abstractmethod
    def line(self, row: Any) -> Any:
        """A row as it is shown, and written into a file."""

    def beside(self, asked: Asked) -> Mapping[str, object]:  # noqa: ARG002 - for whoever overrides it
        """What else the template shows."""
        return {}

    def choices(self) -> Mapping[str, Sequence[Option]]:
        """The choices of filters whose choices depend on the data."""
        return {}

    def shown(self, asked: Asked) -> ListShown:
        """One page of the rows."""
        page = paged(self.request, self.rows(asked), self.line)
        return ListShown({"page": page, **self.beside(asked)}, self.choices())

    def lines(self, asked: Asked, limit: int) -> Iterator[Any]:
        """The first rows."""
        row: Model
        for row in self.rows(asked)[:limit]:
            yield self.line(row)

    def answered(self, context: Mapping[str, object], *, status: int) -> HttpResponse:
        """The list as the address asks for it, with what came of a form."""
        asked = self.frame.read(self.request.GET, timezone.now())
        shown = ListShown(self.beside(asked), self.choices()) if asked.problems else self.shown(asked)
        return self.listed(asked, replace(shown, context={**shown.context, **context}), status=status)

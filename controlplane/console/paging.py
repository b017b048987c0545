"""Pages of long lists, cut by the database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest

SIZE: Final = 50
_MAX_PAGE: Final = 1_000_000

Item = TypeVar("Item")
Other = TypeVar("Other")
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Paged(Generic[Item]):
    """One page of a list.

    `number`: the page's, from 1.
    `count`: how many items the whole list has.
    `size`: how many items a page has at most.
    """

    items: Sequence[Item]
    number: int
    count: int
    size: int = SIZE

    def showing(self, items: Sequence[Other]) -> "Paged[Other]":
        """A copy of the page that shows these items instead of its own."""
        return Paged(items, self.number, self.count, self.size)

    @property
    def first(self) -> int:
        """The position of the page's first item in the whole list, from 1; 0 when the list is empty."""
        return (self.number - 1) * self.size + 1 if self.items else 0

    @property
    def last(self) -> int:
        """The position of the page's last item in the whole list, from 1; 0 when the list is empty."""
        return (self.number - 1) * self.size + len(self.items)

    @property
    def pages(self) -> int:
        """How many pages the list has; an empty list has one."""
        return max(1, -(-self.count // self.size))

    @property
    def previous(self) -> int | None:
        """The number of the page before this one; None on the first."""
        return self.number - 1 if self.number > 1 else None

    @property
    def next(self) -> int | None:
        """The number of the page behind this one; None on the last."""
        return self.number + 1 if self.number < self.pages else None


def page_number(request: HttpRequest) -> int:
    """The page number in the URL; 1 where it has none."""
    text = request.GET.get("page", "1")
    return min(max(int(text), 1), _MAX_PAGE) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def paged(request: HttpRequest, rows: QuerySet[Row], render: Callable[[Row], Item], *, size: int = SIZE) -> Paged[Item]:
    """The page of `rows` that the URL asks for, each item made by `render`; a number beyond the end gives the last
    page. Two queries.
    """
    count = rows.count()
    number = min(page_number(request), max(1, -(-count // size)))
    start = (number - 1) * size
    return Paged([render(row) for row in rows[start : start + size]], number, count, size)

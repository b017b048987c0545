"""Pages of lists: by offset for what is configured, by cursor for what happens (texts.md section 4, "Conventions")."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from django.db.models import QuerySet
from rest_framework.request import Request

from controlplane.api.paths import encoded_path
from controlplane.api.query import Query

MAX_ITEMS: Final = 1_000
DEFAULT_ITEMS: Final = 100
OFFSET_PARAMETERS: Final = ("limit", "offset")
CURSOR_PARAMETERS: Final = ("limit", "after")
_MAX_OFFSET: Final = 10_000_000  # more rows than any limit allows an environment

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that a request asks for: at most `limit` items, after the first `offset`."""

    limit: int
    offset: int


def window_of(query: Query) -> Window:
    """The part of a list that the parameters `limit` and `offset` ask for; without them the first items."""
    limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
    return Window(limit, query.whole("offset", 0, minimum=0, maximum=_MAX_OFFSET))


def offset_page(
    request: Request, rows: "QuerySet[Any, T] | Sequence[T]", window: Window, render: Callable[[T], object]
) -> dict[str, object]:
    """The part `window` of `rows` as JSON, each item made by `render`, with the count of all rows and links to the
    parts before and behind.
    """
    count = rows.count() if isinstance(rows, QuerySet) else len(rows)
    items = [render(row) for row in rows[window.offset : window.offset + window.limit]]
    return counted_page(request, items, window, count)


def plain_page(
    request: Request, rows: "QuerySet[Any, T] | Sequence[T]", render: Callable[[T], object]
) -> dict[str, object]:
    """The part of `rows` that the request asks for, as `offset_page` makes it, for a list without filters. Raises
    InputInvalid for query parameters other than those of paging.
    """
    query = Query(request, OFFSET_PARAMETERS)
    window = window_of(query)
    query.done()
    return offset_page(request, rows, window, render)


def counted_page(request: Request, items: Sequence[object], window: Window, count: int) -> dict[str, object]:
    """A part of a list as JSON, with links to the parts before and behind. `items`: the items of the part `window`,
    already as JSON; `count`: the length of the whole list.
    """
    following = window.offset + window.limit
    before = max(window.offset - window.limit, 0)
    return {
        "count": count,
        "next": _link(request, limit=window.limit, offset=following) if following < count else None,
        "previous": _link(request, limit=window.limit, offset=before) if window.offset > 0 else None,
        "results": list(items),
    }


def cursor_page(request: Request, items: Sequence[object], limit: int, last: str) -> dict[str, object]:
    """A part of a list as JSON, with a link to the next part. `last`: the cursor at which the next part begins; empty
    where this is the last one.
    """
    return {"next": _link(request, limit=limit, after=last) if last else None, "results": list(items)}


def _link(request: Request, **changed: str | int) -> str:
    parameters = {**dict(request.query_params.lists()), **changed}  # filters may be given several times
    path = encoded_path(request._request)  # noqa: SLF001  the path as it was sent: names may hold slashes
    return request._request.build_absolute_uri(f"{path}?{urlencode(parameters, doseq=True)}")  # noqa: SLF001

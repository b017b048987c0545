"""Answers which views somebody has of a list. Values only, never rows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import person_or_token
from controlplane.common.errors import NotFound
from controlplane.listing.models import DefaultView, SavedView

SHARERS: Final = (Role.EDITOR, Role.ACCESS_EDITOR, Role.OPERATOR)
"""Whoever may change something of an environment may share a view of its lists: others rely on what it is called."""


@dataclass(frozen=True, slots=True)
class View:
    """A saved view, as somebody sees it. `own`: it is theirs; `default`: the list opens with it for them.

    `environment`: its key; empty for a list that is of none. `listed`: the word of the list.
    """

    id: UUID
    environment: str
    listed: str
    name: str
    query: str
    author: str
    shared: bool
    own: bool
    default: bool
    at: datetime


def views_of(*, principal: Principal, environment_key: str, listed: str = "") -> tuple[View, ...]:
    """The views that somebody has of a list (empty: of every one): their own and, of an environment that they may read
    as a whole, those that are shared there; by list and name. `environment_key`: empty for lists that are of no
    environment. One query; of a token, two.
    """
    rows = visible(principal, environment_key)
    return _views(rows.filter(listed=listed) if listed else rows, principal)


def view_get(*, principal: Principal, public_id: UUID) -> View:
    """The view with this id. Raises NotFound, with one text, where there is none and where they may not see it."""
    found = SavedView.objects.filter(public_id=public_id).values_list("environment__key", flat=True)
    for key in found:
        for view in _views(visible(principal, key or "").filter(public_id=public_id), principal):
            return view
    raise NotFound(f"There is no view '{public_id}'.")


def _views(rows: QuerySet[SavedView], principal: Principal) -> tuple[View, ...]:
    owner = owner_of(principal)
    chosen = DefaultView.objects.filter(view=OuterRef("pk"), owner=owner)
    rows = rows.select_related("environment").annotate(is_default=Exists(chosen)).order_by("listed", "name", "pk")
    return tuple(
        View(
            id=row.public_id,
            environment=row.environment.key if row.environment is not None else "",
            listed=row.listed,
            name=row.name,
            query=row.query,
            author=row.author,
            shared=row.shared,
            own=row.owner == owner,
            default=bool(getattr(row, "is_default", False)),
            at=row.at,
        )
        for row in rows
    )


def default_query(*, principal: Principal, listed: str, environment_key: str) -> str:
    """The query with which a list opens for somebody; empty for everything. One query."""
    chosen = DefaultView.objects.filter(view=OuterRef("pk"), owner=owner_of(principal))
    rows = visible(principal, environment_key).filter(Exists(chosen), listed=listed)
    return rows.values_list("query", flat=True).first() or ""


def may_share(principal: Principal, environment_key: str) -> bool:
    """Whether somebody may offer views of this environment's lists to everybody who reads them."""
    return bool(environment_key) and any(principal.may(role, environment_key) for role in SHARERS)


def owner_of(principal: Principal) -> str:
    """The id under which somebody's views are kept: the person's, whether they act by a page or by a token of theirs;
    else the principal's own.
    """
    return str(person_or_token(principal))


def visible(principal: Principal, environment_key: str) -> QuerySet[SavedView]:
    """The rows of the views that somebody may see in an environment, or of lists that are of none."""
    own = Q(owner=owner_of(principal))
    if not environment_key:
        return SavedView.objects.filter(own, environment=None)
    reads = Q(shared=True) if principal.may(Role.VIEWER, environment_key) else Q(pk__in=())
    return SavedView.objects.filter(own | reads, environment__key=environment_key)

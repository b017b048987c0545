"""Answers which views somebody has of a list. Values only, never rows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.accounts.principal import Principal, Role
from controlplane.listing.models import DefaultView, SavedView

SHARERS: Final = (Role.EDITOR, Role.ACCESS_EDITOR, Role.OPERATOR)
"""Whoever may change something of an environment may share a view of its lists: others rely on what it is called."""


@dataclass(frozen=True, slots=True)
class View:
    """A saved view, as somebody sees it. `own`: it is theirs; `default`: the list opens with it for them."""

    id: UUID
    name: str
    query: str
    author: str
    shared: bool
    own: bool
    default: bool
    at: datetime


def views_of(*, principal: Principal, listed: str, environment_key: str) -> tuple[View, ...]:
    """The views that somebody has of a list: their own and, of an environment that they may read as a whole, those that
    are shared there; by name. `environment_key`: empty for a list that is of no environment. One query.
    """
    owner = str(principal.id)
    rows = visible(principal, environment_key).filter(listed=listed)
    chosen = DefaultView.objects.filter(view=OuterRef("pk"), owner=owner)
    return tuple(
        View(row.public_id, row.name, row.query, row.author, row.shared, row.owner == owner, row.is_default, row.at)
        for row in rows.annotate(is_default=Exists(chosen)).order_by("name", "pk")
    )


def default_query(*, principal: Principal, listed: str, environment_key: str) -> str:
    """The query with which a list opens for somebody; empty for everything. One query."""
    chosen = DefaultView.objects.filter(view=OuterRef("pk"), owner=str(principal.id))
    rows = visible(principal, environment_key).filter(Exists(chosen), listed=listed)
    return rows.values_list("query", flat=True).first() or ""


def may_share(principal: Principal, environment_key: str) -> bool:
    """Whether somebody may offer views of this environment's lists to everybody who reads them."""
    return bool(environment_key) and any(principal.may(role, environment_key) for role in SHARERS)


def visible(principal: Principal, environment_key: str) -> QuerySet[SavedView]:
    """The rows of the views that somebody may see in an environment, or of lists that are of none."""
    own = Q(owner=str(principal.id))
    if not environment_key:
        return SavedView.objects.filter(own, environment=None)
    reads = Q(shared=True) if principal.may(Role.VIEWER, environment_key) else Q(pk__in=())
    return SavedView.objects.filter(own | reads, environment__key=environment_key)

"""The list of an environment's client groups, and of the rules that speak of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from django.db.models import Count, Prefetch, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.urls import path

from controlplane.access.models import AccessRuleGroup, ClientGroup
from controlplane.access.selectors import group_list, group_state
from controlplane.accounts.principal import Role
from controlplane.catalog.filtering import ordered
from controlplane.console.access_forms import GroupLine, group_line
from controlplane.console.row_lists import RowsPage
from controlplane.listing.frames import Asked, Filter, Frame, Kind, Option, Order, options
from controlplane.listing.tables import Column
from xdscore.client_groups import Trust

_ORDERS: Final = {"key": ("key",), "trust": ("trust", "key"), "rules": ("named", "key")}


@dataclass(frozen=True, slots=True)
class Line:
    """A client group in the list. `rules`: the ids of the rules that speak of it."""

    group: GroupLine
    rules: tuple[int, ...]


class ClientGroupsPage(RowsPage):
    """The page with the client groups of an environment."""

    template = "access/groups.html"
    needs = {"GET": Role.VIEWER}
    frame = Frame(
        "client-groups",
        "client groups",
        "client-groups",
        (
            Filter("text", "Name, or what matches", width="wide"),
            Filter("trust", "Trust", Kind.CHOICE, options([each.value for each in Trust])),
            Filter("used", "Rules", Kind.CHOICE, (Option("yes", "speak of it"), Option("no", "none does"))),
        ),
        (Order("key", "Group"), Order("trust", "Trust"), Order("rules", "Rules", falls=True)),
    )
    columns: ClassVar[Sequence[Column[Line]]] = (
        Column("group", lambda each: each.group.key),
        Column("trust", lambda each: each.group.trust),
        Column("matches", lambda each: each.group.text),
        Column("rules", lambda each: " ".join(map(str, each.rules))),
    )

    def rows(self, asked: Asked) -> QuerySet[ClientGroup]:
        """The groups that fit the filters."""
        rows = group_list(environment_key=self.here.key).annotate(named=Count("rule_links"))
        if text := asked.text("text"):
            rows = rows.annotate(said=Cast("matchers", TextField()))
            rows = rows.filter(Q(key__icontains=text) | Q(said__icontains=text))
        if trust := asked.text("trust"):
            rows = rows.filter(trust=trust)
        if used := asked.text("used"):
            rows = rows.filter(named__gt=0) if used == "yes" else rows.filter(named=0)
        links = Prefetch("rule_links", AccessRuleGroup.objects.order_by("rule__position"))
        return rows.prefetch_related(links).order_by(*ordered(_ORDERS[asked.sort or "key"], falls=asked.falls))

    def line(self, row: ClientGroup) -> Line:
        """A group as the list shows it."""
        return Line(group_line(group_state(row).draft), tuple(link.rule_id for link in row.rule_links.all()))

    def beside(self, asked: Asked) -> Mapping[str, object]:  # noqa: ARG002 - of every list
        """Whether there is any group."""
        return {"any": group_list(environment_key=self.here.key).exists()}


urlpatterns = [
    path("e/<str:environment_key>/access/groups", ClientGroupsPage.as_view(), name="client-groups"),
]

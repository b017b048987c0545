"""The list of an environment's incidents: what clients refuse or lost, the most urgent first."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from django.urls import path

from controlplane.catalog.owners import owner_list
from controlplane.clients.browsing import Standing, standing_counts
from controlplane.console.lists import ListPage, ListShown
from controlplane.console.paging import SIZE, Paged, page_number
from controlplane.console.places import Place, Section
from controlplane.incidents.filtering import NOBODY, IncidentFilter
from controlplane.incidents.triage import IncidentRow, incident_page, incident_state_counts
from controlplane.incidents.values import UNRESOLVED, Assignee, IncidentCause, IncidentState
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, Option, Order
from controlplane.listing.tables import Column
from xdscore.codes import shown as quoted
from xdscore.resource_types import RESOURCE_TYPES

# Which states a filter stands for, by its word in the address.
_UNRESOLVED: Final = "unresolved"
_SHOWN: Final[Mapping[str, tuple[IncidentState, ...]]] = {
    _UNRESOLVED: UNRESOLVED,
    **{state.value: (state,) for state in IncidentState},
    "all": tuple(IncidentState),
}


def _assignee_problem(asked: str) -> str:
    word, _, name = asked.partition(":")
    if asked in ("me", "nobody") or (word in ("person", "team") and name):
        return ""
    return f"'{quoted(asked)}' is nobody to whom incidents are assigned: it is me, nobody, person:LOGIN or team:OWNER."


class IncidentsPage(ListPage):
    """The page with the incidents of an environment."""

    template = "incidents/list.html"
    frame = Frame(
        "incidents",
        "incidents",
        "incidents",
        (
            Filter("q", "Resource, words, id or person", width="wide"),
            Filter(
                "type",
                "Type",
                Kind.CHOICE,
                tuple(Option(each.word, each.title) for each in RESOURCE_TYPES),
                unasked="all types",
            ),
            Filter(
                "cause",
                "Cause",
                Kind.CHOICE,
                (Option(IncidentCause.NACK.value, "refused"), Option(IncidentCause.LOSS.value, "lost")),
                unasked="refused or lost",
            ),
            Filter(
                "state",
                "State",
                Kind.CHOICE,
                tuple(Option(word, word) for word in _SHOWN),
                unasked=_UNRESOLVED,
            ),
            Filter("author", "Author of the change", max_chars=150),
            Filter("client", "Client"),
            Filter(
                "assignee",
                "Assigned to",
                Kind.CHOICE,
                free=True,
                unasked="anybody or nobody",
                judge=_assignee_problem,
            ),
            SINCE,
            UNTIL,
        ),
        (
            Order("name", "Resource"),
            Order("clients", "Clients", falls=True),
            Order("state", "State"),
            Order("last", "Last", falls=True),
            Order("first", "First", falls=True),
        ),
    )
    columns: ClassVar[Sequence[Column[IncidentRow]]] = (
        Column("incident", lambda row: row.id),
        Column("cause", lambda row: row.cause.value),
        Column("type", lambda row: row.type),
        Column("name", lambda row: row.name),
        Column("revision", lambda row: row.revision or None),
        Column("sentence", lambda row: row.sentence),
        Column("clients", lambda row: row.impact.nacked),
        Column("clients_sent", lambda row: row.impact.sent),
        Column("family", lambda row: row.family.value),
        Column("state", lambda row: row.state.value),
        Column("assignee", lambda row: row.assignee.name if row.assignee else ""),
        Column("suspect_change", lambda row: row.change),
        Column("author", lambda row: row.author),
        Column("first_at", lambda row: row.first_at),
        Column("last_at", lambda row: row.last_at),
    )

    def shown(self, asked: Asked) -> ListShown:
        """One page of the incidents that fit the filters."""
        key, number = self.here.key, page_number(self.request)
        items, count = self._found(asked, offset=(number - 1) * SIZE, limit=SIZE)
        by_state = incident_state_counts(environment_keys=[key])
        counts = {word: sum(by_state[state] for state in states) for word, states in _SHOWN.items()}
        context: dict[str, object] = {
            "page": Paged(items, number, count),
            "resolved": counts[IncidentState.RESOLVED.value],
        }
        if not count:
            standing = standing_counts(environment_keys=[key])[key]
            context["connected"] = sum(standing.values()) - standing[Standing.GONE]
        states = [Option(word, f"{word} ({count})") for word, count in counts.items() if word != _UNRESOLVED]
        return ListShown(context, {"state": states, "assignee": _assignees(key)})

    def lines(self, asked: Asked, limit: int) -> Sequence[IncidentRow]:
        """The first incidents that fit the filters."""
        return self._found(asked, offset=0, limit=limit)[0]

    def _found(self, asked: Asked, **cut: int) -> tuple[tuple[IncidentRow, ...], int]:
        wanted = IncidentFilter(
            cause=IncidentCause(asked.text("cause")) if asked.text("cause") else None,
            word=asked.text("type"),
            client=asked.text("client"),
            author=asked.text("author"),
            assignee=self._assignee(asked.text("assignee")),
            since=asked.since,
            until=asked.until,
        )
        return incident_page(
            environment_keys=[self.here.key],
            states=_SHOWN[asked.text("state") or _UNRESOLVED],
            wanted=wanted,
            text=asked.text("q"),
            order=asked.sort,
            falls=asked.falls,
            **cut,
        )

    def _assignee(self, asked: str) -> Assignee | None:
        """Whose incidents are asked for; None for anybody's."""
        if not asked:
            return None
        if asked == "me":
            return Assignee(self.principal.name, str(self.principal.id))
        if asked == "nobody":
            return NOBODY
        word, _, name = asked.partition(":")
        return Assignee(name, team=word == "team")


def _assignees(environment_key: str) -> list[Option]:
    teams = [Option(f"team:{each}", f"team {each}") for each in owner_list(environment_key=environment_key)]
    return [Option("me", "me"), Option("nobody", "nobody"), *teams]


urlpatterns = [
    path("e/<str:environment_key>/incidents", IncidentsPage.as_view(), name="incidents"),
]
PLACES = (Place(Section.NOW, 20, "Incidents", "alert-triangle", "incidents", also=("incident",)),)

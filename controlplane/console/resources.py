"""The list of an environment's resources."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import path, reverse
from django.utils import timezone
from django.utils.http import urlencode

from controlplane.accounts.principal import EVERYTHING, Allowed, Role
from controlplane.catalog.filtering import RESOURCE_ORDERS, ResourceFilter, ordered
from controlplane.catalog.models import Resource
from controlplane.catalog.selectors import ResourceRow, resource_list, resource_row
from controlplane.clients.coverage import Coverage, coverage_of
from controlplane.common.errors import NotFound
from controlplane.console.bulk_words import ACTS
from controlplane.console.lists import FINDINGS, LABELS, ListPage, ListShown, found_or_not
from controlplane.console.paging import paged
from controlplane.console.places import Place, Section
from controlplane.console.states import look_of_resource
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, Option, Order, options
from controlplane.listing.tables import Column
from controlplane.status.selectors import Standing, standings_of, with_status
from controlplane.status.values import Condition, ConditionType, Reason, ResourceStatus, Status, Truth
from xdscore.labels import selector_read
from xdscore.names import canonical, name_problem
from xdscore.resource_types import RESOURCE_TYPES, ResourceType, by_word

_MAX_TEXT: Final = 1_024  # a name
_OF_A_FILE: Final = 500  # of how many at once a file reads how they stand


@dataclass(frozen=True, slots=True)
class ResourceLine:
    """A resource in the list. `standing`: how it stands; `coverage`: how many clients have its newest revision."""

    row: ResourceRow
    url: str
    standing: Standing
    coverage: Coverage

    @property
    def status(self) -> ResourceStatus:
        """The status of the resource."""
        return self.standing.status

    @property
    def accepted(self) -> Condition:
        """The condition `Accepted`: what clients say of the newest revision of the resource."""
        return self.status.condition(ConditionType.ACCEPTED)

    @property
    def published(self) -> Condition:
        """The condition `Published`: whether the newest revision of the resource is served."""
        return self.status.condition(ConditionType.PUBLISHED)

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the resource stands."""
        return look_of_resource(self.status.status, acknowledged=self.accepted.status is Truth.TRUE)

    @property
    def note(self) -> str:
        """Why the resource has its status or, for a published one that no client acknowledged, what is known of
        clients; else empty.
        """
        if self.status.reason or self.accepted.status is Truth.TRUE:
            return self.status.reason
        return "not acknowledged yet" if self.accepted.reason is Reason.UNACKNOWLEDGED else self.accepted.message


class ResourcesPage(ListPage):
    """The page with the resources of an environment, by type and name, and how many clients have each."""

    template = "resources/list.html"
    frame = Frame(
        "resources",
        "resources",
        "resources",
        (
            Filter("name", "Name contains", max_chars=_MAX_TEXT, width="wide"),
            Filter("type", "Type", Kind.CHOICE, tuple(Option(each.word, each.title) for each in RESOURCE_TYPES)),
            Filter("status", "Status", Kind.CHOICE, options(tuple(Status))),
            Filter("findings", "Findings", Kind.CHOICE, FINDINGS),
            Filter("owner", "Owner", max_chars=150),
            LABELS,
            Filter("author", "Changed by", max_chars=150),
            SINCE,
            UNTIL,
        ),
        (
            Order("name", "Name"),
            Order("type", "Type"),
            Order("revision", "Revision", falls=True),
            Order("owner", "Owner"),
            Order("changed", "Changed", falls=True),
        ),
    )
    columns: ClassVar[Sequence[Column[ResourceLine]]] = (
        Column("name", lambda line: line.row.name),
        Column("type", lambda line: line.row.kind.word),
        Column("status", lambda line: line.status.status.value),
        Column("note", lambda line: line.note),
        Column("clients_asking", lambda line: line.coverage.asking),
        Column("clients_running", lambda line: line.coverage.running),
        Column("clients_refusing", lambda line: line.coverage.nacked),
        Column("revision", lambda line: line.row.revision),
        Column("findings", lambda line: line.row.findings),
        Column("owner", lambda line: line.row.owner),
        Column("labels", lambda line: " ".join(line.row.label_words)),
        Column("changed_at", lambda line: line.row.updated_at),
    )

    def shown(self, asked: Asked) -> ListShown:
        """One page of the resources that fit the filters."""
        page = paged(self.request, rows_asked(self.here.key, asked), resource_row)
        context = {
            "page": page.showing(lines_of(self.here.key, page.items)),
            "filters": list(asked.values.items()),
            "acts": [each for each in ACTS if (self.may(Role.OPERATOR) if each.needs_operator else self.may_edit)],
        }
        return ListShown(context)

    def lines(self, asked: Asked, limit: int) -> Iterator[ResourceLine]:
        """The first resources that fit the filters."""
        rows = [resource_row(row) for row in rows_asked(self.here.key, asked)[:limit]]
        for start in range(0, len(rows), _OF_A_FILE):
            yield from lines_of(self.here.key, rows[start : start + _OF_A_FILE])


def rows_asked(
    environment_key: str, asked: Asked, *, contents: bool = False, allowed: Allowed = EVERYTHING
) -> QuerySet[Resource]:
    """The rows of an environment's resources that fit the filters of the list, in its order. `contents`: read the bytes
    too; `allowed`: the only ones that there are for whoever asks.
    """
    rows = resource_list(
        environment_key=environment_key,
        kind=by_word.get(asked.text("type")),
        owner=asked.text("owner") or None,
        name_part=asked.text("name"),
        labels=selector_read(asked.text("label")),
        contents=contents,
        allowed=allowed,
    )
    if status := asked.text("status"):
        rows = with_status(rows, environment_key=environment_key, status=Status(status))
    wanted = ResourceFilter(
        author=asked.text("author"),
        since=asked.since,
        until=asked.until,
        findings=found_or_not(asked),
        now=timezone.now(),
    )
    columns = RESOURCE_ORDERS[asked.sort or "type"]
    return wanted.applied(rows).order_by(*ordered(columns, falls=asked.falls))


def resource_url(environment_key: str, word: str, name: str, route: str = "resource") -> str:
    """The URL of a resource's page; `word` is the type's. The name stands in the query, because it may hold any
    character.
    """
    return f"{reverse(route, args=[environment_key])}?{urlencode({'type': word, 'name': name})}"


def lines_of(environment_key: str, rows: Sequence[ResourceRow]) -> list[ResourceLine]:
    """The lines of the list for these resources. A line of a resource that is not served as written says that no client
    has its newest revision.
    """
    versions = {(row.kind.word, row.name): row.version for row in rows}
    standings = standings_of(environment_key=environment_key, keys=versions.keys())
    coverage = coverage_of(environment_key=environment_key, versions=versions)
    lines = []
    for row in rows:
        key = (row.kind.word, row.name)
        standing = standings.get(key)
        if standing is not None:  # else it was deleted meanwhile
            covered = coverage[key] if standing.held is None else coverage[key].unserved
            lines.append(ResourceLine(row, resource_url(environment_key, *key), standing, covered))
    return lines


def line_of(environment_key: str, kind: ResourceType, name: str) -> ResourceLine | None:
    """The line of the list for one resource; None where there is none, or it is deleted."""
    row = resource_list(environment_key=environment_key, kind=kind).filter(name=name).first()
    lines = lines_of(environment_key, [resource_row(row)]) if row is not None else []
    return next(iter(lines), None)


def kind_of(request: HttpRequest) -> ResourceType | None:
    """The resource type that the URL names; None where it names none."""
    return by_word.get(request.GET.get("type", ""))


def subject_of(request: HttpRequest) -> tuple[ResourceType, str]:
    """The type and name of the resource that the URL names. Raises NotFound where no resource can have them."""
    kind, name = kind_of(request), request.GET.get("name", "")
    if kind is None or name_problem(name):
        raise NotFound("The address names no resource: it ends in ?type=TYPE&name=NAME.")
    return kind, canonical(name)


urlpatterns = [
    path("e/<str:environment_key>/resources", ResourcesPage.as_view(), name="resources"),
]
PLACES = (
    Place(
        Section.CONFIGURATION,
        10,
        "Resources",
        "stack-2",
        "resources",
        also=("resource", "resource-edit", "resource-new", "import", "expose"),
    ),
)

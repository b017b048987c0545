"""The list of an environment's resources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils.http import urlencode

from controlplane.accounts.principal import Role
from controlplane.catalog.selectors import ResourceRow, resource_list, resource_row
from controlplane.clients.coverage import Coverage, coverage_of
from controlplane.common.errors import NotFound
from controlplane.console.bulk_words import ACTS, FILTERS
from controlplane.console.pages import Page
from controlplane.console.paging import paged
from controlplane.console.places import Place, Section
from controlplane.console.states import look_of_resource
from controlplane.status.selectors import Standing, standings_of, with_status
from controlplane.status.values import Condition, ConditionType, Reason, ResourceStatus, Status, Truth
from xdscore.labels import Requirement, selector_read
from xdscore.names import canonical, name_problem
from xdscore.resource_types import RESOURCE_TYPES, ResourceType, by_word

_MAX_TEXT: Final = 1_024  # a name


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


class ResourcesPage(Page):
    """The page with the resources of an environment, by type and name, and how many clients have each."""

    template = "resources/list.html"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """One page of the resources that fit the filters in the URL."""
        kind = by_word.get(request.GET.get("type", ""))
        name, owner = (request.GET.get(key, "").strip()[:_MAX_TEXT] for key in ("name", "owner"))
        status = _status_of(request)
        label, labels, label_problem = label_filter_of(request)
        rows = resource_list(
            environment_key=environment_key, kind=kind, owner=owner or None, name_part=name, labels=labels
        )
        if status is not None:
            rows = with_status(rows, environment_key=environment_key, status=status)
        page = paged(request, rows, resource_row)
        lines = lines_of(environment_key, page.items)
        context = {
            "page": page.showing(lines),
            "types": RESOURCE_TYPES,
            "word": kind.word if kind is not None else "",
            "name": name,
            "owner": owner,
            "statuses": tuple(Status),
            "status": status,
            "label": label,
            "label_problem": label_problem,
            "filters": [(key, request.GET.get(key, "")) for key in FILTERS],
            "acts": [each for each in ACTS if (self.may(Role.OPERATOR) if each.needs_operator else self.may_edit)],
            "filtered": bool(kind or name or owner or status or label),
        }
        return self.page(context)


def label_filter_of(request: HttpRequest) -> tuple[str, tuple[Requirement, ...], str]:
    """The selector of labels in the URL as it was typed, its conditions, and what is wrong with it; one that cannot be
    read has no conditions.
    """
    text = request.GET.get("label", "").strip()[:_MAX_TEXT]
    try:
        return text, selector_read(text), ""
    except ValueError as error:
        return text, (), f"{error} The list is not filtered by labels."


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


def _status_of(request: HttpRequest) -> Status | None:
    """The status by which the URL filters; None where it filters by none."""
    text = request.GET.get("status", "")
    return Status(text) if text in set(Status) else None


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
        also=("resource", "resource-edit", "resource-new", "import"),
    ),
)

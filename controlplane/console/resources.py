"""The list of an environment's resources."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from controlplane.builder.selectors import HeldName, held_names
from controlplane.catalog.selectors import ResourceRow, resource_list, resource_row
from controlplane.clients.coverage import Coverage, coverage_of
from controlplane.console.pages import Page
from controlplane.console.paging import paged
from controlplane.errors import NotFound
from xdscore.names import name_problem
from xdscore.resource_types import RESOURCE_TYPES, ResourceType, by_word

_MAX_TEXT: Final = 1_024  # a name


@dataclass(frozen=True, slots=True)
class ResourceLine:
    """One line of the list."""

    row: ResourceRow
    url: str
    held: HeldName | None
    coverage: Coverage

    @property
    def look(self) -> str:
        """Its state, for the badge."""
        if self.row.quarantined:
            return "quarantined"
        if self.held is not None:
            return "held_older" if self.held.served else "withheld"
        if self.coverage.nacked:
            return "refused"
        return "proven" if self.row.proven else "unproven"


class ResourcesPage(Page):
    """Resources by type and name, with what the fleet makes of each."""

    template = "resources/list.html"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """A page of those that fit the filters."""
        kind = by_word.get(request.GET.get("type", ""))
        name, owner = (request.GET.get(key, "").strip()[:_MAX_TEXT] for key in ("name", "owner"))
        rows = resource_list(environment_key=environment_key, kind=kind, owner=owner or None, name_part=name)
        held = held_names(environment_key=environment_key)
        page = paged(request, rows, resource_row)
        versions = {(row.kind.word, row.name): row.version for row in page.items}
        coverage = coverage_of(environment_key=environment_key, versions=versions)
        lines = [_line(environment_key, row, held, coverage) for row in page.items]
        context = {
            "page": page.showing(lines),
            "types": RESOURCE_TYPES,
            "word": kind.word if kind is not None else "",
            "name": name,
            "owner": owner,
            "filtered": bool(kind or name or owner),
        }
        return self.page(context)


def resource_url(environment_key: str, word: str, name: str, route: str = "resource") -> str:
    """Where a resource's page is. Its name stands in the question, because it may hold anything."""
    return f"{reverse(route, args=[environment_key])}?{urlencode({'type': word, 'name': name})}"


def _line(
    environment_key: str,
    row: ResourceRow,
    held: Mapping[tuple[str, str], HeldName],
    coverage: Mapping[tuple[str, str], Coverage],
) -> ResourceLine:
    key = (row.kind.word, row.name)
    return line_of(row, resource_url(environment_key, *key), held.get(key), coverage[key])


def line_of(row: ResourceRow, url: str, held: HeldName | None, coverage: Coverage) -> ResourceLine:
    """The line. What is not served as it was written, nobody runs."""
    return ResourceLine(row, url, held, coverage.unserved if held is not None else coverage)


def kind_of(request: HttpRequest) -> ResourceType | None:
    """The type that the question names, if it names one."""
    return by_word.get(request.GET.get("type", ""))


def subject_of(request: HttpRequest) -> tuple[ResourceType, str]:
    """The resource that the question names. Raises NotFound where no resource can be called so."""
    kind, name = kind_of(request), request.GET.get("name", "")
    if kind is None or name_problem(name):
        raise NotFound("The address names no resource: it ends in ?type=TYPE&name=NAME.")
    return kind, name
